//! The latest changes of the map, as the admin listener shows them.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::index::api::ChangeEvent;
use crate::types::KeyRange;
use crate::types::PartitionId;

/// The number of changes that are kept.
const CHANGES_MAX: usize = 1_000;

/// The partitions before and after a change, in key order, and their keys.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) from: Vec<PartitionId>,
    pub(super) to: Vec<PartitionId>,
    pub(super) range: KeyRange,
}

/// The latest changes, at most a thousand. They are numbered from 1.
#[derive(Debug, Default)]
pub struct LatestChanges(Mutex<(u64, VecDeque<ChangeEvent>)>);

impl LatestChanges {
    /// Adds a change and gives it its number.
    pub fn note(&self, event: ChangeEvent) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, latest) = &mut *changes;
        *count += 1;
        if latest.len() == CHANGES_MAX {
            latest.pop_front();
        }
        latest.push_back(ChangeEvent { number: *count, ..event });
    }

    /// Those after change `number`, oldest first; at most the latest thousand.
    #[must_use]
    pub fn after(&self, number: u64) -> Vec<ChangeEvent> {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.1.iter().filter(|event| event.number > number).cloned().collect()
    }
}
