//! The durable state of a held partition, and the verdict of its holder.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::index::engine::answers::Answers;
use crate::index::engine::core::Core;
use crate::index::engine::failed::Failed;
use crate::index::engine::log::writer::LogState;
use crate::index::engine::sources::Sources;
use crate::types::Sequence;
use crate::types::Timestamp;

/// The durable state of a partition whose committer waits for a verdict. If this is dropped without
/// a verdict, the partition takes no write until it is opened again: the actions of the holder are
/// unknown.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) core: Arc<Core>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) sequence: Sequence,
    pub(crate) time: Timestamp,
    pub(crate) flushed: Sequence,
    /// The answers to writes that may be sent again.
    pub(crate) answers: Answers,
    pub(crate) log: LogState,
    /// Whether the newest log extent takes appends.
    pub(crate) is_open: bool,
    /// Since when no write has been made durable; monotonic time.
    pub(crate) since: Duration,
    pub(super) verdict: oneshot::Sender<Verdict>,
}

/// How a held partition goes on.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing has changed: it serves on.
    Resume,
    /// Other partitions have its range now: it ends.
    Gone,
    /// Another host has it now, with the same log and runs: it ends here.
    Moved,
    /// It stops as after a failed append.
    Stop(Failed),
}

impl Held {
    /// Resumes the partition: nothing has changed.
    pub(crate) fn resume(self) {
        // A committer that was ended meanwhile needs no verdict.
        drop(self.verdict.send(Verdict::Resume));
    }

    /// Ends the partition: other partitions have its range, and share its memtable, runs and log as
    /// they need.
    pub(crate) fn gone(self) {
        drop(self.verdict.send(Verdict::Gone));
    }

    /// Ends the partition here: another host serves it with the same log and runs.
    pub(crate) fn moved(self) {
        drop(self.verdict.send(Verdict::Moved));
    }

    /// Stops the partition as `failed` requires. Extents made for the change are recorded, and are
    /// in use if the change happened.
    pub(crate) fn stop(self, failed: &Failed) {
        drop(self.verdict.send(Verdict::Stop(failed.clone())));
    }
}
