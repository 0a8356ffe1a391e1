//! A partition that stands still: nothing is appended to its log, so what its holder sees is all
//! there is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::index::engine::chores::Chore;
use crate::index::engine::commit::{Command, Committer};
use crate::index::engine::core::{Core, Status};
use crate::index::engine::log::writer::LogState;
use crate::index::engine::partition::Partition;
use crate::index::engine::shared::Failed;
use crate::index::engine::view::Sources;
use crate::types::Sequence;
use crate::types::Timestamp;

/// The durable state of a partition whose committer waits. Dropped without a verdict, the partition
/// takes no write until it is opened again: what its holder did is unknown.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) core: Arc<Core>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) sequence: Sequence,
    pub(crate) time: Timestamp,
    pub(crate) flushed: Sequence,
    pub(crate) log: LogState,
    /// Whether the newest log extent takes appends.
    pub(crate) is_open: bool,
    /// Monotonic time since which no write is made durable.
    pub(crate) since: Duration,
    verdict: oneshot::Sender<Verdict>,
}

#[derive(Debug)]
enum Verdict {
    /// Nothing has changed.
    Resume,
    /// Other partitions have its range now.
    Gone,
    /// Another host has it now, log and all.
    Moved,
    /// As after a failed append.
    Stop(Failed),
}

impl Held {
    /// Lets the partition go on: nothing has changed.
    pub(crate) fn resume(self) {
        // Whoever closed the partition meanwhile needs no verdict.
        drop(self.verdict.send(Verdict::Resume));
    }

    /// The partition is no more: its range has other owners, who share what they need of it.
    pub(crate) fn gone(self) {
        drop(self.verdict.send(Verdict::Gone));
    }

    /// The partition is served elsewhere, with the same log and runs.
    pub(crate) fn moved(self) {
        drop(self.verdict.send(Verdict::Moved));
    }

    /// Ends its writes as `failed` demands. What was made for the change is in use if it came true,
    /// and recorded.
    pub(crate) fn stop(self, failed: &Failed) {
        drop(self.verdict.send(Verdict::Stop(failed.clone())));
    }
}

impl Partition {
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
        self.waits.resume(self.core.shared.parts.env.clock.monotonic());
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
            since: self.core.shared.parts.env.clock.monotonic(),
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
                    self.core.shared.chores.add(Chore::Seal(link.extent, self.core.epoch));
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
