//! Clients that send their bodies slowly or not at all, on a node in simulated time.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;

use super::simulated::KIB;
use super::simulated::SECOND;
use super::simulated::Simulated;
use super::*;

/// The account that does not upload slowly.
const OTHER: &str = "other";

/// An upload in progress.
struct Upload {
    stream: DuplexStream,
    left: usize,
}

impl Simulated {
    /// Sends the head of an upload, and all of its body but `left` bytes.
    async fn upload(&self, len: usize, left: usize) -> Upload {
        let mut stream = self.blob.connect().await.unwrap();
        let line = signed("PUT", "photos/new", &self.signature);
        let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{BLOCK_BLOB}");
        let head = format!("{head}Connection: close\r\nContent-Length: {len}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![7; len - left]).await.unwrap();
        Upload { stream, left }
    }

    /// Sends `piece` bytes each second, until there is an answer; its status.
    async fn trickle(&self, mut upload: Upload, piece: usize, every: Duration) -> u16 {
        let mut answer = [0; 12];
        loop {
            tokio::select! {
                biased;
                read = upload.stream.read_exact(&mut answer) => { read.unwrap(); break }
                () = self.env.clock.sleep(every) => {}
            }
            let piece = piece.min(upload.left);
            upload.left -= piece;
            // It fails once the server has closed the connection.
            drop(upload.stream.write_all(&vec![7; piece]).await);
        }
        std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap()
    }

    /// What another account than the one that uploads is answered.
    async fn other(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let sign = if path.contains('?') { '&' } else { '?' };
        let line = format!("{method} /{OTHER}/{path}{sign}{}", signature_for(OTHER));
        ask(&self.blob, &line, BLOCK_BLOB, body).await
    }

    /// Sends a request of another account each second until its answer has `status`, and returns
    /// the time that takes. The first answer is 503.
    async fn until(&self, status: u16, method: &str, path: &str, body: &str) -> Duration {
        let began = self.env.clock.monotonic();
        let (first, text) = self.other(method, path, body).await;
        assert_eq!((first, text.contains("ServerBusy")), (503, true), "{text}");
        while self.other(method, path, body).await.0 != status {
            self.env.clock.sleep(SECOND).await;
        }
        self.env.clock.monotonic() - began
    }

    /// How many uploads were cut for this reason.
    fn uploads_cut(&self, reason: &str) -> usize {
        self.counter("uploads_cut", reason)
    }
}

#[tokio::test]
async fn upload_that_brings_nothing_is_cut_after_the_idle_time() {
    let node = Simulated::start(|config| {
        config.body_idle = SECOND * 10;
        config.request_rate_min = 0;
    })
    .await;
    for (pause, status) in [(8, 201), (12, 408)] {
        let upload = node.upload(KIB, 1).await;
        assert_eq!(node.trickle(upload, 1, SECOND * pause).await, status, "after {pause} s");
        assert_eq!(node.uploads_cut("stalled"), usize::from(status == 408), "after {pause} s");
    }
    node.stop().await;
}

#[tokio::test]
async fn upload_below_the_minimum_rate_is_cut_and_one_at_twice_the_rate_is_not() {
    let node = Simulated::start(|config| {
        config.body_idle = SECOND * 10;
        config.request_rate_min = 1 << 10;
    })
    .await;
    for (each_second, status, cut) in [(2 * KIB, 201, 0), (KIB / 2, 408, 1)] {
        let upload = node.upload(64 * KIB, 64 * KIB).await;
        assert_eq!(node.trickle(upload, each_second, SECOND).await, status, "{each_second}");
        assert_eq!(node.uploads_cut("slow"), cut, "{each_second} a second");
    }
    // What came at first does not pay for the rest.
    let began = node.env.clock.monotonic();
    let upload = node.upload(1 << 20, 100).await;
    assert_eq!(node.trickle(upload, 1, SECOND * 8).await, 408);
    let took = node.env.clock.monotonic() - began;
    assert!(took < SECOND * 30, "{took:?}");
    assert_eq!((node.uploads_cut("slow"), node.uploads_cut("stalled")), (2, 0));
    // Slow, but soon done.
    let upload = node.upload(KIB, 8).await;
    assert_eq!(node.trickle(upload, 1, SECOND).await, 201);
    node.stop().await;
}

#[tokio::test]
async fn empty_frames_are_no_progress() {
    let node = Simulated::start(|config| {
        config.body_idle = SECOND * 10;
        config.request_rate_min = 0;
    })
    .await;
    let io = TokioIo::new(node.blob.connect().await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    drop(node.env.tasks.spawn("connection", async { drop(connection.await) }));
    let clock = Arc::clone(&node.env.clock);
    let empty = stream::unfold(clock, |clock| async {
        clock.sleep(SECOND).await;
        Some((Ok::<_, std::io::Error>(Frame::data(Bytes::new())), clock))
    });
    let line = signed("PUT", "photos/new", &node.signature);
    let uri = format!("http://localhost{}", line.split_once(' ').unwrap().1);
    let request = http::Request::put(uri).header("x-ms-blob-type", "BlockBlob");
    let request = request.header("content-length", 10).body(StreamBody::new(empty.boxed()));
    let answer = tokio::time::timeout(SECOND * 60, sender.send_request(request.unwrap())).await;
    assert_eq!(answer.expect("it is cut").unwrap().status(), 408);
    assert_eq!(node.uploads_cut("stalled"), 1);
    drop(sender);
    node.stop().await;
}

/// A node with two accounts, of which one was alone for a while.
async fn shared(change: impl FnOnce(&mut Config)) -> Simulated {
    let node = Simulated::start(|config| {
        config.accounts.push(format!("{OTHER}:{DEVELOPMENT_KEY}").parse().unwrap());
        change(config);
    })
    .await;
    assert_eq!(node.other("PUT", "films?restype=container", "").await.0, 201);
    node.env.clock.sleep(SECOND * 15).await;
    node
}

#[tokio::test]
async fn account_that_uploads_slowly_leaves_room_among_the_requests_to_another() {
    let node = shared(|config| config.requests_max = 16).await;
    let uploads = join_all((0..16).map(|_| node.upload(KIB, KIB / 2))).await;
    let uploads = uploads.into_iter().map(|upload| node.trickle(upload, 1, SECOND * 4));
    let other = node.until(404, "GET", "films/none", "");
    let (statuses, took) = tokio::join!(join_all(uploads), other);
    assert!(took < SECOND * 10, "{took:?}");
    assert_eq!(statuses, [408; 16], "slower than the minimum rate");
    let cut = node.uploads_cut("in_the_way");
    assert!((1..=8).contains(&cut), "{cut}: it keeps its share");
    assert_eq!(node.uploads_cut("slow"), 16 - cut);
    node.stop().await;
}

#[tokio::test]
async fn account_that_uploads_slowly_leaves_memory_for_bodies_to_another() {
    let node = shared(|_| ()).await;
    let uploads = join_all((0..260).map(|_| node.upload(1 << 20, 100))).await;
    // What came while the other is about would be refused, and free the memory.
    let uploads = uploads.into_iter().map(|upload| node.trickle(upload, 1, SECOND * 40));
    node.env.clock.sleep(SECOND).await;
    let body = "x".repeat(1 << 20);
    let other = node.until(201, "PUT", "films/new", &body);
    let (statuses, took) = tokio::join!(join_all(uploads), other);
    assert!(took < SECOND * 10, "{took:?}");
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    assert!(count(503) < 10 && count(503) + count(408) == 260, "{statuses:?}");
    assert!(node.uploads_cut("in_the_way") > 0);
    node.stop().await;
}
