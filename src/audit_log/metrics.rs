//! Counters of the audit log.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use crate::telemetry::Registry;

/// The labels of the counters of lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// `change` or `request`.
    kind: &'static str,
}

/// Counters; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    lines: Family<Labels, Counter>,
    lost: Family<Labels, Counter>,
    failures: Counter,
}

impl Metrics {
    /// Registers the counters.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("audit_log_lines", "Lines given to the audit log", self.lines.clone());
        registry.register(
            "audit_log_lost",
            "Lines of the audit log that were dropped because it could not be written in time",
            self.lost.clone(),
        );
        registry.register(
            "audit_log_write_failures",
            "Failed writes of the audit log, each tried again",
            self.failures.clone(),
        );
    }

    pub(super) fn queued(&self, is_change: bool) {
        self.lines.get_or_create(&labels(is_change)).inc();
    }

    pub(super) fn lost(&self, is_change: bool, count: u64) {
        self.lost.get_or_create(&labels(is_change)).inc_by(count);
    }

    pub(super) fn failed(&self) {
        self.failures.inc();
    }

    /// Lines that were dropped.
    #[cfg(test)]
    pub(super) fn lines_lost(&self) -> LineCounts {
        let of = |is_change| self.lost.get_or_create(&labels(is_change)).get();
        LineCounts { changes: of(true), requests: of(false) }
    }
}

/// Numbers of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    pub(super) changes: u64,
    pub(super) requests: u64,
}

impl LineCounts {
    pub(super) fn add(&mut self, is_change: bool) {
        self.changes += u64::from(is_change);
        self.requests += u64::from(!is_change);
    }
}

const fn labels(is_change: bool) -> Labels {
    Labels { kind: if is_change { "change" } else { "request" } }
}
