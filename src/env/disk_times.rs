//! How long the writes and syncs of a disk took, for `/metrics`.

use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::histogram::exponential_buckets;

/// Histograms of one disk, seconds; clones share them. The times are those of the system calls: a
/// write into the page cache is short, and a sync shows what the device does.
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
    /// Notes a write.
    pub(super) fn wrote(&self, took: Duration) {
        self.write.observe(took.as_secs_f64());
    }

    /// Notes a sync.
    pub(super) fn synced(&self, took: Duration) {
        self.sync.observe(took.as_secs_f64());
    }
}
