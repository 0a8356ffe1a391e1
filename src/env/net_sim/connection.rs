//! A simulated connection: its two ends, and what befalls them.

use std::io;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::task::Waker;

use bytes::Bytes;
use bytes::BytesMut;
use tokio::io::ReadBuf;
use tokio::time::Instant;

use crate::env::net_sim::links::Link;
use crate::env::net_sim::links::Links;
use crate::env::net_sim::links::now;
use crate::env::net_sim::pipe::Phase;
use crate::env::net_sim::pipe::Pipe;
use crate::env::net_sim::pipe::What;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Dialer,
    Acceptor,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Dialer, Self::Acceptor];
}

/// How far an operation came.
#[derive(Debug)]
pub(super) enum Step<T> {
    Done(T),
    /// To be tried again at this time, if it is known, and after each change.
    Wait(Option<Instant>),
}

#[derive(Debug)]
struct End {
    address: SocketAddr,
    /// What this end sends.
    out: Pipe,
    /// It sends no further bytes.
    is_shut: bool,
    /// Its process was killed or its host lost power: it takes in nothing, and its stream fails.
    is_lost: bool,
    /// No stream exists.
    is_dropped: bool,
    /// Who waits to read from it.
    reading: Option<Waker>,
    /// Who waits to write to it.
    writing: Option<Waker>,
}

impl End {
    fn new(address: SocketAddr, out: Pipe) -> Self {
        let (is_shut, is_lost, is_dropped) = (false, false, false);
        Self { address, out, is_shut, is_lost, is_dropped, reading: None, writing: None }
    }

    fn wake(&mut self) {
        wake(&mut self.reading);
        wake(&mut self.writing);
    }
}

fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

fn failed<T>(kind: io::ErrorKind) -> Step<io::Result<T>> {
    Step::Done(Err(kind.into()))
}

