//! How many groups of extents a cluster has, and how many of these have too few copies.

use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupRecord;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeState;

/// Counts of groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupCounts {
    /// Groups that have bytes, or may get some.
    pub(super) all: u64,
    /// Those that have fewer copies than wanted, on nodes that are there.
    pub(super) short: u64,
}

/// Whether a group has bytes, or may get some.
pub(super) fn is_used(group: &GroupRecord) -> bool {
    !Extents::ALL.without(group.gone()).is_empty()
}

impl GroupCounts {
    /// Counts these groups of a cluster that wants so many `copies`.
    pub(super) fn of<'a>(
        groups: impl Iterator<Item = &'a GroupRecord>,
        nodes: &[NodeAt],
        copies: u8,
    ) -> Self {
        let is_there = |at: &&NodeAt| at.life.is_some() && at.record.state != NodeState::Removed;
        let there: Vec<&NodeAt> = nodes.iter().filter(is_there).collect();
        let mut counts = Self::default();
        for group in groups.filter(|group| is_used(group)) {
            counts.all += 1;
            let has = there.iter().filter(|at| group.has_member(at.id)).count();
            counts.short += u64::from(has < usize::from(copies));
        }
        counts
    }
}
