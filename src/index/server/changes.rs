//! The latest changes of the map, as the admin listener shows them.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Timestamp;

/// The number of changes that are kept.
const CHANGES_MAX: usize = 1_000;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// One partition became several.
    Split,
    /// Several partitions became one.
    Merge,
    /// A partition went to another host.
    Move,
    /// A partition became the stripes of its range.
    Stripe,
    /// All stripes of a range became one partition.
    Unstripe,
}

impl ChangeKind {
    /// The word that is shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Move => "move",
            Self::Stripe => "stripe",
            Self::Unstripe => "unstripe",
        }
    }
}

/// The partitions before and after a change, in key order, and their keys.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) from: Vec<PartitionId>,
    pub(super) to: Vec<PartitionId>,
    pub(super) range: KeyRange,
}

/// A change of the map that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeEvent {
    /// The number of the change since the start of the process, from 1.
    pub number: u64,
    /// The time of the change.
    pub at: Timestamp,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The partitions before, in key order.
    pub from: Vec<PartitionId>,
    /// The partitions after, in key order.
    pub to: Vec<PartitionId>,
    /// The keys of the partitions before, and of those after.
    pub range: KeyRange,
    /// The host that serves the new partitions.
    pub host: HostId,
    /// For how long no write of the range was made durable.
    pub pause: Duration,
}

/// The latest changes.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<(u64, VecDeque<ChangeEvent>)>);

impl Changes {
    /// Adds a change and gives it its number.
    pub(super) fn note(&self, event: ChangeEvent) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, latest) = &mut *changes;
        *count += 1;
        if latest.len() == CHANGES_MAX {
            latest.pop_front();
        }
        latest.push_back(ChangeEvent { number: *count, ..event });
    }

    pub(super) fn after(&self, number: u64) -> Vec<ChangeEvent> {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.1.iter().filter(|event| event.number > number).cloned().collect()
    }
}
