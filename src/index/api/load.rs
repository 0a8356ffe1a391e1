//! The load of partitions, as an index server reports it.

use std::time::Duration;

use crate::index::load::Load;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Stripe;

/// The load of all partitions of an index server since its last report.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// When it was taken, by the server's monotonic clock.
    pub at: Duration,
    /// The hosts that take partitions.
    pub hosts: Vec<HostId>,
    /// The partitions in key order, stripes of one range by number.
    pub partitions: Vec<PartitionLoad>,
}

/// The load of one partition in a report.
#[derive(Clone, Debug)]
pub struct PartitionLoad {
    /// The partition.
    pub id: PartitionId,
    /// The range its keys lie in.
    pub range: KeyRange,
    /// Which stripe of the range, if it is one.
    pub stripe: Option<Stripe>,
    /// The host that serves it.
    pub host: HostId,
    /// The load since the last report.
    pub load: Load,
    /// The approximate number of rows in its runs.
    pub rows: u64,
    /// The approximate number of bytes of its runs.
    pub bytes: u64,
    /// Whether it takes part in a change of the map now. Then nothing is planned for it.
    pub changing: bool,
}
