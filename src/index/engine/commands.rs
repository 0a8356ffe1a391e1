//! What a committer is asked for: the writes in its queue, and what maintenance wants of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::env::Turn;
use crate::index::api::Error;
use crate::index::api::Write;
use crate::index::engine::change::Held;
use crate::index::engine::edit::Edit;
use crate::index::engine::failed::Failed;
use crate::index::engine::sources::Frozen;
use crate::index::engine::watches::{Evaluated, Outcome};
use crate::index::invariant::Violation;

/// Where the outcome of a turn goes.
pub(super) type Answer = oneshot::Sender<Result<Outcome, Error>>;

/// A queued write.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) write: Arc<Write>,
    /// What it comes to, when it was evaluated ahead.
    pub(crate) evaluated: Option<Box<Evaluated>>,
    pub(crate) weight: usize,
    pub(crate) answer: Answer,
    /// Monotonic.
    pub(crate) arrived: Duration,
    /// Taken before it is evaluated: who waits may have given up.
    pub(crate) turn: Turn,
}

/// What a test does to the committer. Not of its type, which is above this file.
#[cfg(test)]
pub(crate) struct BreakInvariant(pub(crate) Break);

/// The change, given a committer.
#[cfg(test)]
pub(crate) type Break = Box<dyn FnOnce(&mut dyn std::any::Any) + Send>;

#[cfg(test)]
impl std::fmt::Debug for BreakInvariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BreakInvariant")
    }
}

/// What maintenance asks of the committer.
#[derive(Debug)]
pub(crate) enum Command {
    /// Starts a new memtable and gives the full one; or the one still frozen; nothing when there
    /// are no rows.
    Freeze(oneshot::Sender<Result<Option<Frozen>, Failed>>),
    /// Makes new runs part of the partition.
    Install(Edit, oneshot::Sender<Result<(), Failed>>),
    /// Stops: another owner has the partition.
    Lose,
    /// Stops: an invariant does not hold.
    StopAfter(Violation),
    /// Breaks an invariant of the committer.
    #[cfg(test)]
    Break(BreakInvariant),
    /// Stands still between two batches until the holder lets go.
    Hold(oneshot::Sender<Result<Held, Failed>>),
    /// Refuses whoever waits, and ends the task.
    SendAway,
    /// Ends the task.
    Stop,
}
