//! The messages to a committer: queued writes, and commands of the maintenance.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::env::Turn;
use crate::index::api::Error;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::engine::change::Held;
use crate::index::engine::edit::Edit;
use crate::index::engine::failed::Failed;
use crate::index::engine::sources::Frozen;
use crate::index::engine::watches::{Evaluated, Outcome};
use crate::index::invariant::Violation;
use crate::types::ExtentId;

/// Receives the outcome of a queued write.
pub(super) type Answer = oneshot::Sender<Result<Outcome, Error>>;

/// A queued write.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) write: Arc<Write>,
    /// Its number, if it may be sent again.
    pub(crate) id: Option<WriteId>,
    /// Its result, if it was evaluated ahead.
    pub(crate) evaluated: Option<Box<Evaluated>>,
    pub(crate) weight: usize,
    pub(crate) answer: Answer,
    /// When the write was queued, or arrived before that; monotonic time.
    pub(crate) arrived: Duration,
    /// The committer takes it before it evaluates the write; the caller takes it to give up. Only
    /// one of them succeeds.
    pub(crate) turn: Turn,
}

/// A change that a test makes to the committer. It does not name the committer's type, which
/// imports this file.
#[cfg(test)]
pub(crate) struct BreakInvariant(pub(crate) Break);

/// A function that gets the committer as `Any`.
#[cfg(test)]
pub(crate) type Break = Box<dyn FnOnce(&mut dyn std::any::Any) + Send>;

#[cfg(test)]
impl std::fmt::Debug for BreakInvariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BreakInvariant")
    }
}

/// A command to the committer. It is carried out between two batches.
#[derive(Debug)]
pub(crate) enum Command {
    /// Freezes the active memtable, starts a new one, and returns the frozen one. Returns an older
    /// one that is still frozen, or `None` if there are no rows.
    Freeze(oneshot::Sender<Result<Option<Frozen>, Failed>>),
    /// Makes new runs part of the partition.
    Install(Edit, oneshot::Sender<Result<(), Failed>>),
    /// Moves the log to a new extent, if its newest one is this.
    LeaveLog(ExtentId),
    /// Stops the partition: another owner has it.
    Lose,
    /// Stops the partition: an invariant does not hold.
    StopAfter(Violation),
    /// Breaks an invariant of the committer.
    #[cfg(test)]
    Break(BreakInvariant),
    /// Pauses the committer until the holder of the answer decides how to go on.
    Hold(oneshot::Sender<Result<Held, Failed>>),
    /// Refuses all waiting writes with [`Error::WrongPartition`], and ends the task.
    SendAway,
    /// Ends the task.
    Stop,
}
