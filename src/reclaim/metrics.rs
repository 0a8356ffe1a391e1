//! The metrics of reclaim.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::Registry;

/// Counters and gauges. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ReclaimMetrics {
    /// Payload bytes of garbage rows freed.
    pub freed_bytes: Counter,
    /// Garbage rows freed and deleted.
    pub garbage_rows: Counter,
    /// Open extents sealed because they held much garbage.
    pub rolled_extents: Counter,
    /// Blobs whose staged blocks or completed uploads expired.
    pub expired_blobs: Counter,
    /// Writes that removed expired soft-deleted rows of a blob.
    pub ended_deletions: Counter,
    /// Writes that removed rows of deleted containers.
    pub purge_writes: Counter,
    /// Deleted containers whose rows are all deleted.
    pub purged_containers: Counter,
    /// Audits that completed.
    pub audits: Counter,
    /// Audits that failed.
    pub audits_failed: Counter,
    /// Audits that failed because look-ups of reads or copies did not end in time.
    pub audits_held: Counter,
    /// Data extents that audits compared with the rows.
    pub audited_extents: Counter,
    /// Walks over all rows.
    pub audit_walks: Counter,
    /// Data extents that the current or interrupted round has yet to audit.
    pub audit_left_extents: Gauge,
    /// Data extents that audits left to the next round because they were being read.
    pub read_extents: Counter,
    /// Warnings about long reads.
    pub long_reads: Counter,
    /// Steps that skipped a failing partition.
    pub passed_over: Counter,
    /// Age of the oldest running read.
    pub oldest_read_seconds: Gauge,
    /// Payload bytes of garbage that running reads kept from being freed in the last pass.
    pub held_bytes: Gauge,
    /// Logs and runs that the last audit found in no record.
    pub orphaned_extents: Gauge,
    /// Logs and runs in use that the last audit found missing.
    pub missing_extents: Gauge,
}

impl ReclaimMetrics {
    /// Metrics that `registry` shows.
    #[must_use]
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let inner = registry.sub_registry_with_prefix("reclaim");
        let counters: [(&str, &str, &Counter); 15] = [
            ("freed_bytes", "Payload bytes of garbage rows freed", &metrics.freed_bytes),
            ("garbage_rows", "Garbage rows freed and deleted", &metrics.garbage_rows),
            ("rolled_extents", "Open extents sealed for their garbage", &metrics.rolled_extents),
            (
                "expired_blobs",
                "Blobs whose staged blocks or completed uploads expired",
                &metrics.expired_blobs,
            ),
            (
                "ended_deletions",
                "Blobs with soft-deleted rows that expired",
                &metrics.ended_deletions,
            ),
            ("purge_writes", "Writes that purged deleted containers", &metrics.purge_writes),
            (
                "purged_containers",
                "Deleted containers whose rows are all purged",
                &metrics.purged_containers,
            ),
            ("audits", "Audits finished", &metrics.audits),
            ("audits_failed", "Audits given up", &metrics.audits_failed),
            ("audits_held", "Audits given up because look-ups did not end", &metrics.audits_held),
            ("audited_extents", "Data extents compared with the rows", &metrics.audited_extents),
            ("audit_walks", "Walks over all rows that audits took", &metrics.audit_walks),
            (
                "read_extents",
                "Extents left to the next audit because they were being read",
                &metrics.read_extents,
            ),
            ("passed_over", "Steps that went on without a failing partition", &metrics.passed_over),
            ("long_reads", "Warnings about reads that run for long", &metrics.long_reads),
        ];
        for (name, help, counter) in counters {
            inner.register(name, help, counter.clone());
        }
        let gauges: [(&str, &str, &Gauge); 5] = [
            ("oldest_read_seconds", "Age of the oldest running read", &metrics.oldest_read_seconds),
            (
                "audit_left_extents",
                "Extents left in the audit's round",
                &metrics.audit_left_extents,
            ),
            ("orphaned_extents", "Logs and runs in no record", &metrics.orphaned_extents),
            ("missing_extents", "Logs and runs in use that do not exist", &metrics.missing_extents),
            ("held_bytes", "Garbage that running reads keep from being freed", &metrics.held_bytes),
        ];
        for (name, help, gauge) in gauges {
            inner.register(name, help, gauge.clone());
        }
        metrics
    }
}
