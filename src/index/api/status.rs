//! The partitions of a process, as operators and the manager see them.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use crate::index::load::Counts;
use crate::types::Epoch;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Stripe;

/// The partitions of one process, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedPartitions {
    /// Where partitions can be, in order.
    pub hosts: Vec<HostId>,
    /// In key order; stripes of one range by number.
    pub partitions: Vec<PartitionStatus>,
}

/// The status of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionStatus {
    /// The partition.
    pub id: PartitionId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The host that serves it.
    pub host: HostId,
    /// The range its keys lie in.
    pub range: KeyRange,
    /// Its stripe of the range; `None` if it has all keys of the range.
    pub stripe: Option<Stripe>,
    /// Counts since it was opened here. A rate is the difference of two answers.
    pub counts: Counts,
    /// The longest wait of a write behind others, in the last tick.
    pub queue_age: Duration,
    /// Rows in its runs, old versions included, and those of former neighbours until compaction has
    /// separated them.
    pub rows: u64,
    /// Bytes of those runs, encoded.
    pub run_bytes: u64,
    /// Memory of its memtables.
    pub memtable_bytes: u64,
    /// Extents of its log.
    pub log_extents: u64,
    /// Whether it serves nothing until the next start, because its files are damaged or missing.
    pub quarantined: bool,
    /// Why it takes no writes (and, if it did not open, no reads); `None` if it serves.
    pub stopped: Option<String>,
}

/// How many requests a partition has had, and what they took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionCounts {
    /// The partition.
    pub id: PartitionId,
    /// The host that serves it.
    pub host: HostId,
    /// The range its keys lie in.
    pub range: KeyRange,
    /// Its stripe of the range; `None` if it has all keys of the range.
    pub stripe: Option<Stripe>,
    /// Requests since it was opened here; 0 if it is not open.
    pub requests: u64,
    /// Processor time of its commits and reads.
    pub cpu: Duration,
}
