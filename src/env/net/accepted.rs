//! An accepted TCP connection, and how much the system may buffer for it.
//!
//! Without a limit the system buffers several MiB for each client that does not read. So it may
//! buffer at most 256 KiB that are not yet sent (`TCP_NOTSENT_LOWAT`). The limit for a client that
//! reads fast is higher: a step of a body (1 MiB) is then written with one call, which takes a
//! fifth less processor time.
//!
//! The limit for a slow client must stay low. The system accepts further bytes only when half of
//! the limit was sent, and only from that the server sees that a client is reading its answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;
use std::time::Instant;

use socket2::SockRef;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

use crate::env::system::limit_unsent;

/// The most unsent bytes that the system buffers for a connection. Bytes that were sent and not yet
/// acknowledged do not count.
pub(super) const UNSENT_BYTES: u32 = 256 << 10;

/// The most unsent bytes for a client that reads fast.
const UNSENT_BYTES_OF_FAST: u32 = 1 << 20;

/// The unsent bytes that the fast clients of a listener share.
const UNSENT_BYTES_OF_ALL: usize = 256 << 20;

/// A client that takes half of [`UNSENT_BYTES`] in less than this (13 MB/s) reads fast.
const FAST: Duration = Duration::from_millis(10);

/// A client that takes half of [`UNSENT_BYTES_OF_FAST`] in more than this (5 MB/s) no longer reads
/// fast.
const SLOW: Duration = Duration::from_millis(100);

/// The limit of unsent bytes for a fast client if there are this many connections.
fn unsent_of_fast(connections: usize) -> u32 {
    let share = UNSENT_BYTES_OF_ALL / connections.max(1);
    u32::try_from(share).unwrap_or(u32::MAX).clamp(UNSENT_BYTES, UNSENT_BYTES_OF_FAST)
}

/// Counts the open connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Open(Arc<()>);

impl Open {
    /// Prepares a connection whose listener sets [`UNSENT_BYTES`].
    ///
    /// # Errors
    /// The system's error: the connection is broken.
    pub(super) fn accepted(&self, stream: TcpStream) -> io::Result<Accepted> {
        stream.set_nodelay(true)?;
        let open = Arc::clone(&self.0);
        Ok(Accepted { stream, open, full_since: None, is_fast: false })
    }
}

/// A connection, counted while it is open.
#[derive(Debug)]
pub(super) struct Accepted {
    stream: TcpStream,
    open: Arc<()>,
    /// Since when the system's buffer is full.
    full_since: Option<Instant>,
    is_fast: bool,
}

impl Accepted {
    /// Learns from a write how fast the client reads.
    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        if written.is_pending() {
            if self.full_since.is_none() {
                self.full_since = Some(now());
            }
        } else if let Some(since) = self.full_since.take() {
            self.waited(now().saturating_duration_since(since));
        }
    }

    /// Notes that the system accepts bytes again, after the buffer was full for this long.
    fn waited(&mut self, time: Duration) {
        let unsent = if self.is_fast && time > SLOW {
            UNSENT_BYTES
        } else if !self.is_fast && time < FAST {
            unsent_of_fast(Arc::strong_count(&self.open) - 1)
        } else {
            return;
        };
        if !self.is_fast && unsent == UNSENT_BYTES {
            // With this many connections the limit is not raised.
            return;
        }
        // After an error the limit stays as it is.
        if limit_unsent(&SockRef::from(&self.stream), unsent).is_ok() {
            self.is_fast = unsent > UNSENT_BYTES;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the time of a real socket, and no decision of ours")]
fn now() -> Instant {
    Instant::now()
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    #[test]
    fn each_of_many_connections_gets_less() {
        for (connections, unsent) in [(1, MIB), (256, MIB), (512, MIB / 2)] {
            assert_eq!(unsent_of_fast(connections), unsent, "{connections}");
        }
        assert_eq!(unsent_of_fast(1024), UNSENT_BYTES);
        assert_eq!(unsent_of_fast(1_000_000), UNSENT_BYTES);
        // The most connections that a server takes by default. All were fast and none reads any
        // more.
        let all: u64 = (1..=4096).map(|connections| u64::from(unsent_of_fast(connections))).sum();
        assert!(all < 1500 << 20, "{} MiB", all >> 20);
    }

    #[tokio::test]
    async fn only_a_fast_client_of_few_has_more_buffered() {
        let listener = crate::env::net::TcpListen::bind("127.0.0.1:0".parse().unwrap()).await;
        let listener = listener.unwrap();
        let address = listener.listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).await.unwrap();
        let accepted = listener.listener.accept().await.unwrap().0;
        let mut one = listener.open.accepted(accepted).unwrap();
        let mut after = |time| {
            one.waited(time);
            let socket = SockRef::from(&one.stream);
            (socket.tcp_notsent_lowat().unwrap(), socket.tcp_nodelay().unwrap())
        };
        let (fast, slow) = (FAST / 2, SLOW * 2);
        assert_eq!(after(slow), (UNSENT_BYTES, true));
        assert_eq!(after(FAST), (UNSENT_BYTES, true));
        assert_eq!(after(fast), (MIB, true));
        assert_eq!(after(SLOW), (MIB, true), "between the two the limit stays");
        assert_eq!(after(slow), (UNSENT_BYTES, true));
        let others: Vec<_> = std::iter::repeat_n(Arc::clone(&listener.open.0), 2000).collect();
        assert_eq!(after(fast), (UNSENT_BYTES, true), "there are many");
        drop(others);
        assert_eq!(after(fast), (MIB, true));
        drop(one);
        assert_eq!(Arc::strong_count(&listener.open.0), 1, "a closed connection does not count");
    }

    /// The watch of slow answers relies on this: it must see within 5 s that a client reads 64 KiB
    /// per second.
    #[tokio::test]
    async fn a_slow_client_is_soon_seen_to_read() {
        use tokio::io::AsyncReadExt;
        use tokio::io::AsyncWriteExt;

        let listener = crate::env::net::TcpListen::bind("127.0.0.1:0".parse().unwrap()).await;
        let listener = listener.unwrap();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 << 10).unwrap();
        let mut client = socket.connect(listener.listener.local_addr().unwrap()).await.unwrap();
        let accepted = listener.listener.accept().await.unwrap().0;
        let mut server = listener.open.accepted(accepted).unwrap();
        let piece = vec![0; 64 << 10];
        let quiet = Duration::from_millis(200);
        while tokio::time::timeout(quiet, server.write(&piece)).await.is_ok() {}
        let (mut taken, mut buffer) = (0, vec![0; 16 << 10]);
        while tokio::time::timeout(Duration::from_millis(1), server.write(&piece)).await.is_err() {
            taken += client.read(&mut buffer).await.unwrap();
            assert!(taken < 320 << 10, "{taken} bytes were read and none accepted");
        }
    }
}
