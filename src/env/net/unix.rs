//! Unix sockets.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;

use async_trait::async_trait;
use tokio::net::UnixListener;
use tokio::net::UnixSocket;
use tokio::net::UnixStream;

use crate::env::system::set_mode;

use super::BACKLOG;
use super::Listener;
use super::Stream;

/// Accepts connections on a Unix socket that only this process's user may open.
#[derive(Debug)]
pub struct UnixListen {
    listener: UnixListener,
    path: PathBuf,
}

/// The peer address of connections over a Unix socket: this machine.
const UNIX_PEER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

impl UnixListen {
    /// Makes the socket. Replaces a socket file on which no process listens.
    ///
    /// # Errors
    /// The system's error; `AddrInUse` if a process listens there, or if the file is not a socket.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        match UnixStream::connect(path).await {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            // A killed process left the file.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove(path)?,
            // Other errors are reported when the socket is bound.
            Err(_) => {}
        }
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        // Before it listens: no client can connect until then.
        set_mode(path, 0o600)?;
        Ok(Self { listener: socket.listen(BACKLOG)?, path: path.to_owned() })
    }
}

impl Drop for UnixListen {
    fn drop(&mut self) {
        // The next start replaces a socket file that stays.
        if let Err(error) = remove(&self.path) {
            tracing::debug!(
                %error, path = %self.path.display(),
                "the socket file was not removed; the next start replaces it"
            );
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

/// Connects to a Unix socket.
///
/// # Errors
/// The system's.
pub async fn connect_unix(path: &Path) -> io::Result<Box<dyn Stream>> {
    Ok(Box::new(UnixStream::connect(path).await?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::env::net::tests::check_echo;

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
        // The socket file of a killed process.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        drop(UnixListen::bind(&path).await.unwrap());
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        UnixListen::bind(&data).await.unwrap_err();
        assert!(data.exists(), "other files are not removed");
    }
}
