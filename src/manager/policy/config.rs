//! The limits for hot, cold and large partitions.

use std::time::Duration;

use crate::index::Load;
use crate::index::PartitionLoad;

/// The interval of load reports. With [`PolicyConfig::hot_ticks`] and the change itself, the map
/// follows a load at most about half a second after it begins.
pub const TICK: Duration = Duration::from_millis(125);
/// A partition with this share of a hot partition's load is warm: its keys are sampled, so that
/// they are known once it is hot.
const WARM: f64 = 0.5;
/// With less than this share of a hot partition's load, waits cause no split. On an overloaded
/// machine writes wait in every partition, and more partitions do not help.
const WAITING_MIN: f64 = 0.1;

/// The limits of the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Requests a second above which a partition is hot. Default 5,000: about a third of what one
    /// partition commits on one core.
    pub hot_requests: f64,
    /// The share of a processor above which a partition is hot, whatever its requests. Default 0.6.
    pub hot_cpu: f64,
    /// A write that waits longer than this behind others makes a partition hot. Default 20 ms.
    pub hot_queue_age: Duration,
    /// The successive ticks in which a partition must be hot to be split. Default 3, because short
    /// peaks are over by then.
    pub hot_ticks: u32,
    /// Rows above which a partition is split, whatever its load. Default 20 million.
    pub rows_max: u64,
    /// Bytes of runs above which a partition is split, whatever its load. Default 8 GiB.
    pub bytes_max: u64,
    /// The most partitions. Default 1,000.
    pub partitions_max: usize,
    /// The most splits in one tick. Default 2.
    pub splits_per_tick: usize,
    /// The most moves in one tick. Default 4.
    pub moves_per_tick: usize,
    /// The largest share of all load that moves in one tick. One partition may move whatever its
    /// share. Default 0.05.
    pub churn: f64,
    /// For this time after its creation, and after a failed split, a partition is not split.
    /// Default 1 s.
    pub settle: Duration,
    /// The interval of cuts behind the newest name, of splits that a too large partition is planned
    /// for, and of tries to merge the same neighbours. Default 1 minute.
    pub grow: Duration,
    /// For this time a partition that moved does not move again, and stripes that could not be
    /// merged are not tried again. Default 5 s.
    pub stay: Duration,
    /// Neighbours are merged when each had less than an eighth of a hot partition's load in every
    /// tick of this time, and together they have less than a quarter. Default 10 minutes.
    pub cold_for: Duration,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            hot_requests: 5_000.0,
            hot_cpu: 0.6,
            hot_queue_age: Duration::from_millis(20),
            hot_ticks: 3,
            rows_max: 20_000_000,
            bytes_max: 8 << 30,
            partitions_max: 1_000,
            splits_per_tick: 2,
            moves_per_tick: 4,
            churn: 0.05,
            settle: Duration::from_secs(1),
            grow: Duration::from_secs(60),
            stay: Duration::from_secs(5),
            cold_for: Duration::from_secs(600),
        }
    }
}

impl PolicyConfig {
    /// A load as a multiple of a hot partition's: by requests or by processor time, whichever is
    /// greater. Hosts are compared by the sum over their partitions. Waits do not count, because
    /// they follow from both. Log bytes do not count, because all hosts share the disks.
    #[must_use]
    pub fn weight(&self, load: &Load) -> f64 {
        self.weight_of(load.requests(), load.cpu)
    }

    /// The same of so many requests a second, and this share of a processor.
    #[must_use]
    pub fn weight_of(&self, requests: f64, cpu: f64) -> f64 {
        (requests / self.hot_requests).max(cpu / self.hot_cpu)
    }

    pub(super) fn is_hot(&self, load: &Load) -> bool {
        let weight = self.weight(load);
        weight > 1.0 || (load.queue_age > self.hot_queue_age && weight > WAITING_MIN)
    }

    /// Whether a partition is hot or may soon be, so that its keys are sampled.
    pub(super) fn is_warm(&self, load: &Load) -> bool {
        self.weight(load) > WARM || self.is_hot(load)
    }

    /// The size of a partition as a multiple of the limit. Above 1 it is split.
    pub(super) fn size(&self, load: &PartitionLoad) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
        let times = |size: u64, max: u64| size as f64 / max.max(1) as f64;
        times(load.rows, self.rows_max).max(times(load.bytes, self.bytes_max))
    }
}
