//! The network seam: accepting byte streams.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

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
