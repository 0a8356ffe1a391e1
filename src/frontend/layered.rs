//! A byte stream with a layer that observes reads and writes.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;

use crate::env::net::Stream;

/// Observes a stream.
pub(crate) trait Layer: fmt::Debug + Send + Unpin {
    /// Puts bytes into `buf` that are read before those of the stream. Returns whether it did.
    fn read_first(&mut self, _buf: &mut ReadBuf<'_>) -> bool {
        false
    }

    /// Called with the bytes read from the stream.
    fn read(&mut self, _bytes: &[u8]) {}

    /// Called with the result of a write to the stream.
    fn wrote(&mut self, _written: &Poll<io::Result<usize>>) {}
}

/// A stream under a layer.
pub(crate) struct Layered<L> {
    stream: Box<dyn Stream>,
    layer: L,
}

impl<L: Layer> fmt::Debug for Layered<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered").field("layer", &self.layer).finish_non_exhaustive()
    }
}

impl<L: Layer> Layered<L> {
    /// Puts `layer` over `stream`.
    pub(crate) const fn new(stream: Box<dyn Stream>, layer: L) -> Self {
        Self { stream, layer }
    }
}

impl<L: Layer> AsyncRead for Layered<L> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.layer.read_first(buf) {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut *self.stream).poll_read(cx, buf);
        self.layer.read(buf.filled().get(before..).unwrap_or_default());
        read
    }
}

impl<L: Layer> AsyncWrite for Layered<L> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.stream).poll_write(cx, buf);
        self.layer.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.stream).poll_write_vectored(cx, bufs);
        self.layer.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(cx)
    }
}
