//! The durable state of a partition that stands still, and what its holder decides.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::index::engine::core::Core;
use crate::index::engine::failed::Failed;
use crate::index::engine::log::writer::LogState;
use crate::index::engine::sources::Sources;
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
    pub(super) verdict: oneshot::Sender<Verdict>,
}

/// What becomes of a partition that stood still.
#[derive(Debug)]
pub(super) enum Verdict {
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
