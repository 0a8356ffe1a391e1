//! A partition that stands still: nothing is appended to its log, so what its holder sees is all
//! there is.

use std::sync::Arc;

use tokio::sync::{MutexGuard, oneshot};

use crate::index::engine::change::held::{Held, Verdict};
use crate::index::engine::chores::Chore;
use crate::index::engine::commands::Command;
use crate::index::engine::commit::Committer;
use crate::index::engine::core::Status;
use crate::index::engine::failed::Failed;
use crate::index::engine::partition::Partition;

impl Partition {
    /// Keeps compaction out; one that runs is given up.
    pub(crate) async fn keep_compaction_out(&self) -> MutexGuard<'_, ()> {
        let _wants = self.compaction_yield.want();
        self.compacting.lock().await
    }

    /// Has the committer stand still after the batch it is at. Flush and compaction are to be kept
    /// out before: they would wait for it.
    ///
    /// # Errors
    /// Why the partition takes no writes.
    pub(crate) async fn hold(&self) -> Result<Held, Failed> {
        self.command(Command::Hold).await.and_then(|held| held)
    }
}

impl Committer {
    /// Waits for the holder's verdict.
    pub(crate) async fn hold(&mut self, answer: oneshot::Sender<Result<Held, Failed>>) {
        if let Some(failed) = &self.failed {
            drop(answer.send(Err(failed.clone())));
            return;
        }
        // What waits meanwhile waits for a change of the map, which is no overload.
        self.waits.pause();
        self.hold_until_decided(answer).await;
        self.waits.resume(self.core.context.deps.env.clock.monotonic());
    }

    async fn hold_until_decided(&mut self, answer: oneshot::Sender<Result<Held, Failed>>) {
        let (verdict, decided) = oneshot::channel();
        let held = Held {
            core: Arc::clone(&self.core),
            sources: Arc::clone(&self.sources),
            sequence: self.sequence,
            time: self.time,
            flushed: self.flushed,
            log: self.log.state().clone(),
            is_open: self.log.is_open(),
            since: self.core.context.deps.env.clock.monotonic(),
            verdict,
        };
        if answer.send(Ok(held)).is_err() {
            // Nobody holds it.
            return;
        }
        match decided.await {
            Ok(Verdict::Resume) => {}
            Ok(Verdict::Gone) => {
                // Whoever still waits is told that the range is elsewhere.
                self.failed = Some(Failed::Fenced);
                if let Some(link) = self.log.state().link {
                    self.core.context.chores.add(Chore::Seal(link.extent, self.core.epoch));
                }
            }
            Ok(Verdict::Moved) => self.failed = Some(Failed::Fenced),
            Ok(Verdict::Stop(failed)) => self.stop_after(&failed),
            Err(_) => {
                let reason = "a change of the partition map was left half-way";
                self.stop_after(&Failed::Other(reason.into()));
            }
        }
    }

    /// Tells everybody who waits, and whoever comes until nobody can, that the partition is
    /// elsewhere.
    pub(crate) async fn send_away(&mut self) {
        self.core.stop(Status::Lost);
        self.queue.close();
        while let Some(waiting) = self.queue.recv().await {
            drop(waiting.answer.send(Err(Failed::Fenced.into())));
        }
    }
}
