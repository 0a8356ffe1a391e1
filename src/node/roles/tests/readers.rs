//! Clients that take their answers slowly or not at all, on a node in simulated time.

use tokio::io::DuplexStream;

use super::simulated::BYTES;
use super::simulated::KIB;
use super::simulated::SECOND;
use super::simulated::Simulated;
use super::*;

impl Simulated {
    /// Asks for the blob, and reads the first byte of the answer.
    async fn reader(&self) -> DuplexStream {
        let mut stream = self.blob.connect().await.unwrap();
        let line = signed("GET", "photos/large", &self.signature);
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        stream
    }

    /// How many answers were cut for this reason.
    fn cut(&self, reason: &str) -> usize {
        self.counter("responses_cut", reason)
    }
}

/// What there is to read until the server closes the connection.
async fn rest(stream: &mut DuplexStream) -> usize {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    rest.len()
}

#[tokio::test]
async fn reader_that_takes_nothing_is_cut_after_the_stall_time() {
    let node = Simulated::start(|config| {
        config.response_stall = SECOND * 10;
        config.response_rate_min = 0;
    })
    .await;
    for (pause, is_cut) in [(8, false), (12, true)] {
        let mut reader = node.reader().await;
        node.env.clock.sleep(SECOND * pause).await;
        assert_eq!(rest(&mut reader).await < BYTES, is_cut, "after {pause} s");
        assert_eq!(node.cut("stalled"), usize::from(is_cut), "after {pause} s");
    }
    node.stop().await;
}

#[tokio::test]
async fn reader_below_the_minimum_rate_is_cut_and_one_at_twice_the_rate_is_not() {
    let node = Simulated::start(|config| {
        config.response_stall = SECOND * 10;
        config.response_rate_min = 16 << 10;
    })
    .await;
    for (each_second, is_cut) in [(32 * KIB, false), (8 * KIB, true)] {
        let (mut reader, mut piece) = (node.reader().await, vec![0; each_second]);
        let mut taken = 0;
        while reader.read_exact(&mut piece).await.is_ok() {
            taken += each_second;
            node.env.clock.sleep(SECOND).await;
        }
        assert_eq!(taken + each_second < BYTES, is_cut, "{each_second} a second: {taken}");
        assert_eq!(node.cut("slow"), usize::from(is_cut), "{each_second} a second");
    }
    assert_eq!(node.cut("stalled"), 0, "they took bytes each second");
    node.stop().await;
}

#[tokio::test]
async fn request_is_in_progress_until_its_body_has_ended() {
    let node = Simulated::start(|config| config.requests_max = 1).await;
    let mut reader = node.reader().await;
    let (status, text) = node.ask("GET", "photos/large", "").await;
    assert_eq!((status, text.contains("ServerBusy")), (503, true), "{text}");
    assert!(rest(&mut reader).await > BYTES, "it was not cut for the other");
    let (status, text) = node.ask("GET", "photos/large", "").await;
    assert_eq!((status, text.len()), (200, BYTES));
    node.stop().await;
}
