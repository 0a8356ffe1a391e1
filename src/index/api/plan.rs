//! A change of the partition map that the manager or an operator asks an index server for.

use serde::Deserialize;
use serde::Serialize;

use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// A change to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plan {
    /// Cut a partition at these keys, ascending; at least one.
    Split(PartitionId, Vec<RoutingKey>),
    /// Cut a partition into this many parts, at least two, with about equal numbers of rows.
    SplitEvenly(PartitionId, usize),
    /// Give a partition to another host.
    Move(PartitionId, HostId),
    /// Divide a part of a partition's range, inside one container, into this many stripes. The
    /// ranges below and above it become partitions.
    Stripe(PartitionId, KeyRange, u8),
    /// Merge neighbours, in key order, or all stripes of a range.
    Merge(Vec<PartitionId>),
}
