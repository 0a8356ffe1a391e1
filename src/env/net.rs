//! The interface of the network: accepting and opening byte streams.

mod accepted;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
#[path = "net/no_unix.rs"]
mod unix;

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::net::TcpSocket;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::sync::mpsc;

use crate::env::system::limit_unsent;

use accepted::Open;
use accepted::UNSENT_BYTES;

pub use unix::UnixListen;
pub use unix::connect_unix;

/// A connected byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Accepts connections.
#[async_trait]
pub trait Listener: Send + Sync + Debug {
    /// Waits for the next connection. Cancel safe.
    ///
    /// # Errors
    /// The system's error. The caller should log it, pause and try again.
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)>;

    /// The address on which it listens.
    ///
    /// # Errors
    /// The system's error.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// The most connections that wait to be accepted. The system may allow fewer (`net.core.somaxconn`,
/// 4,096 by default). The first packet of a further client is dropped, and the client sends it
/// again after a second.
const BACKLOG: u32 = 4096;

/// Accepts TCP connections, without delaying small packets.
#[derive(Debug)]
pub struct TcpListen {
    listener: TcpListener,
    open: Open,
}

impl TcpListen {
    /// Listens on an address. Port 0 selects a free port.
    ///
    /// # Errors
    /// The system's error, such as an address in use.
    #[expect(clippy::unused_async, reason = "only inside a runtime may it be called")]
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A restarted server can use its port while old connections are still in TIME_WAIT.
        socket.set_reuseaddr(true)?;
        // Accepted connections inherit this limit.
        limit_unsent(&socket2::SockRef::from(&socket), UNSENT_BYTES)?;
        socket.bind(address)?;
        Ok(Self { listener: socket.listen(BACKLOG)?, open: Open::default() })
    }
}

#[async_trait]
impl Listener for TcpListen {
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        let (stream, peer) = self.listener.accept().await?;
        Ok((Box::new(self.open.accepted(stream)?), peer))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Opens connections.
#[async_trait]
pub trait Dial: Send + Sync + Debug {
    /// Resolves a name to its addresses. If `host` is an address, returns it.
    ///
    /// # Errors
    /// The resolver's error.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Connects. Cancel safe.
    ///
    /// # Errors
    /// The system's error.
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>>;
}

/// Connects over TCP, without delaying small packets.
#[derive(Clone, Copy, Debug)]
pub struct TcpDial;

#[async_trait]
impl Dial for TcpDial {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// Bytes that a pipe holds in each direction before its writer waits.
const PIPE_BYTES: usize = 64 * 1024;

/// Connections of a [`PipeListen`] that may wait to be accepted.
const PIPE_BACKLOG: usize = 128;

/// The address that pipes report for both ends: one of the documentation range (RFC 5737).
const PIPE_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 80);

/// Accepts connections made inside the process: no sockets, so it runs under simulated time.
#[derive(Debug)]
pub struct PipeListen {
    incoming: Mutex<mpsc::Receiver<DuplexStream>>,
}

/// Connects to a [`PipeListen`]; cheap to clone.
#[derive(Clone, Debug)]
pub struct PipeConnect {
    outgoing: mpsc::Sender<DuplexStream>,
}

impl PipeListen {
    /// A listener and the handle to connect to it.
    #[must_use]
    pub fn new() -> (Self, PipeConnect) {
        let (outgoing, incoming) = mpsc::channel(PIPE_BACKLOG);
        (Self { incoming: Mutex::new(incoming) }, PipeConnect { outgoing })
    }
}

impl PipeConnect {
    /// Opens a connection; waits while the backlog is full.
    ///
    /// # Errors
    /// `ConnectionRefused` if the listener was dropped.
    pub async fn connect(&self) -> io::Result<DuplexStream> {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        match self.outgoing.send(far).await {
            Ok(()) => Ok(near),
            Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

#[async_trait]
impl Listener for PipeListen {
    /// Waits forever after every [`PipeConnect`] was dropped.
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        match self.incoming.lock().await.recv().await {
            Some(stream) => Ok((Box::new(stream), PIPE_ADDRESS)),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(PIPE_ADDRESS)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Less than the second after which a client sends a dropped packet again.
    const CONNECT_WAIT: std::time::Duration = std::time::Duration::from_millis(900);

    pub(super) async fn check_echo(listener: &dyn Listener, mut client: impl Stream) {
        client.write_all(b"ping").await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut got = [0; 4];
        server.read_exact(&mut got).await.unwrap();
        server.write_all(&got).await.unwrap();
        client.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"ping");
    }

    #[tokio::test]
    async fn tcp_carries_bytes_both_ways() {
        let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        check_echo(&listener, client).await;
    }

    #[tokio::test]
    async fn client_that_does_not_read_makes_the_system_buffer_little() {
        let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 << 10).unwrap();
        let _client = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let (piece, mut written) = (vec![0; 64 << 10], 0);
        let quiet = std::time::Duration::from_millis(300);
        while let Ok(more) = tokio::time::timeout(quiet, server.write(&piece)).await {
            written += more.unwrap();
        }
        assert!(written <= 512 << 10, "{written} bytes");
    }

    /// With a shorter backlog some of these connections would wait for a second or more.
    #[tokio::test]
    async fn many_clients_connect_before_an_accept() {
        let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let clients: Vec<_> = (0..400)
            .map(|_| std::net::TcpStream::connect_timeout(&address, CONNECT_WAIT))
            .collect();
        assert_eq!(clients.iter().filter(|one| one.is_err()).count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn pipe_carries_bytes_both_ways() {
        let (listener, connect) = PipeListen::new();
        check_echo(&listener, connect.connect().await.unwrap()).await;
    }

    #[tokio::test]
    async fn pipe_refuses_when_listener_is_gone() {
        let (listener, connect) = PipeListen::new();
        drop(listener);
        let refused = connect.connect().await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
