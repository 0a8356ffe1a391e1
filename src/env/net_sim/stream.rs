//! A stream of a simulated network, as a program holds it.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::time::Instant;
use tokio::time::Sleep;

use crate::env::net_sim::connection::Step;
use crate::env::net_sim::pipe::Phase;
use crate::env::net_sim::world::Shared;
use crate::env::net_sim::world::Socket;

/// Wakes a half of a stream when something arrives.
#[derive(Debug, Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready at that time. Without a time the world alone wakes the task.
    fn poll(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = at else { return Poll::Pending };
        let sleep = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}

/// One end of a connection. Dropping it ends the connection.
#[derive(Debug)]
pub(super) struct SimStream {
    shared: Arc<Shared>,
    socket: Socket,
    read_timer: Timer,
    write_timer: Timer,
}

impl SimStream {
    pub(super) fn new(shared: Arc<Shared>, socket: Socket) -> Self {
        Self { shared, socket, read_timer: Timer::default(), write_timer: Timer::default() }
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let step = self.shared.lock().read(self.socket, cx, buf);
            match step {
                Step::Done(read) => return Poll::Ready(read),
                Step::Wait(at) => ready!(self.read_timer.poll(at, cx)),
            }
        }
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let step = self.shared.lock().write(self.socket, cx, bufs);
            match step {
                Step::Done(written) => return Poll::Ready(written),
                Step::Wait(at) => ready!(self.write_timer.poll(at, cx)),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing to do: what was written is on its way.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shared.lock().shut(self.socket))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.shared.lock().hang_up(self.socket, Phase::Closed);
    }
}
