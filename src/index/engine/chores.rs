//! Work on extents that nobody waits for: left logs are sealed, what a partition uses no more is
//! released, and ids for the next flush are recorded. A task of the host does it
//! (`host/upkeep.rs`). What is not done when the program ends is done by the next owner of the
//! partition, which finds it in the partition's record.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::index::engine::extents;
use crate::index::engine::extents::{Extents, ids};
use crate::index::engine::shared::Shared;
use crate::types::Epoch;
use crate::types::ExtentId;

/// Chores done before other tasks have a turn: some of them wait for nothing.
const AT_A_TIME: usize = 64;

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

/// How often a chore fails before that is told at WARN, once: tries are a second apart.
const MANY: u32 = 30;

/// How a try ended.
enum Tried {
    Done,
    /// What stands in the way ends by itself.
    Held,
    Failed,
}

/// Chores not yet done.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    queues: Mutex<Queues>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Queues {
    /// Oldest first; with how often each has failed.
    due: VecDeque<(Chore, u32)>,
    /// Tried in vain.
    later: Vec<(Chore, u32)>,
}

impl Chores {
    /// Adds one and wakes the host's task.
    pub(crate) fn add(&self, chore: Chore) {
        self.lock().due.push_back((chore, 0));
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

    fn next(&self) -> Option<(Chore, u32)> {
        self.lock().due.pop_front()
    }

    fn put_off(&self, chore: Chore, failures: u32) {
        self.lock().later.push((chore, failures));
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Does everything, what was tried in vain too.
    pub(crate) async fn do_chores(&self) {
        self.chores.retry();
        self.do_due_chores(|| false).await;
    }

    /// Does what is due until `is_over`. What fails is due again after [`Chores::retry`]. What
    /// panics is left to the next owner of the partition.
    pub(crate) async fn do_due_chores(&self, is_over: impl Fn() -> bool) {
        let mut done = 0_usize;
        while !is_over()
            && let Some((chore, failures)) = self.chores.next()
        {
            match self.do_chore(&chore, failures).await {
                Tried::Done => {}
                Tried::Held => self.chores.put_off(chore, failures),
                Tried::Failed => self.chores.put_off(chore, failures.saturating_add(1)),
            }
            done += 1;
            if done.is_multiple_of(AT_A_TIME) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// `failures` is how often it failed before.
    async fn do_chore(&self, chore: &Chore, failures: u32) -> Tried {
        match chore {
            Chore::Seal(extent, epoch) => {
                if let Err(error) = self.parts.capacity.seal(*extent, *epoch).await {
                    tracing::debug!(
                        %extent, %error,
                        "a log extent that was left could not be sealed"
                    );
                }
                Tried::Done
            }
            Chore::Release(extents, extent) => match extents::release(self, extents, *extent).await
            {
                Ok(true) => Tried::Done,
                Ok(false) => Tried::Held,
                Err(error) => {
                    self.parts.metrics.release_failed();
                    let what = "a log or run could not be released; it is tried again";
                    if failures + 1 == MANY {
                        tracing::warn!(%extent, %error, tries = MANY, "{what}");
                    } else {
                        tracing::debug!(%extent, %error, "{what}");
                    }
                    Tried::Failed
                }
            },
            Chore::Refill(extents) => {
                // The next flush asks again.
                if let Err(failed) = ids::refill(self, extents).await {
                    tracing::debug!(
                        partition = %extents.partition(), ?failed,
                        "no more extent ids could be recorded"
                    );
                }
                Tried::Done
            }
        }
    }
}
