//! Durations of the writes and syncs of a disk, for `/metrics`.

use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::histogram::exponential_buckets;

/// Histograms of one disk, in seconds; clones share them. The durations are those of the system
/// calls: a write copies into the page cache, and a sync waits for the device.
#[derive(Clone, Debug)]
pub struct DiskTimes {
    /// Writes.
    pub write: Histogram,
    /// Syncs of files and folders.
    pub sync: Histogram,
}

impl Default for DiskTimes {
    fn default() -> Self {
        // 50 us to 26 s, each twice the one before.
        let buckets = || Histogram::new(exponential_buckets(0.000_05, 2.0, 20));
        Self { write: buckets(), sync: buckets() }
    }
}

impl DiskTimes {
    /// Counts a write.
    pub(super) fn wrote(&self, took: Duration) {
        self.write.observe(took.as_secs_f64());
    }

    /// Counts a sync.
    pub(super) fn synced(&self, took: Duration) {
        self.sync.observe(took.as_secs_f64());
    }
}
