//! The policy: which connections are served, closed to make room, or refused. No clock, no I/O.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::frontend::metrics::ConnectionMetrics;
use crate::frontend::metrics::NotServed;

use super::activity::Activity;
use super::peer::PeerKey;

/// How long a peer counts as known after one of its requests was authenticated.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
/// The most peers that are known at a time. Beyond it the one that was silent for longest is
/// forgotten.
const KNOWN_MAX: usize = 4096;
/// How many candidates for closing one scan of all connections collects.
const NEXT_MAX: usize = 64;

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections that are served.
    pub(crate) open_max: usize,
    /// Served connections of one peer; more are refused. Must be below `open_max`, or so large that
    /// it has no effect.
    pub(crate) peer_max: usize,
    /// The same for a loopback address.
    pub(crate) loopback_max: usize,
    /// The part of `open_max` that is kept for known peers and authenticated connections.
    pub(crate) reserved: usize,
    /// Connections beyond `open_max` that were signalled to close and are not closed yet.
    pub(crate) leaving_max: usize,
    /// Connections that are being refused.
    pub(crate) refused_max: usize,
    /// Connections of one peer that are being refused.
    pub(crate) refused_peer_max: usize,
}

/// A connection's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u64);

/// The decision about a new connection.
#[derive(Debug)]
pub(super) enum Decision {
    /// The connection is served; if all places were taken, another was signalled to close.
    Open(Id, Arc<Activity>),
    /// Its first request is answered 503.
    Refuse,
    /// It is closed without an answer.
    Close,
}

/// An open connection.
#[derive(Debug)]
struct Row {
    peer: PeerKey,
    activity: Arc<Activity>,
    /// Whether it was signalled to close.
    leaving: bool,
    /// Whether its peer was unknown when it was accepted, and none of its requests was
    /// authenticated since.
    unknown: bool,
}

impl Row {
    fn class(&self) -> Class {
        match (self.activity.is_authenticated(), self.unknown) {
            (true, _) => Class::Authenticated,
            (false, false) => Class::Silent,
            (false, true) => Class::Unknown,
        }
    }
}

/// Connections leave in the order of these classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Its peer is unknown.
    Unknown,
    /// Its peer is known through other connections.
    Silent,
    /// A request of it was authenticated.
    Authenticated,
}

/// The connections of one peer.
#[derive(Clone, Copy, Debug, Default)]
struct PeerCounts {
    open: usize,
    refused: usize,
}

/// A connection without a request in progress.
#[derive(Clone, Copy, Debug)]
struct IdleConnection {
    id: Id,
    class: Class,
    since: Duration,
}

impl IdleConnection {
    /// The order of closing: the longest idle first.
    const fn age_order(&self) -> (Duration, u64) {
        (self.since, self.id.0)
    }
}

/// All connections of a listener.
#[derive(Debug)]
pub(super) struct Table {
    limits: Limits,
    metrics: ConnectionMetrics,
    last: u64,
    rows: HashMap<Id, Row>,
    peers: HashMap<PeerKey, PeerCounts>,
    /// When a request of a peer was last authenticated.
    known: HashMap<PeerKey, Duration>,
    leaving: usize,
    unknown: usize,
    refused: usize,
    /// Connections of unknown peers that have been idle for longest, in that order, as of the last
    /// scan.
    next: VecDeque<IdleConnection>,
}

impl Table {
    pub(super) fn new(limits: Limits, metrics: ConnectionMetrics) -> Self {
        Self {
            limits,
            metrics,
            last: 0,
            rows: HashMap::new(),
            peers: HashMap::new(),
            known: HashMap::new(),
            leaving: 0,
            unknown: 0,
            refused: 0,
            next: VecDeque::new(),
        }
    }

    /// Decides about a new connection.
    pub(super) fn admit(&mut self, peer: PeerKey, now: Duration) -> Decision {
        let of_peer = self.peers.get(&peer).copied().unwrap_or_default();
        let limits = &self.limits;
        let peer_max = if peer.is_loopback() { limits.loopback_max } else { limits.peer_max };
        if of_peer.open >= peer_max {
            return self.refuse(peer, of_peer, NotServed::Peer);
        }
        let unknown = !self.is_known(peer, now);
        if !self.has_room(unknown) && !self.make_room(unknown) {
            return self.refuse(peer, of_peer, NotServed::Full);
        }
        self.metrics.accepted.inc();
        self.metrics.open.inc();
        self.last += 1;
        let (id, activity) = (Id(self.last), Arc::new(Activity::new(now)));
        let row = Row { peer, activity: Arc::clone(&activity), leaving: false, unknown };
        self.rows.insert(id, row);
        self.unknown += usize::from(unknown);
        self.peers.entry(peer).or_default().open += 1;
        Decision::Open(id, activity)
    }

