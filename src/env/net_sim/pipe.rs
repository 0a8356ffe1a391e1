//! One direction of a simulated connection: what is in flight and what has arrived.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::io::ReadBuf;
use tokio::time::Instant;

/// What a receiver has heard from its peer, apart from bytes. Later ones replace earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The end of the handshake has not arrived.
    Opening,
    Open,
    /// No further bytes follow.
    Shut,
    /// The peer has dropped its stream: it reads no further bytes either.
    Closed,
    Reset,
}

#[derive(Debug)]
pub(super) enum What {
    /// At least one byte.
    Bytes(Bytes),
    Notice(Phase),
}

impl What {
    /// How many things a random loss can take from it.
    fn weight(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Notice(_) => 1,
        }
    }
}

#[derive(Debug)]
struct Packet {
    /// When it arrives, if the pipe is not held.
    at: Instant,
    what: What,
}

#[derive(Debug)]
pub(super) struct Pipe {
    /// In order of sending and of arrival.
    flight: VecDeque<Packet>,
    arrived: VecDeque<Bytes>,
    unread: usize,
    /// Bytes that were written and not read. Lost ones count for ever, so that their writer waits.
    used: usize,
    phase: Phase,
    /// Whether the link is blocked.
    is_held: bool,
}

impl Pipe {
    pub(super) fn new(phase: Phase, is_held: bool) -> Self {
        let (flight, arrived) = (VecDeque::new(), VecDeque::new());
        Self { flight, arrived, unread: 0, used: 0, phase, is_held }
    }

    /// Sends something. Nothing follows a reset. Returns whether the receiver must look again at
    /// how long it waits.
    pub(super) fn send(&mut self, what: What, at: Instant) -> bool {
        if let What::Bytes(bytes) = &what {
            self.used += bytes.len();
        }
        if self.is_reset() {
            return false;
        }
        let at = self.flight.back().map_or(at, |last| at.max(last.at));
        let is_news = self.flight.is_empty() || matches!(what, What::Notice(_));
        self.flight.push_back(Packet { at, what });
        is_news
    }

    /// Receives all that arrives until `now`.
    pub(super) fn settle(&mut self, now: Instant) {
        while self.next_at().is_some_and(|at| at <= now) {
            match self.flight.pop_front().map(|packet| packet.what) {
                Some(What::Bytes(bytes)) => {
                    self.unread += bytes.len();
                    self.arrived.push_back(bytes);
                }
                Some(What::Notice(phase)) => self.phase = self.phase.max(phase),
                None => {}
            }
        }
    }

    /// When the next packet arrives, as far as that is known.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.flight.front().filter(|_| !self.is_held).map(|packet| packet.at)
    }

    /// When the receiver hears that its own writes are in vain, as far as that is known.
    pub(super) fn end_at(&self) -> Option<Instant> {
        let last = self.flight.back().filter(|_| !self.is_held)?;
        let is_end = matches!(last.what, What::Notice(Phase::Closed | Phase::Reset));
        is_end.then_some(last.at)
    }

    /// Moves `len` bytes, at most [`Self::unread`], to `buf`.
    pub(super) fn read(&mut self, len: usize, buf: &mut ReadBuf<'_>) {
        let mut left = len;
        while left > 0
            && let Some(mut bytes) = self.arrived.pop_front()
        {
            let piece = bytes.split_to(left.min(bytes.len()));
            buf.put_slice(&piece);
            left -= piece.len();
            if !bytes.is_empty() {
                self.arrived.push_front(bytes);
            }
        }
        self.unread -= len;
        self.used -= len;
    }

    /// Stops arrivals. Call [`Self::settle`] before.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Lets held packets arrive, at `at` or later.
    pub(super) fn release(&mut self, at: Instant) {
        self.is_held = false;
        self.delay_until(at);
    }

    /// Lets no packet arrive before `at`.
    pub(super) fn delay_until(&mut self, at: Instant) {
        for packet in &mut self.flight {
            packet.at = packet.at.max(at);
        }
    }

    /// The bytes and notices in flight.
    pub(super) fn weight(&self) -> usize {
        self.flight.iter().map(|packet| packet.what.weight()).sum()
    }

    /// Loses all in flight but the first `keep` bytes and notices.
    pub(super) fn truncate(&mut self, keep: usize) {
        let mut left = keep;
        for mut packet in std::mem::take(&mut self.flight) {
            if left == 0 {
                break;
            }
            if let What::Bytes(bytes) = &mut packet.what {
                bytes.truncate(left);
            }
            left -= packet.what.weight();
            self.flight.push_back(packet);
        }
    }

    /// Whether a reset was sent.
    pub(super) fn is_reset(&self) -> bool {
        let last = self.flight.back().map(|packet| &packet.what);
        self.phase == Phase::Reset || matches!(last, Some(What::Notice(Phase::Reset)))
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn unread(&self) -> usize {
        self.unread
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }
}
