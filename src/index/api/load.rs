//! What an index server reports of the load of its partitions.

use std::time::Duration;

use crate::index::load::Load;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Stripe;

/// The load of all partitions of an index server since its report before.
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
    /// Who serves it.
    pub host: HostId,
    /// Since the report before.
    pub load: Load,
    /// Rows in its runs, about.
    pub rows: u64,
    /// Bytes of those, about.
    pub bytes: u64,
    /// Whether it is under a change of the map now: then nothing is planned for it.
    pub changing: bool,
}
