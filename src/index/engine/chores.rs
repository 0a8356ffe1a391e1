//! Work on extents that nobody waits for: left logs are sealed, what a partition uses no more is
//! released, and ids for the next flush are recorded. A task of the host does it (`do_chores.rs`,
//! `server/host/upkeep.rs`). What is not done when the program ends is done by the next owner of
//! the partition, which finds it in the partition's record.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::index::engine::extents::Extents;
use crate::types::Epoch;
use crate::types::ExtentId;

/// One piece of work.
#[derive(Clone, Debug)]
pub(crate) enum Chore {
    /// A log extent was left for a new one.
    Seal(ExtentId, Epoch),
    /// A partition uses an extent no more, and durably says so.
    Release(Arc<Extents>, ExtentId),
    /// A partition has few recorded ids left.
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
    /// Tried in vain.
    later: Vec<Due>,
}

impl Chores {
    /// Adds one and wakes the host's task.
    pub(crate) fn add(&self, chore: Chore) {
        self.lock().due.push_back(Due { chore, failures: 0 });
        self.added.notify_one();
    }

    /// Waits until one is added.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// Makes due what was tried in vain.
    pub(crate) fn retry(&self) {
        let mut queues = self.lock();
        let later = std::mem::take(&mut queues.later);
        queues.due.extend(later);
    }

    /// How many are not done.
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