/// The first `most` bytes of the pieces.
fn gather(pieces: &[IoSlice<'_>], most: usize) -> Bytes {
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut bytes = BytesMut::with_capacity(len.min(most));
    for piece in pieces {
        let len = piece.len().min(most - bytes.len());
        bytes.extend_from_slice(&piece[..len]);
    }
    bytes.freeze()
}

#[derive(Debug)]
pub(super) struct Connection {
    dialer: End,
    acceptor: End,
}

impl Connection {
    /// A connection whose dialer has just sent the end of the handshake.
    pub(super) fn new(links: &Links, dialer: SocketAddr, acceptor: SocketAddr) -> Self {
        let is_held = |from: SocketAddr, to: SocketAddr| {
            let link = (from.ip(), to.ip());
            links.blocked.contains(&link)
        };
        let there = Pipe::new(Phase::Opening, is_held(dialer, acceptor));
        let back = Pipe::new(Phase::Open, is_held(acceptor, dialer));
        let (dialer, acceptor) = (End::new(dialer, there), End::new(acceptor, back));
        let mut new = Self { dialer, acceptor };
        new.send(links, Side::Dialer, What::Notice(Phase::Open));
        new
    }

    /// The end of this side, and the other one.
    fn split(&mut self, side: Side) -> (&mut End, &mut End) {
        match side {
            Side::Dialer => (&mut self.dialer, &mut self.acceptor),
            Side::Acceptor => (&mut self.acceptor, &mut self.dialer),
        }
    }

    /// The link over which a side sends.
    pub(super) fn link(&self, side: Side) -> Link {
        let (dialer, acceptor) = (self.dialer.address.ip(), self.acceptor.address.ip());
        match side {
            Side::Dialer => (dialer, acceptor),
            Side::Acceptor => (acceptor, dialer),
        }
    }

    /// Receives all that has arrived. What was sent to a lost end stays in flight.
    pub(super) fn settle(&mut self) {
        let now = now();
        for side in Side::BOTH {
            let (near, far) = self.split(side);
            if !far.is_lost {
                near.out.settle(now);
            }
        }
    }

    fn send(&mut self, links: &Links, side: Side, what: What) {
        let at = links.arrival(self.link(side));
        let (near, far) = self.split(side);
        if near.out.send(what, at) {
            far.wake();
        }
        self.answer(links, side);
    }

    /// Lets the kernel of a host that has lost its end answer a packet of this side, once it
    /// arrives.
    fn answer(&mut self, links: &Links, side: Side) {
        let (from, to) = self.link(side);
        let (near, far) = self.split(side);
        let is_answered = far.is_lost && !far.out.is_reset() && !links.off.contains(&to);
        if is_answered && let Some(at) = near.out.next_at() {
            let way_back = links.arrival((to, from)).saturating_duration_since(now());
            far.out.send(What::Notice(Phase::Reset), at.max(now()) + way_back);
            near.wake();
        }
    }

    /// The dialer's address, once the end of the handshake has arrived.
    pub(super) fn opened(&mut self) -> Step<SocketAddr> {
        self.settle();
        match self.dialer.out.phase() {
            Phase::Opening => Step::Wait(self.dialer.out.next_at()),
            Phase::Open | Phase::Shut | Phase::Closed | Phase::Reset => {
                Step::Done(self.dialer.address)
            }
        }
    }

    pub(super) fn read(
        &mut self,
        links: &Links,
        side: Side,
        buf: &mut ReadBuf<'_>,
    ) -> Step<io::Result<()>> {
        self.settle();
        let (near, far) = self.split(side);
        if near.is_lost {
            return failed(io::ErrorKind::ConnectionReset);
        }
        let most = far.out.unread().min(buf.remaining());
        if most > 0 {
            far.out.read(links.read_len(most), buf);
            wake(&mut far.writing);
            return Step::Done(Ok(()));
        }
        if buf.remaining() == 0 {
            return Step::Done(Ok(()));
        }
        match far.out.phase() {
            Phase::Opening | Phase::Open => Step::Wait(far.out.next_at()),
            Phase::Shut | Phase::Closed => Step::Done(Ok(())),
            Phase::Reset => failed(io::ErrorKind::ConnectionReset),
        }
    }

    /// Writes as many bytes as there is room for, at least one.
    pub(super) fn write(
        &mut self,
        links: &Links,
        side: Side,
        pieces: &[IoSlice<'_>],
    ) -> Step<io::Result<usize>> {
        self.settle();
        let (near, far) = self.split(side);
        if near.is_lost || far.out.phase() == Phase::Reset {
            return failed(io::ErrorKind::ConnectionReset);
        }
        if near.is_shut || far.out.phase() == Phase::Closed {
            return failed(io::ErrorKind::BrokenPipe);
        }
        if pieces.iter().all(|piece| piece.is_empty()) {
            return Step::Done(Ok(0));
        }
        let bytes = gather(pieces, links.buffer_bytes.saturating_sub(near.out.used()));
        if bytes.is_empty() {
            return Step::Wait(far.out.end_at());
        }
        let len = bytes.len();
        self.send(links, side, What::Bytes(bytes));
        Step::Done(Ok(len))
    }

    /// Ends what a side sends.
    pub(super) fn shut(&mut self, links: &Links, side: Side) -> io::Result<()> {
        self.settle();
        let (near, far) = self.split(side);
        if near.is_lost || far.out.phase() == Phase::Reset {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if !near.is_shut {
            near.is_shut = true;
            wake(&mut near.writing);
            self.send(links, side, What::Notice(Phase::Shut));
        }
        Ok(())
    }

    /// Has whoever reads at a side woken.
    pub(super) fn wait_to_read(&mut self, side: Side, waker: &Waker) {
        self.split(side).0.reading = Some(waker.clone());
    }

    /// Has whoever writes at a side woken.
    pub(super) fn wait_to_write(&mut self, side: Side, waker: &Waker) {
        self.split(side).0.writing = Some(waker.clone());
    }

    /// Drops the stream of a side and sends the notice. Returns whether no stream is left.
    pub(super) fn hang_up(&mut self, links: &Links, side: Side, notice: Phase) -> bool {
        self.settle();
        let (near, far) = self.split(side);
        near.is_dropped = true;
        let (is_lost, is_last) = (near.is_lost, far.is_dropped);
        if !is_lost && !is_last {
            self.send(links, side, What::Notice(notice));
        }
        is_last
    }

    /// Stops what a side sends, if it has not arrived.
    pub(super) fn hold(&mut self, side: Side) {
        self.split(side).0.out.hold();
    }

    /// Lets it arrive.
    pub(super) fn release(&mut self, links: &Links, side: Side) {
        let at = links.arrival(self.link(side));
        let (near, far) = self.split(side);
        near.out.release(at);
        far.wake();
        self.answer(links, side);
    }

    /// Loses a random part of what a side has in flight, and resets the peer.
    pub(super) fn break_off(&mut self, links: &Links, side: Side) {
        let near = self.split(side).0;
        near.out.truncate(links.below(near.out.weight() + 1));
        self.send(links, side, What::Notice(Phase::Reset));
    }

    /// Kills the process of a side. A stream that it had dropped is the kernel's.
    pub(super) fn kill(&mut self, links: &Links, side: Side) {
        let near = self.split(side).0;
        if !near.is_lost && !near.is_dropped {
            near.is_lost = true;
            near.wake();
            self.break_off(links, side);
        }
    }

    /// Takes the power from the host of a side. Only what has left it can still arrive.
    pub(super) fn power_off(&mut self, links: &Links, side: Side) {
        let near = self.split(side).0;
        near.is_lost = true;
        near.wake();
        let keep = if near.out.is_held() { 0 } else { links.below(near.out.weight() + 1) };
        near.out.truncate(keep);
    }

    /// Sends again what the peer of a side did not acknowledge while it was without power.
    pub(super) fn send_again(&mut self, links: &Links, side: Side) {
        let at = links.arrival(self.link(side));
        self.split(side).0.out.delay_until(at);
        self.answer(links, side);
    }
}
