//! What counts as hot, cold and large.

use std::time::Duration;

use crate::index::Load;
use crate::index::PartitionLoad;

/// How often load is looked at: with [`PolicyConfig::hot_ticks`] and the change itself, half a
/// second for what begins just after a look.
pub const TICK: Duration = Duration::from_millis(125);
/// From this share of a hot partition's load on its keys are looked at, so that they are known once
/// it is hot.
const WARM: f64 = 0.5;
/// With less than this share of a hot partition's load, waiting is no reason for a split: when a
/// whole machine has too much to do writes wait in every partition, and more partitions would not
/// help.
const WAITING_MIN: f64 = 0.1;

/// What counts as hot and cold, and how fast to act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Requests a second above which a partition is hot. Default 5,000: about a third of what one
    /// commits on one core.
    pub hot_requests: f64,
    /// The share of a processor above which it is hot, however few requests that takes. Default
    /// 0.6.
    pub hot_cpu: f64,
    /// A write that waits so long behind others makes it hot. Default 20 ms.
    pub hot_queue_age: Duration,
    /// Ticks in a row it must be hot. Default 3: a blip is over by then.
    pub hot_ticks: u32,
    /// Rows above which it is split whatever its load. Default 20 million.
    pub rows_max: u64,
    /// Bytes of runs above which it is split whatever its load. Default 8 GiB.
    pub bytes_max: u64,
    /// Partitions at most. Default 1,000.
    pub partitions_max: usize,
    /// Splits in one tick at most. Default 2.
    pub splits_per_tick: usize,
    /// Moves in one tick at most. Default 4.
    pub moves_per_tick: usize,
    /// The share of all load that moves in one tick at most, but one partition may whatever its
    /// share. Default 0.05.
    pub churn: f64,
    /// A partition is left alone so long after it was made, and after a split that failed. Default
    /// 1 s.
    pub settle: Duration,
    /// One whose names only grow is cut behind the newest so often, one that is too large is asked
    /// for so often to be split, and neighbours that could not be merged are tried again so long
    /// after. Default 1 minute.
    pub grow: Duration,
    /// A partition that moved stays so long, and stripes that could not be merged are left alone so
    /// long. Default 5 s.
    pub stay: Duration,
    /// Neighbours are merged when together they had less than a quarter of a hot partition's load
    /// in every tick of this time. Default 10 minutes.
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
    /// A load by what it is most short of, where 1 is just hot: requests, or processor. It adds up
    /// over the partitions of a host, and moves with them, so that hosts are compared by it.
    /// Waiting does not: it is what too much of either leads to. Log bytes do not: disks are shared
    /// by all hosts.
    #[must_use]
    pub fn weight(&self, load: &Load) -> f64 {
        (load.requests() / self.hot_requests).max(load.cpu / self.hot_cpu)
    }

    pub(super) fn is_hot(&self, load: &Load) -> bool {
        let weight = self.weight(load);
        weight > 1.0 || (load.queue_age > self.hot_queue_age && weight > WAITING_MIN)
    }

    /// Whether it is hot or may be soon, so that its keys are looked at.
    pub(super) fn is_warm(&self, load: &Load) -> bool {
        self.weight(load) > WARM || self.is_hot(load)
    }

    /// How many times as large as it should be: above 1 it is split for it.
    pub(super) fn size(&self, load: &PartitionLoad) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
        let times = |size: u64, max: u64| size as f64 / max.max(1) as f64;
        times(load.rows, self.rows_max).max(times(load.bytes, self.bytes_max))
    }
}
