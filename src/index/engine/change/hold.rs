//! Holds a partition: its committer appends nothing, so its durable state does not change.

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
    /// Locks compaction out. A running compaction gives up.
    pub(crate) async fn keep_compaction_out(&self) -> MutexGuard<'_, ()> {
        let _wants = self.compaction_yield.want();
        self.compacting.lock().await
    }

    /// Holds the committer after its current batch. The caller must lock out flush and compaction
    /// first: they would wait for the committer.
    ///
    /// # Errors
    /// The reason why the partition takes no writes.
    pub(crate) async fn hold(&self) -> Result<Held, Failed> {
        self.command(Command::Hold).await.and_then(|held| held)
    }
}

impl Committer {
    /// Holds this committer until the holder's verdict.
    pub(crate) async fn hold(&mut self, answer: oneshot::Sender<Result<Held, Failed>>) {
        if let Some(failed) = &self.failed {
            drop(answer.send(Err(failed.clone())));
            return;
        }
        // Writes that wait meanwhile wait for a change of the map. This is not overload.
        self.waits.pause();
        self.hold_until_decided(answer).await;
        self.waits.resume(self.core.context.deps.env.clock.monotonic());
    }

    async fn hold_until_decided(&mut self, answer: oneshot::Sender<Result<Held, Failed>>) {
        self.forget_ended_writers();
        let (verdict, decided) = oneshot::channel();
        let held = Held {
            core: Arc::clone(&self.core),
            sources: Arc::clone(&self.sources),
            sequence: self.sequence,
            time: self.time,
            flushed: self.flushed,
            answers: self.answers.clone(),
            log: self.log.state().clone(),
            is_open: self.log.is_open(),
            since: self.core.context.deps.env.clock.monotonic(),
            verdict,
        };
        if answer.send(Ok(held)).is_err() {
            // The holder has left.
            return;
        }
        match decided.await {
            Ok(Verdict::Resume) => {}
            Ok(Verdict::Gone) => {
                // Writes that still wait get
                // [`Error::WrongPartition`](crate::index::api::Error::WrongPartition).
                self.failed = Some(Failed::Fenced);
                if let Some(link) = self.log.state().link {
                    self.core.context.chores.add(Chore::Seal(link.extent, self.core.epoch));
                }
            }
            Ok(Verdict::Moved) => self.failed = Some(Failed::Fenced),
            Ok(Verdict::Stop(failed)) => self.stop_after(&failed),
            Err(_) => {
                let reason = "a change of the partition map was interrupted";
                self.stop_after(&Failed::Other(reason.into()));
            }
        }
    }

    /// Refuses all waiting writes, and those that come until the queue is closed: another owner has
    /// the partition.
    pub(crate) async fn send_away(&mut self) {
        self.core.stop(Status::Lost);
        self.queue.close();
        while let Some(waiting) = self.queue.recv().await {
            drop(waiting.answer.send(Err(Failed::Fenced.into())));
        }
    }
}
