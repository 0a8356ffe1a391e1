//! Metrics of the index. `load.rs`: metrics of the load of its partitions.

mod load;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::index::load::Counts;
use crate::index::load::Load;
use crate::index::metrics::load::LoadMetrics;

/// The metrics of all partitions of all hosts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    commits: Counter,
    batch_ops: Histogram,
    log_bytes: Counter,
    flushes: Counter,
    compactions: Counter,
    cache_hits: Counter,
    cache_misses: Counter,
    partitions: Gauge,
    quarantined: Gauge,
    closed: Gauge,
    rows: Gauge,
    memtable_bytes: Gauge,
    splits: Counter,
    merges: Counter,
    moves: Counter,
    split_pause: Histogram,
    merge_pause: Histogram,
    move_pause: Histogram,
    shared_dropped: Counter,
    release_failures: Counter,
    load: LoadMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Counters {
            commits: Counter::default(),
            batch_ops: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            log_bytes: Counter::default(),
            flushes: Counter::default(),
            compactions: Counter::default(),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            partitions: Gauge::default(),
            quarantined: Gauge::default(),
            closed: Gauge::default(),
            rows: Gauge::default(),
            memtable_bytes: Gauge::default(),
            splits: Counter::default(),
            merges: Counter::default(),
            moves: Counter::default(),
            split_pause: pauses(),
            merge_pause: pauses(),
            move_pause: pauses(),
            shared_dropped: Counter::default(),
            release_failures: Counter::default(),
            load: LoadMetrics::default(),
        }))
    }
}

impl Metrics {
    /// Registers the metrics with the prefix `index_`.
    pub fn register(&self, registry: &mut Registry) {
        let index = registry.sub_registry_with_prefix("index");
        let c = &*self.0;
        index.register("commits", "Group commits made durable", c.commits.clone());
        index.register("batch_ops", "Writes in a group commit", c.batch_ops.clone());
        index.register("log_bytes", "Bytes of log records made durable", c.log_bytes.clone());
        index.register("flushes", "Memtables written to runs", c.flushes.clone());
        index.register("compactions", "Merges of runs", c.compactions.clone());
        index.register("block_cache_hits", "Run blocks found in memory", c.cache_hits.clone());
        index.register("block_cache_misses", "Run blocks read", c.cache_misses.clone());
        index.register("open_partitions", "Partitions served here", c.partitions.clone());
        let quarantined =
            "Partitions out of service because files they need are damaged or missing";
        index.register("quarantined_partitions", quarantined, c.quarantined.clone());
        let closed = "Partitions that did not open at the start and are tried again";
        index.register("closed_partitions", closed, c.closed.clone());
        index.register("run_rows", "Rows in runs, old versions included", c.rows.clone());
        index.register("memtable_bytes", "Memory of memtables", c.memtable_bytes.clone());
        index.register("splits", "Partitions split", c.splits.clone());
        let pause = "Seconds in which no write of a range was made durable because it was split";
        index.register("split_pause_seconds", pause, c.split_pause.clone());
        index.register("merges", "Merges of neighbouring partitions", c.merges.clone());
        let pause = "Seconds in which no write of a range was made durable because of a merge";
        index.register("merge_pause_seconds", pause, c.merge_pause.clone());
        index.register("moves", "Partitions moved to another host", c.moves.clone());
        let pause = "Seconds in which no write of a partition was made durable because it moved";
        index.register("move_pause_seconds", pause, c.move_pause.clone());
        let dropped = "Bytes of shared content that rows stopped naming";
        index.register("shared_dropped_bytes", dropped, c.shared_dropped.clone());
        let failures = "Failed tries to release a log or run that a partition no longer uses";
        index.register("release_failures", failures, c.release_failures.clone());
        c.load.register(index);
    }

    /// Adds what all partitions together did since the last sample, and notes the load of each.
    pub(crate) fn sample(&self, added: &Counts, loads: impl Iterator<Item = Load>) {
        self.0.load.sample(added, loads);
    }

