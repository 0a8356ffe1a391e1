//! Counts spans. Every name is defined here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Why spans were dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DropLabels {
    /// `queue_full`, `not_taken` by the collector, or `rejected` from a batch that it took.
    reason: &'static str,
}

/// Counters of spans.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    pub(super) sent: Counter,
    pub(super) queue_full: Counter,
    pub(super) not_taken: Counter,
    pub(super) rejected: Counter,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (sent, dropped) = (Counter::default(), Family::<DropLabels, Counter>::default());
        registry.register("spans_sent", "Spans that a collector accepted", sent.clone());
        registry.register("spans_dropped", "Spans that were not delivered", dropped.clone());
        let counter = |reason| dropped.get_or_create(&DropLabels { reason }).clone();
        let (queue_full, not_taken) = (counter("queue_full"), counter("not_taken"));
        Self { sent, queue_full, not_taken, rejected: counter("rejected") }
    }
}
