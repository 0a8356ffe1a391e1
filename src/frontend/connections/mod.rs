//! The open connections of a listener. Limits how many are open in all and from one peer, and
//! decides which one is closed to make room for a new one.
//!
//! 1. `peer.rs`: the addresses that count as one peer.
//! 2. `activity.rs`: the state of one connection, in atomics, so that a request takes no lock.
//! 3. `table.rs`: the policy, a state machine without clock or I/O.
//! 4. This file: the table behind a lock; slots and requests update it when they are dropped.
//!
//! Invariants: accepting never waits for a client. A connection with a request in progress is never
//! closed for another. The numbers of served, leaving and refused connections are bounded.

#![deny(clippy::indexing_slicing)]

mod activity;
mod peer;
mod table;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::sync::Notify;

use crate::env::Clock;
use crate::frontend::metrics::ConnectionMetrics;

use activity::Activity;
use table::Decision;
use table::Id;
use table::Table;

pub(crate) use peer::PeerKey;
pub(crate) use table::Limits;

/// How often one connection reports that its requests are authenticated.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How long a connection without a request may take to end when it must send something first.
pub(crate) const GOODBYE: Duration = Duration::from_secs(1);

/// The open connections of one listener; shared by their tasks.
#[derive(Debug)]
pub(crate) struct Connections {
    table: Mutex<Table>,
    clock: Arc<dyn Clock>,
    /// Fires when the last connection is closed.
    empty: Notify,
}

/// The decision about a new connection.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It is served while the slot lives.
    Serve(Arc<Slot>),
    /// Its first request is answered 503.
    Refuse(RefusedSlot),
    /// Too many are being refused: the connection is closed without an answer.
    Close,
}

/// The place of a connection that is served; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    connections: Arc<Connections>,
    id: Id,
    activity: Arc<Activity>,
}

/// The place of a connection that is being refused; given back when dropped.
#[derive(Debug)]
pub(crate) struct RefusedSlot {
    connections: Arc<Connections>,
    peer: PeerKey,
}

/// A request in progress, until its answer's body was handed over.
#[derive(Debug)]
pub(crate) struct InProgress(Arc<Slot>);

impl Connections {
    /// No connections yet.
    pub(crate) fn new(
        limits: Limits,
        clock: Arc<dyn Clock>,
        metrics: ConnectionMetrics,
    ) -> Arc<Self> {
        let table = Mutex::new(Table::new(limits, metrics));
        Arc::new(Self { table, clock, empty: Notify::new() })
    }

    /// Decides about a new connection of `address`. Never waits.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Entry {
        let peer = PeerKey::of(address);
        let now = self.clock.monotonic();
        match self.lock().admit(peer, now) {
            Decision::Open(id, activity) => {
                Entry::Serve(Arc::new(Slot { connections: Arc::clone(self), id, activity }))
            }
            Decision::Refuse => Entry::Refuse(RefusedSlot { connections: Arc::clone(self), peer }),
            Decision::Close => Entry::Close,
        }
    }

    /// Waits until no connection is served.
    pub(crate) async fn closed(&self) {
        loop {
            // Made before the check, so that a connection that closes in between wakes it.
            let empty = self.empty.notified();
            if self.lock().is_empty() {
                return;
            }
            empty.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Counts a request as in progress.
    pub(crate) fn begin(self: &Arc<Self>) -> InProgress {
        self.activity.begin();
        InProgress(Arc::clone(self))
    }

    /// Waits until the connection is signalled to close, to make room for another.
    pub(crate) async fn leave_requested(&self) {
        self.activity.leave_requested().await;
    }

    /// Waits until no request has been in progress for the time `long`.
    pub(crate) async fn idle_for(&self, long: Duration) {
        let clock = &self.connections.clock;
        loop {
            let idle =
                self.activity.idle_since().map(|since| clock.monotonic().saturating_sub(since));
            match idle {
                Some(idle) if idle >= long => return,
                idle => clock.sleep(long.saturating_sub(idle.unwrap_or_default())).await,
            }
        }
    }

    /// Whether the connection was signalled to close.
    pub(crate) fn is_leaving(&self) -> bool {
        self.activity.is_leaving()
    }

    /// Waits as long as a connection that is leaving or idle may stay: at least a `moment`, and
    /// until its requests have ended and nothing is `outstanding`. The latter is needed because a
    /// body ends when its last bytes are buffered, before the client has them. Returns after `most`
    /// in any case, so that a client that keeps a request open does not keep the place forever.
    pub(crate) async fn goodbye(
        &self,
        mut moment: Duration,
        most: Duration,
        outstanding: impl Fn() -> bool,
    ) {
        let clock = &self.connections.clock;
        let until = clock.monotonic().saturating_add(most);
        loop {
            let left = until.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return;
            }
            clock.sleep(moment.min(left)).await;
            if self.activity.idle_since().is_some() && !outstanding() {
                return;
            }
            moment = GOODBYE;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        table.close(self.id);
        if table.is_empty() {
            self.connections.empty.notify_waiters();
        }
    }
}

impl Drop for RefusedSlot {
    fn drop(&mut self) {
        self.connections.lock().refused(self.peer);
    }
}

impl InProgress {
    /// Records that the request was authenticated.
    pub(crate) fn is_authenticated(&self) {
        let slot = &self.0;
        let now = slot.connections.clock.monotonic();
        if slot.activity.is_due(now, REPORT_EVERY) {
            slot.connections.lock().authenticated(slot.id, now);
        }
    }

    /// Keeps the request in progress until the body ends.
    pub(crate) const fn until_sent<B>(self, body: B) -> HeldUntilSent<B, Self> {
        HeldUntilSent::new(body, self)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.activity.end(self.0.connections.clock.monotonic());
    }
}

/// A response body that holds a value until the body is sent.
#[derive(Debug)]
pub(crate) struct HeldUntilSent<B, G> {
    body: B,
    _held: G,
}

impl<B, G> HeldUntilSent<B, G> {
    /// Holds `held` until `body` is sent.
    pub(crate) const fn new(body: B, held: G) -> Self {
        Self { body, _held: held }
    }
}

impl<B: Body + Unpin, G: Unpin> Body for HeldUntilSent<B, G> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
