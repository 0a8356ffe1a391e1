//! The latest changes of the map, for whoever looks.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::types::HostId;
use crate::types::PartitionId;
use crate::types::Timestamp;

/// Changes remembered.
const CHANGES_MAX: usize = 1_000;

/// What happened to the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// One became several.
    Split,
    /// Several became one.
    Merge,
    /// One went to another host.
    Move,
    /// One became the stripes of its range.
    Stripe,
    /// All stripes of a range became one.
    Unstripe,
}

impl ChangeKind {
    /// As shown.
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

/// A change of the map that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeEvent {
    /// Counts changes since the start, from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: ChangeKind,
    /// The partitions before, in key order.
    pub from: Vec<PartitionId>,
    /// The partitions after, in key order.
    pub to: Vec<PartitionId>,
    /// Who serves them now.
    pub host: HostId,
    /// How long no write of the range was made durable.
    pub pause: Duration,
}

/// The latest changes.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<(u64, VecDeque<ChangeEvent>)>);

impl Changes {
    /// Notes one; its number is given here.
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