    /// A connection is closed.
    pub(super) fn close(&mut self, id: Id) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.metrics.open.dec();
        self.leaving -= usize::from(row.leaving);
        self.unknown -= usize::from(row.unknown && !row.leaving);
        self.leave_peer(row.peer, |of_peer| of_peer.open -= 1);
    }

    /// A connection that was refused is closed.
    pub(super) fn refused(&mut self, peer: PeerKey) {
        self.refused -= 1;
        self.leave_peer(peer, |of_peer| of_peer.refused -= 1);
    }

    /// A request of the connection was authenticated.
    pub(super) fn authenticated(&mut self, id: Id, now: Duration) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        if row.unknown {
            row.unknown = false;
            self.unknown -= usize::from(!row.leaving);
        }
        self.known.insert(row.peer, now);
        if self.known.len() > KNOWN_MAX {
            self.known.retain(|_, seen| now.saturating_sub(*seen) < KNOWN_FOR);
        }
        if self.known.len() > KNOWN_MAX
            && let Some(oldest) = self.known.iter().min_by_key(|(_, seen)| **seen)
        {
            let oldest = *oldest.0;
            self.known.remove(&oldest);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn is_known(&self, peer: PeerKey, now: Duration) -> bool {
        self.known.get(&peer).is_some_and(|seen| now.saturating_sub(*seen) < KNOWN_FOR)
    }

    fn has_room(&self, unknown: bool) -> bool {
        let open = self.rows.len() - self.leaving;
        open < self.limits.open_max && (!unknown || self.unknown_have_room())
    }

    fn unknown_have_room(&self) -> bool {
        self.unknown + self.limits.reserved < self.limits.open_max
    }

    /// Signals the least important idle connection to close; `false` when there is none.
    fn make_room(&mut self, unknown: bool) -> bool {
        if self.leaving >= self.limits.leaving_max {
            return false;
        }
        let found = self.next_unknown().or_else(|| {
            // Beyond the share of unknown peers, an unknown peer replaces only another unknown
            // peer.
            let any = !unknown || self.unknown_have_room();
            any.then(|| self.longest_idle().map(|idle| idle.id)).flatten()
        });
        let Some(row) = found.and_then(|id| self.rows.get_mut(&id)) else { return false };
        row.leaving = true;
        row.activity.leave();
        self.metrics.gave_way.inc();
        self.leaving += 1;
        self.unknown -= usize::from(row.unknown);
        true
    }

    /// The connection of an unknown peer that has been idle for longest. One scan of all
    /// connections collects several candidates, so that not every new connection costs a scan while
    /// all are taken.
    fn next_unknown(&mut self) -> Option<Id> {
        for scan in [false, true] {
            if scan {
                let mut idle: Vec<IdleConnection> =
                    self.idle().filter(|idle| idle.class == Class::Unknown).collect();
                let count = NEXT_MAX.min(idle.len());
                if count < idle.len() {
                    idle.select_nth_unstable_by_key(count, IdleConnection::age_order);
                }
                idle.truncate(count);
                idle.sort_unstable_by_key(IdleConnection::age_order);
                self.next = idle.into();
            }
            while let Some(IdleConnection { id, since, .. }) = self.next.pop_front() {
                // It may have sent a request since the scan.
                let row = self.rows.get(&id);
                if row.is_some_and(|row| {
                    let is_idle = row.activity.idle_since() == Some(since);
                    is_idle && !row.leaving && row.class() == Class::Unknown
                }) {
                    return Some(id);
                }
            }
        }
        None
    }

    fn longest_idle(&self) -> Option<IdleConnection> {
        self.idle().min_by_key(|idle| (idle.class, idle.age_order()))
    }

    fn idle(&self) -> impl Iterator<Item = IdleConnection> {
        let staying = self.rows.iter().filter(|(_, row)| !row.leaving);
        staying.filter_map(|(id, row)| {
            let since = row.activity.idle_since()?;
            Some(IdleConnection { id: *id, class: row.class(), since })
        })
    }

    fn refuse(&mut self, peer: PeerKey, of_peer: PeerCounts, why: NotServed) -> Decision {
        if self.refused >= self.limits.refused_max
            || of_peer.refused >= self.limits.refused_peer_max
        {
            self.metrics.refused(NotServed::Unanswered);
            return Decision::Close;
        }
        self.metrics.refused(why);
        self.refused += 1;
        self.peers.entry(peer).or_default().refused += 1;
        Decision::Refuse
    }

    fn leave_peer(&mut self, peer: PeerKey, change: impl FnOnce(&mut PeerCounts)) {
        if let Some(of_peer) = self.peers.get_mut(&peer) {
            change(of_peer);
            if of_peer.open == 0 && of_peer.refused == 0 {
                self.peers.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests;
