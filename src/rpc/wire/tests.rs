use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::io::ReadBuf;

use super::*;
use crate::rpc::packet::Draft;
use crate::rpc::packet::Head;
use crate::rpc::packet::Kind;

fn packet(call: u64, message: &[u8], payload: &[usize]) -> Outgoing {
    let mut draft = Draft::new();
    draft.message().extend_from_slice(message);
    let piece = |bytes: &usize| Bytes::from(pattern(*bytes));
    draft.finish(Head::bare(Kind::Call, call), payload.iter().map(piece).collect()).unwrap()
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

/// The number of a call, its message and its payload.
type Seen = (u64, Vec<u8>, Vec<u8>);

/// Packets with short and long parts, and what a reader must see.
fn samples() -> (Vec<Outgoing>, Vec<Seen>) {
    let long = pattern(70_000);
    let shapes: [(&[u8], &[usize]); 6] = [
        (b"", &[]),
        (b"short", &[3]),
        (&long, &[]),
        (b"m", &[200_000, 1, 40_000]),
        (b"", &[9]),
        (&long, &[16_384]),
    ];
    let mut sent = Vec::new();
    let mut seen = Vec::new();
    for (call, (message, payload)) in (1..).zip(shapes) {
        sent.push(packet(call, message, payload));
        let payload = payload.iter().flat_map(|bytes| pattern(*bytes)).collect();
        seen.push((call, message.to_vec(), payload));
    }
    (sent, seen)
}

fn bytes_of(packets: &[Outgoing]) -> Vec<u8> {
    let whole = packets.iter().map(|one| [one.front.as_ref(), &one.payload.concat()].concat());
    whole.collect::<Vec<_>>().concat()
}

/// A stream that moves so many bytes in a call.
struct Slow<'a> {
    bytes: &'a [u8],
    taken: Vec<u8>,
    step: usize,
}

impl AsyncRead for Slow<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = self.step.min(self.bytes.len()).min(into.remaining());
        let (now, later) = self.bytes.split_at(bytes);
        into.put_slice(now);
        self.bytes = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Slow<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let bytes = &bytes[..self.step.min(bytes.len())];
        self.taken.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut left = self.step;
        for slice in slices {
            let bytes = &slice[..left.min(slice.len())];
            self.taken.extend_from_slice(bytes);
            left -= bytes.len();
        }
        Poll::Ready(Ok(self.step - left))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn slow(bytes: &[u8], step: usize) -> Slow<'_> {
    Slow { bytes, taken: Vec::new(), step }
}

const STEPS: [usize; 7] = [1, 7, 48, 1000, 16_384, 33_000, usize::MAX >> 1];

#[tokio::test]
async fn packets_are_read_as_they_were_sent_in_whatever_pieces_they_arrive() {
    let (sent, seen) = samples();
    let bytes = bytes_of(&sent);
    for step in STEPS {
        let mut reader = PacketReader::new(slow(&bytes, step));
        for (call, message, payload) in &seen {
            let packet = reader.next(|_| Ok(())).await.unwrap();
            assert_eq!(packet.head, Head::bare(Kind::Call, *call));
            assert!(packet.message == message && packet.payload == payload, "{call}, {step}");
        }
        let end = reader.next(|_| Ok(())).await.unwrap_err();
        assert!(matches!(end, ReadError::Closed), "{end}");
    }
}

#[tokio::test]
async fn packets_are_written_whole_however_much_each_call_takes() {
    let (sent, _) = samples();
    for step in STEPS {
        let (queue, mut queued) = mpsc::channel(100);
        // More pieces than one call of the system takes.
        for _ in 0..12 {
            for packet in sent.clone() {
                queue.try_send(packet).unwrap();
            }
        }
        drop(queue);
        let mut stream = slow(&[], step);
        let progress = Progress::default();
        write_queued(&mut stream, &mut queued, Some, &progress).await.unwrap();
        // What is taken at once says nothing about the other side.
        assert_eq!(progress.get() > 0, step < 1 << 20, "{step}");
        assert!(stream.taken == bytes_of(&sent).repeat(12), "{step}");
    }
}

#[tokio::test]
async fn stream_that_ends_in_a_packet_is_an_error() {
    let (sent, _) = samples();
    let bytes = bytes_of(&sent[3..4]);
    for len in [1, 47, 48, 49, 50, 100_000, bytes.len() - 1] {
        let mut reader = PacketReader::new(slow(&bytes[..len], 1000));
        let error = reader.next(|_| Ok(())).await.unwrap_err();
        assert!(matches!(error, ReadError::Io(_)), "{len}: {error}");
    }
}

#[tokio::test]
async fn packet_that_is_not_accepted_is_not_read_any_further() {
    let (sent, _) = samples();
    let bytes = bytes_of(&sent[3..4]);
    let mut reader = PacketReader::new(slow(&bytes, HEAD_BYTES));
    let refuse = |unchecked: &Unchecked| {
        assert_eq!(unchecked.lengths, Lengths { message: 1, payload: 240_001 });
        Err(Malformed("something else"))
    };
    let error = reader.next(refuse).await.unwrap_err();
    assert!(matches!(error, ReadError::Malformed("something else")), "{error}");
    assert_eq!(reader.stream.bytes.len(), bytes.len() - HEAD_BYTES);
}
