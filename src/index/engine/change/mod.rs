//! Changes of the partition map, carried out by the owners of the partitions.
//!
//! 1. `hold.rs`: holds a partition's committer between two batches. `held.rs`: its durable state
//!    meanwhile.
//! 2. `split.rs`: one partition becomes several. Only metadata is written.
//! 3. `merge.rs`: several partitions become one. Only rows that are not in runs are copied.
//! 4. `handoff.rs`: a partition moves to another host, which has read its log before.
//!    `give.rs`: it moves to a host of another process, which opens it.
//! 5. `compaction_yield.rs`: ends a running compaction for a change of the map.
//! 6. `descriptors.rs`: the one transaction that replaces descriptors (I5, I8). `check.rs` refuses
//!    a change that would violate an invariant. `replacement.rs`: the old and new partitions.
//!
//! Invariants: before the transaction nothing of the old partitions changes, so they go on after a
//! failure. If the outcome of the transaction is unknown, they take no write until they are opened
//! again. After the transaction only the new partitions serve.
//!
//! Not here: the decision when to change the map (the manager), and which hosts take part
//! (`server/`).

mod check;
mod compaction_yield;
mod descriptors;
mod give;
mod handoff;
mod held;
mod hold;
mod merge;
mod replacement;
mod split;

pub(crate) use compaction_yield::CompactionYield;
pub use descriptors::TOO_MANY_RUNS;
pub(crate) use give::give;
pub(crate) use handoff::{NotMoved, hand_off};
pub(crate) use held::Held;
pub(crate) use merge::merge;

use crate::index::engine::failed::Failed;

/// Why a split or merge failed.
#[derive(Debug)]
pub(crate) enum NotChanged {
    /// The partitions, or others that share extents with them, change too fast. Nothing has
    /// changed.
    Busy(&'static str),
    /// After [`Failed::Full`] and [`Failed::Refused`] nothing has changed, and the partitions go
    /// on. The other failures stop them.
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
