//! The network seam: accepting and opening byte streams.

mod accepted;

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use async_trait::async_trait;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::net::TcpSocket;
use tokio::net::TcpStream;
use tokio::net::UnixListener;
use tokio::net::UnixSocket;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::sync::mpsc;

use accepted::Open;
use accepted::UNSENT_BYTES;

/// A connected byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Accepts connections.
#[async_trait]
pub trait Listener: Send + Sync + Debug {
    /// Waits for the next connection. Cancel safe.
    ///
    /// # Errors
    /// The system's error; the caller logs it, pauses and goes on.
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)>;

    /// Where it listens.
    ///
    /// # Errors
    /// The system's error.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// Connections that may wait to be accepted; the system may allow fewer (`net.core.somaxconn`,
/// 4,096 by default). Beyond it a client's first packet is dropped, which it sends again only after
/// a second.
const BACKLOG: u32 = 4096;

/// Accepts TCP connections, without delaying small packets.
#[derive(Debug)]
pub struct TcpListen {
    listener: TcpListener,
    open: Open,
}

impl TcpListen {
    /// Listens on an address; port 0 takes a free one.
    ///
    /// # Errors
    /// The system's error, such as an address in use.
    #[expect(clippy::unused_async, reason = "only inside a runtime may it be called")]
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A server that is started again may take its port though old connections linger.
        socket.set_reuseaddr(true)?;
        // Accepted connections inherit it.
        socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES)?;
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

/// Accepts connections on a Unix socket that only this process's user may open.
#[derive(Debug)]
pub struct UnixListen {
    listener: UnixListener,
    path: PathBuf,
}

/// Whom connections over a Unix socket come from: this machine.
const UNIX_PEER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

impl UnixListen {
    /// Makes the socket, in the place of one that nobody listens on any more.
    ///
    /// # Errors
    /// The system's; `AddrInUse` when somebody listens there, or when it is no socket.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        match UnixStream::connect(path).await {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            // Left behind by a process that was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove(path)?,
            // What is wrong with the path is told when the socket is made.
            Err(_) => {}
        }
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        // Before it listens: until then nobody is let in.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener: socket.listen(BACKLOG)?, path: path.to_owned() })
    }
}

impl Drop for UnixListen {
    fn drop(&mut self) {
        // A socket that stays is taken over by the next start.
        if let Err(error) = remove(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the socket was not removed");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a socket is no data")]
fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

#[async_trait]
impl Listener for UnixListen {
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        let (stream, _) = self.listener.accept().await?;
        Ok((Box::new(stream), UNIX_PEER))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(UNIX_PEER)
    }
}

/// Opens connections.
#[async_trait]
pub trait Dial: Send + Sync + Debug {
    /// The addresses of a name, or the address that `host` is.
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

/// Bytes a pipe holds in each direction before its writer waits.
const PIPE_BYTES: usize = 64 * 1024;

/// Connections of a [`PipeListen`] that may wait to be accepted.
const PIPE_BACKLOG: usize = 128;

/// Where pipes pretend to listen and connect from: an address of the documentation range (RFC
/// 5737).
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
    /// A listener and what connects to it.
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
    /// `ConnectionRefused` when the listener is gone.
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
    /// Waits for ever once every [`PipeConnect`] is gone.
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

    /// Less than the second after which a dropped packet is sent again.
    const HERD_WAIT: std::time::Duration = std::time::Duration::from_millis(900);

    async fn check_echo(listener: &dyn Listener, mut client: impl Stream) {
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

    #[tokio::test]
    async fn unix_sockets_are_for_their_owner_and_replace_dead_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let listener = UnixListen::bind(&path).await.unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        check_echo(&listener, UnixStream::connect(&path).await.unwrap()).await;
        let taken = UnixListen::bind(&path).await.unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
        // As a killed process leaves it.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        drop(UnixListen::bind(&path).await.unwrap());
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        UnixListen::bind(&data).await.unwrap_err();
        assert!(data.exists(), "what is no socket is left alone");
    }

    /// With a short backlog the connections above it would wait for a second and more.
    #[tokio::test]
    async fn a_herd_connects_before_anybody_accepts() {
        let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let herd: Vec<_> =
            (0..400).map(|_| std::net::TcpStream::connect_timeout(&address, HERD_WAIT)).collect();
        assert_eq!(herd.iter().filter(|one| one.is_err()).count(), 0);
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
