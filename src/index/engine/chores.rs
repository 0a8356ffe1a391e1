//! Chores: work on extents that no request waits for. A former log extent is sealed, an unused
//! extent is released, ids for the next flush are recorded. A task of the host carries them out
//! (`do_chores.rs`, `server/host/upkeep.rs`). If the program ends before that, the next owner of
//! the partition finds the unused extents in the partition's record.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::index::engine::extents::Extents;
use crate::types::Epoch;
use crate::types::ExtentId;

/// A chore.
#[derive(Clone, Debug)]
pub(crate) enum Chore {
    /// Seal an extent from which the log has moved on.
    Seal(ExtentId, Epoch),
    /// Release an extent that a partition no longer uses, as its durable state says.
    Release(Arc<Extents>, ExtentId),
    /// Record more ids for a partition that has few left.
    Refill(Arc<Extents>),
}

/// A chore, and how often it has failed.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) chore: Chore,
    pub(super) failures: u32,
}

/// Chores not yet done.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    queues: Mutex<Queues>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Queues {
    /// Oldest first.
    due: VecDeque<Due>,
    /// Chores that have failed and are not due.
    later: Vec<Due>,
}

impl Chores {
    /// Adds a chore and wakes the host's task.
    pub(crate) fn add(&self, chore: Chore) {
        self.lock().due.push_back(Due { chore, failures: 0 });
        self.added.notify_one();
    }

    /// Waits until a chore is added.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// Makes the failed chores due again.
    pub(crate) fn retry(&self) {
        let mut queues = self.lock();
        let later = std::mem::take(&mut queues.later);
        queues.due.extend(later);
    }

    /// The number of chores that are not done.
    pub(crate) fn left(&self) -> usize {
        let queues = self.lock();
        queues.due.len() + queues.later.len()
    }

    pub(super) fn next(&self) -> Option<Due> {
        self.lock().due.pop_front()
    }

    pub(super) fn put_off(&self, chore: Due) {
        self.lock().later.push(chore);
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
