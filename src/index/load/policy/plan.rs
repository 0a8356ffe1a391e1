//! What the policy is told of a partition, and what it decides.

use crate::index::load::rates::Load;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;
use crate::types::Stripe;

/// One partition at one tick.
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
    /// Since the last tick.
    pub load: Load,
    /// Rows in its runs, about.
    pub rows: u64,
    /// Bytes of those, about.
    pub bytes: u64,
    /// Whether it is under a change of the map now: then nothing is planned for it.
    pub changing: bool,
}

/// A change to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Cut a partition at these keys, ascending; at least one.
    Split(PartitionId, Vec<RoutingKey>),
    /// Cut a partition into so many with about as many rows, at least two.
    SplitEvenly(PartitionId, usize),
    /// Give a partition to another host.
    Move(PartitionId, HostId),
    /// Deal a part of a partition's range, inside one container, out to so many stripes; what is
    /// below and above stays as it is.
    Stripe(PartitionId, KeyRange, u8),
    /// Make neighbours, in key order, or all stripes of a range one.
    Merge(Vec<PartitionId>),
}
