//! An accepted TCP connection, and how much the system may buffer for it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

/// The most that the system buffers of one connection before it is sent. Without a limit it takes
/// MiBs for each client that does not read. What is on its way to the client does not count.
///
/// A step of a body (1 MiB) fits in: writing it in parts takes a fifth more processor time.
pub(super) const UNSENT_BYTES_MAX: u32 = 1 << 20;

/// The same, of a connection that is accepted when there are many.
const UNSENT_BYTES_MIN: u32 = 256 << 10;

/// Beyond this for all connections of a listener, new ones get less.
const UNSENT_BYTES_OF_FEW: usize = 256 << 20;

/// What the system may buffer of a new connection, when it is one of `connections`.
fn unsent_bytes(connections: usize) -> u32 {
    let share = UNSENT_BYTES_OF_FEW / connections.max(1);
    u32::try_from(share).unwrap_or(UNSENT_BYTES_MAX).clamp(UNSENT_BYTES_MIN, UNSENT_BYTES_MAX)
}

/// Counts the connections of a listener that are open.
#[derive(Debug, Default)]
pub(super) struct Open(Arc<()>);

impl Open {
    /// Prepares a connection whose listener sets [`UNSENT_BYTES_MAX`].
    ///
    /// # Errors
    /// The system's: the connection is broken.
    pub(super) fn accepted(&self, stream: TcpStream) -> io::Result<Accepted> {
        stream.set_nodelay(true)?;
        let open = Arc::clone(&self.0);
        let unsent = unsent_bytes(Arc::strong_count(&open) - 1);
        if unsent < UNSENT_BYTES_MAX {
            socket2::SockRef::from(&stream).set_tcp_notsent_lowat(unsent)?;
        }
        Ok(Accepted { stream, _open: open })
    }
}

/// A connection, counted while it is open.
#[derive(Debug)]
pub(super) struct Accepted {
    stream: TcpStream,
    _open: Arc<()>,
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
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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

    #[test]
    fn each_of_many_connections_gets_less() {
        for (connections, unsent) in [(1, 1 << 20), (256, 1 << 20), (512, 512 << 10)] {
            assert_eq!(unsent_bytes(connections), unsent, "{connections}");
        }
        assert_eq!(unsent_bytes(1024), UNSENT_BYTES_MIN);
        assert_eq!(unsent_bytes(1_000_000), UNSENT_BYTES_MIN);
        // As many as a server takes by default, none of which reads.
        let all: u64 = (1..=4096).map(|connections| u64::from(unsent_bytes(connections))).sum();
        assert!(all < 1500 << 20, "{} MiB", all >> 20);
    }

    #[tokio::test]
    async fn open_connections_decide_what_the_system_may_buffer() {
        let listener = crate::env::net::TcpListen::bind("127.0.0.1:0".parse().unwrap()).await;
        let listener = listener.unwrap();
        let address = listener.listener.local_addr().unwrap();
        let connect = async || {
            let _client = TcpStream::connect(address).await.unwrap();
            listener.open.accepted(listener.listener.accept().await.unwrap().0).unwrap()
        };
        let unsent = |one: &Accepted| {
            let socket = socket2::SockRef::from(&one.stream);
            (socket.tcp_notsent_lowat().unwrap(), socket.tcp_nodelay().unwrap())
        };
        let open = || Arc::strong_count(&listener.open.0) - 1;
        let few = connect().await;
        assert_eq!((unsent(&few), open()), ((UNSENT_BYTES_MAX, true), 1));
        let others: Vec<_> = std::iter::repeat_n(Arc::clone(&listener.open.0), 2000).collect();
        let many = connect().await;
        assert_eq!(unsent(&many), (UNSENT_BYTES_MIN, true));
        drop((few, many, others));
        assert_eq!(open(), 0);
    }
}
