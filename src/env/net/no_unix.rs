//! Windows has Unix sockets, and the libraries that we use do not have them there.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use async_trait::async_trait;

use super::Listener;
use super::Stream;

/// No listener.
#[derive(Debug)]
pub enum UnixListen {}

impl UnixListen {
    /// Refuses.
    ///
    /// # Errors
    /// `Unsupported`.
    #[expect(clippy::unused_async, reason = "as on Unix")]
    pub async fn bind(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[async_trait]
impl Listener for UnixListen {
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        match *self {}
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        match *self {}
    }
}

/// Refuses.
///
/// # Errors
/// `Unsupported`.
#[expect(clippy::unused_async, reason = "as on Unix")]
pub async fn connect_unix(_: &Path) -> io::Result<Box<dyn Stream>> {
    Err(io::ErrorKind::Unsupported.into())
}
