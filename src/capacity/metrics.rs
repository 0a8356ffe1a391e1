//! Counters and gauges of a capacity node; `disks.rs`: metrics of each disk.

mod disks;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::Registry;

pub use disks::DiskMetrics;

/// Counters and gauges of one node, all its disks together; clones share them.
#[derive(Clone, Debug, Default)]
pub struct CapacityMetrics {
    /// Appends acknowledged or deferred.
    pub appends: Counter,
    /// Payload bytes appended.
    pub appended_bytes: Counter,
    /// Frames appended.
    pub frames: Counter,
    /// Journal batches made durable.
    pub journal_batches: Counter,
    /// Bytes of these batches.
    pub journal_bytes: Counter,
    /// Syncs of files and folders, including those of a write that syncs.
    pub fsyncs: Counter,
    /// Reads answered.
    pub reads: Counter,
    /// Payload bytes read.
    pub read_bytes: Counter,
    /// Frames found damaged, by a read or the scrub.
    pub corrupt_frames: Counter,
    /// Damaged frames that were mended with those of other copies.
    pub mended_frames: Counter,
    /// Frame bytes freed.
    pub freed_bytes: Counter,
    /// Extents removed.
    pub removed_extents: Counter,
    /// Extents compacted.
    pub compactions: Counter,
    /// Bytes compaction copied.
    pub compacted_bytes: Counter,
    /// Frames the scrub verified.
    pub scrubbed_frames: Counter,
    /// Poisoned disks.
    pub poisoned_disks: Gauge,
    /// Disks that could not be recovered at the start and are out of service.
    pub failed_disks: Gauge,
    /// Extents on all disks.
    pub extents: Gauge,
}

impl CapacityMetrics {
    /// Metrics that are registered in `registry`.
    #[must_use]
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let inner = registry.sub_registry_with_prefix("capacity");
        let counters: [(&str, &str, &Counter); 15] = [
            ("appends", "Appends", &metrics.appends),
            ("appended_bytes", "Payload bytes appended", &metrics.appended_bytes),
            ("frames", "Frames appended", &metrics.frames),
            ("journal_batches", "Journal batches made durable", &metrics.journal_batches),
            ("journal_bytes", "Bytes of journal batches", &metrics.journal_bytes),
            ("fsyncs", "Syncs of files and folders", &metrics.fsyncs),
            ("reads", "Reads answered", &metrics.reads),
            ("read_bytes", "Payload bytes read", &metrics.read_bytes),
            ("corrupt_frames", "Frames found damaged", &metrics.corrupt_frames),
            ("mended_frames", "Damaged frames mended from other copies", &metrics.mended_frames),
            ("freed_bytes", "Frame bytes freed", &metrics.freed_bytes),
            ("removed_extents", "Extents removed", &metrics.removed_extents),
            ("compactions", "Extents compacted", &metrics.compactions),
            ("compacted_bytes", "Bytes copied by compaction", &metrics.compacted_bytes),
            ("scrubbed_frames", "Frames verified by the scrub", &metrics.scrubbed_frames),
        ];
        for (name, help, counter) in counters {
            inner.register(name, help, counter.clone());
        }
        inner.register(
            "poisoned_disks",
            "Poisoned disks: they take no writes until a restart",
            metrics.poisoned_disks.clone(),
        );
        let help = "Disks out of service because they could not be recovered";
        inner.register("failed_disks", help, metrics.failed_disks.clone());
        inner.register("extents", "Extents", metrics.extents.clone());
        metrics
    }
}
