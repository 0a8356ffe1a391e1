//! Changes of the partition map, carried out by the owner of what changes.
//!
//! 1. `hold.rs`: a partition's committer stands still between two batches; its holder sees all that
//!    is durable (`held.rs`).
//! 2. `split.rs`: one partition becomes several, by metadata alone.
//! 3. `merge.rs`: neighbours become one; what little is not yet in runs is copied.
//! 4. `handoff.rs`: a partition goes to another host, which has read all of it before.
//! 5. `compaction_yield.rs`: a running compaction is ended for a change of the map.
//! 6. `descriptors.rs`: the one transaction that makes a split or merge true (I5, I8). `check.rs`
//!    refuses one that would violate an invariant; `replacement.rs`: its partitions.
//!
//! Invariants: nothing of the old partitions changes before the transaction, so that every failure
//! before it leaves them serving; after one of unknown outcome they take no write until they are
//! opened again; after it only the new ones serve.
//!
//! Not here: when to change what (`load/`), and who carries it out (`server/`).

mod check;
mod compaction_yield;
mod descriptors;
mod handoff;
mod held;
mod hold;
mod merge;
mod replacement;
mod split;

pub(crate) use compaction_yield::CompactionYield;
pub use descriptors::TOO_MANY_RUNS;
pub(crate) use handoff::{NotMoved, hand_off};
pub(crate) use held::Held;
pub(crate) use merge::merge;

use crate::index::engine::failed::Failed;

/// Why partitions were not split or merged.
#[derive(Debug)]
pub(crate) enum NotChanged {
    /// They, or others that use the same extents, change too fast. Nothing has happened.
    Busy(&'static str),
    /// [`Failed::Full`], [`Failed::Refused`]: nothing has changed and they go on. The others stop
    /// them.
    Failed(Failed),
}

impl From<Failed> for NotChanged {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Busy(reason) => Self::Busy(reason),
            Failed::Full(_) | Failed::Refused(_) | Failed::Fenced | Failed::Other(_) => {
                Self::Failed(failed)
            }
        }
    }
}
