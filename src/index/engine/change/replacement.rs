//! The old and the new partitions of a split or merge.

use crate::index::engine::extents::{Extents, Heir};
use crate::index::engine::log::writer::LogState;
use crate::index::map::PartitionDescriptor;

/// An old partition, which is replaced.
pub(super) struct Old<'a> {
    pub(super) log: &'a LogState,
    pub(super) extents: &'a Extents,
}

/// A new partition.
#[derive(Clone)]
pub(super) struct New {
    pub(super) descriptor: PartitionDescriptor,
    /// Its id, and the extents that it uses.
    pub(super) heir: Heir,
}
