//! A change of the partition map, as the manager asks an index server for it.

use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

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