    pub(crate) fn committed(&self, ops: usize) {
        self.0.commits.inc();
        self.0.batch_ops.observe(f64::from(u32::try_from(ops).unwrap_or(u32::MAX)));
    }

    pub(crate) fn log_bytes(&self, bytes: usize) {
        self.0.log_bytes.inc_by(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    pub(crate) fn release_failed(&self) {
        self.0.release_failures.inc();
    }

    /// The number of failed releases of a log or run.
    #[cfg(test)]
    pub(crate) fn release_failures(&self) -> u64 {
        self.0.release_failures.get()
    }

    pub(crate) fn shared_dropped(&self, bytes: u64) {
        self.0.shared_dropped.inc_by(bytes);
    }

    /// Bytes of shared content that rows stopped naming since the start. An audit is due when there
    /// are many.
    #[must_use]
    pub fn shared_dropped_bytes(&self) -> u64 {
        self.0.shared_dropped.get()
    }

    pub(crate) fn flushed(&self) {
        self.0.flushes.inc();
    }

    pub(crate) fn compacted(&self) {
        self.0.compactions.inc();
    }

    pub(crate) fn split(&self, pause: Duration) {
        self.0.splits.inc();
        self.0.split_pause.observe(pause.as_secs_f64());
    }

    pub(crate) fn merged(&self, pause: Duration) {
        self.0.merges.inc();
        self.0.merge_pause.observe(pause.as_secs_f64());
    }

    pub(crate) fn moved(&self, pause: Duration) {
        self.0.moves.inc();
        self.0.move_pause.observe(pause.as_secs_f64());
    }

    /// Adds `more` to the number of quarantined partitions, or of closed ones that are tried again.
    pub(crate) fn closed(&self, quarantined: bool, more: i64) {
        let gauge = if quarantined { &self.0.quarantined } else { &self.0.closed };
        gauge.inc_by(more);
    }

    /// Replaces the report `before` of a host by its report `now`. The gauges are the sums over all
    /// hosts.
    pub(crate) fn report(&self, before: &mut HostReport, now: HostReport) {
        let HostReport { hits, misses, partitions, rows, memtable_bytes } = now;
        self.0.cache_hits.inc_by(hits.saturating_sub(before.hits));
        self.0.cache_misses.inc_by(misses.saturating_sub(before.misses));
        for (gauge, now, before) in [
            (&self.0.partitions, partitions, before.partitions),
            (&self.0.rows, rows, before.rows),
            (&self.0.memtable_bytes, memtable_bytes, before.memtable_bytes),
        ] {
            gauge.inc_by(signed(now).saturating_sub(signed(before)));
        }
        *before = now;
    }
}

/// The figures of one host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostReport {
    /// Run blocks found in memory since the start.
    pub(crate) hits: u64,
    /// Run blocks read since the start.
    pub(crate) misses: u64,
    /// Partitions that it serves.
    pub(crate) partitions: u64,
    /// Rows of their runs.
    pub(crate) rows: u64,
    /// Bytes of their memtables.
    pub(crate) memtable_bytes: u64,
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A quarter of a millisecond to two seconds.
fn pauses() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 14))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Exposition;
    use crate::telemetry::render;

    #[test]
    fn what_hosts_have_adds_up() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let (mut one, mut other) = (HostReport::default(), HostReport::default());
        let has = |partitions, hits| {
            let (misses, rows, memtable_bytes) = (2 * hits, 10 * partitions, 100 * partitions);
            HostReport { hits, misses, partitions, rows, memtable_bytes }
        };
        metrics.report(&mut one, has(5, 7));
        metrics.report(&mut other, has(3, 1));
        // A partition moves.
        metrics.report(&mut one, has(4, 8));
        metrics.report(&mut other, has(4, 1));
        let text = render(&registry, Exposition::Classic).unwrap();
        for line in [
            "index_open_partitions 8",
            "index_run_rows 80",
            "index_memtable_bytes 800",
            "index_block_cache_hits_total 9",
            "index_block_cache_misses_total 18",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
