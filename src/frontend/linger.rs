//! Closes a connection so that its client can read the end of the last answer.
//!
//! A socket that is closed while its client still sends, for example window updates, answers with a
//! reset. The client's system then drops bytes that its program has not read yet, perhaps the end
//! of an answer (RFC 9112, section 9.6). So the server shuts down its side, and reads briefly until
//! the client closes too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::io::ReadBuf;

use crate::env::Clock;
use crate::env::net::Stream;

/// How long a client may take to close its side.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes that are read and dropped at a time.
const PIECE: usize = 4 << 10;

/// A stream that returns to its lender when it is dropped.
pub(super) struct Lent {
    stream: Option<Box<dyn Stream>>,
    back: Arc<Mutex<Option<Box<dyn Stream>>>>,
}

/// Receives a lent stream back.
pub(super) struct Lender(Arc<Mutex<Option<Box<dyn Stream>>>>);

/// Lends a stream.
pub(super) fn lend(stream: Box<dyn Stream>) -> (Lent, Lender) {
    let back = Arc::default();
    (Lent { stream: Some(stream), back: Arc::clone(&back) }, Lender(back))
}

impl Lender {
    /// Closes the stream, if it was returned, so that its client can read the last bytes.
    pub(super) async fn linger(self, clock: &dyn Clock) {
        let Some(mut stream) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let client_closes = async {
            if stream.shutdown().await.is_ok() {
                let mut piece = vec![0; PIECE];
                while stream.read(&mut piece).await.is_ok_and(|read| read > 0) {}
            }
        };
        tokio::select! {
            biased;
            () = client_closes => {}
            () = clock.sleep(LINGER) => {}
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = self.stream.take();
    }
}

impl Lent {
    fn stream(&mut self) -> Pin<&mut dyn Stream> {
        Pin::new(self.stream.as_mut().expect("lent until it is dropped"))
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buf)
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_write_vectored())
    }
}
