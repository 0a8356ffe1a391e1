//! A connection that tells how fast its client takes what is sent.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;

use crate::env::Clock;
use crate::env::net::Stream;
use crate::frontend::answers::Flow;

/// A stream whose writes are noted. A body is not polled while its connection is full, so it cannot
/// tell itself.
pub(crate) struct Paced {
    stream: Box<dyn Stream>,
    flow: Arc<Flow>,
    clock: Arc<dyn Clock>,
    /// Whether the last write met a full connection.
    full: bool,
}

impl fmt::Debug for Paced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced").field("full", &self.full).finish_non_exhaustive()
    }
}

impl Paced {
    /// Notes the writes to `stream` in `flow`.
    pub(crate) fn new(stream: Box<dyn Stream>, flow: Arc<Flow>, clock: Arc<dyn Clock>) -> Self {
        Self { stream, flow, clock, full: false }
    }

    /// The clock is asked only around a full connection.
    fn note(&mut self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => {
                if !self.full {
                    self.full = true;
                    self.flow.offer(self.clock.monotonic());
                }
            }
            Poll::Ready(Ok(bytes)) if self.full => {
                self.full = false;
                self.flow.took(*bytes as u64, self.clock.monotonic());
            }
            Poll::Ready(Ok(bytes)) => self.flow.took_more(*bytes as u64),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.stream).poll_write(cx, buf);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.stream).poll_write_vectored(cx, bufs);
        self.note(&written);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::env::SimClock;
    use crate::frontend::answers::Flows;

    #[tokio::test(start_paused = true)]
    async fn time_is_counted_only_while_the_connection_is_full() {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let flows = Arc::new(Flows::default());
        let watch = flows.connection();
        let (mut near, far) = tokio::io::duplex(16);
        let mut paced = Paced::new(Box::new(far), Arc::clone(watch.flow()), Arc::clone(&clock));
        paced.write_all(&[1; 16]).await.unwrap();
        clock.sleep(Duration::from_secs(100)).await;
        assert_eq!(watch.flow().in_the_way(clock.monotonic()), None, "nothing more is to be sent");
        let blocked = tokio::time::timeout(Duration::from_secs(5), paced.write_all(&[2; 8])).await;
        assert!(blocked.is_err());
        let still = watch.flow().in_the_way(clock.monotonic());
        assert_eq!(still, Some(Duration::from_secs(5)));
        near.read_exact(&mut [0; 16]).await.unwrap();
        paced.write_all(&[2; 8]).await.unwrap();
        assert_eq!(watch.flow().in_the_way(clock.monotonic()), None);
    }
}
