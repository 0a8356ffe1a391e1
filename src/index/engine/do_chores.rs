//! Carries out chores. A chore that fails is tried again later.

use crate::index::engine::chores::{Chore, Due};
use crate::index::engine::context::HostContext;
use crate::index::engine::extents;
use crate::index::engine::extents::ids;

/// Chores done before the task yields: some of them never wait.
const AT_A_TIME: usize = 64;

/// A chore that failed this often is logged once. Tries are a second apart.
const MANY: u32 = 30;

/// How a try ended.
enum Tried {
    Done,
    /// A reader holds the removal back; that ends by itself.
    Held,
    Failed,
}

impl HostContext {
    /// Carries out all chores, also those that have failed before.
    pub(crate) async fn do_chores(&self) {
        self.chores.retry();
        self.do_due_chores(|| false).await;
    }

    /// Carries out due chores until `is_over` returns true. A failed chore is due again after
    /// [`Chores::retry`](crate::index::engine::chores::Chores::retry). A chore that panics is left
    /// to the next owner of the partition.
    pub(crate) async fn do_due_chores(&self, is_over: impl Fn() -> bool) {
        let mut done = 0_usize;
        while !is_over()
            && let Some(mut due) = self.chores.next()
        {
            match self.do_chore(&due).await {
                Tried::Done => {}
                Tried::Held => self.chores.put_off(due),
                Tried::Failed => {
                    due.failures = due.failures.saturating_add(1);
                    self.chores.put_off(due);
                }
            }
            done += 1;
            if done.is_multiple_of(AT_A_TIME) {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn do_chore(&self, due: &Due) -> Tried {
        match &due.chore {
            Chore::Seal(extent, epoch) => {
                if let Err(error) = self.deps.capacity.seal(*extent, *epoch).await {
                    tracing::debug!(
                        %extent, %error,
                        "a former log extent could not be sealed"
                    );
                }
                Tried::Done
            }
            Chore::Release(extents, extent) => match extents::release(self, extents, *extent).await
            {
                Ok(true) => Tried::Done,
                Ok(false) => Tried::Held,
                Err(error) => {
                    self.deps.metrics.release_failed();
                    let what = "a log or run could not be released; it is tried again";
                    if due.failures + 1 == MANY {
                        tracing::warn!(%extent, %error, tries = MANY, "{what}");
                    } else {
                        tracing::debug!(%extent, %error, "{what}");
                    }
                    Tried::Failed
                }
            },
            Chore::Refill(extents) => {
                // After a failure the next flush asks again.
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
