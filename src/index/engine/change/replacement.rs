//! The partitions of a split or merge: those that are replaced, and those that replace them.

use crate::index::engine::extents::{Extents, Heir};
use crate::index::engine::log::writer::LogState;
use crate::index::map::PartitionDescriptor;

/// A partition to be replaced.
pub(super) struct Old<'a> {
    pub(super) log: &'a LogState,
    pub(super) extents: &'a Extents,
}

/// A partition that replaces others.
#[derive(Clone)]
pub(super) struct New {
    pub(super) descriptor: PartitionDescriptor,
    /// What it uses.
    pub(super) heir: Heir,
}
