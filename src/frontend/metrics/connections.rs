//! Connections of a listener, and the bytes they carried.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use prometheus_client::registry::Unit;

use crate::telemetry::Counters;

/// Why a connection was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotServed {
    /// Its peer has the most that it may have.
    Peer,
    /// All places were taken, and no connection could be closed for the new one.
    Full,
    /// Too many were being refused: the connection was closed without an answer.
    Unanswered,
}

impl NotServed {
    const ALL: [Self; 3] = [Self::Peer, Self::Full, Self::Unanswered];

    const fn word(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Full => "full",
            Self::Unanswered => "unanswered",
        }
    }
}

/// The counters of a listener; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionMetrics {
    /// Connections that are served now.
    pub(crate) open: Gauge,
    /// Connections that were served.
    pub(crate) accepted: Counter,
    /// Idle connections that were closed to make room for new ones.
    pub(crate) gave_way: Counter,
    /// Failures to accept a connection.
    pub(crate) accept_errors: Counter,
    /// Bytes received.
    pub(crate) received: Counter,
    /// Bytes sent.
    pub(crate) sent: Counter,
    refused: Counters,
}

impl Default for ConnectionMetrics {
    fn default() -> Self {
        Self {
            open: Gauge::default(),
            accepted: Counter::default(),
            gave_way: Counter::default(),
            accept_errors: Counter::default(),
            received: Counter::default(),
            sent: Counter::default(),
            refused: Counters::new("reason", NotServed::ALL.map(NotServed::word)),
        }
    }
}

impl ConnectionMetrics {
    /// Metrics that `registry` shows; every reason shows 0 from the start.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let made = Self::default();
        registry.register("connections_open", "Connections served now", made.open.clone());
        let help = "Connections that were served";
        registry.register("connections_accepted", help, made.accepted.clone());
        let help = "Connections that were not served: peer, too many of its address; full, all are \
                    taken; unanswered, closed without an answer";
        made.refused.register(registry, "connections_refused", help);
        let help = "Idle connections that were asked to close to make room for new ones";
        registry.register("connections_gave_way", help, made.gave_way.clone());
        let help = "Times the system failed to accept a connection";
        registry.register("accept_errors", help, made.accept_errors.clone());
        let help = "Bytes that came over connections, heads and TLS included";
        registry.register_with_unit("received", help, Unit::Bytes, made.received.clone());
        let help = "Bytes that went over connections, heads and TLS included";
        registry.register_with_unit("sent", help, Unit::Bytes, made.sent.clone());
        made
    }

    /// Counts a connection that is not served.
    pub(crate) fn refused(&self, why: NotServed) {
        self.refused.add(why.word(), 1);
    }
}

#[cfg(test)]
impl ConnectionMetrics {
    pub(crate) fn refusals(&self) -> [u64; 3] {
        NotServed::ALL.map(|why| self.refused.get(why.word()))
    }
}
