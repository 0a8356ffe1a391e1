//! Assertions of the committer, and how a violation stops the partition.

use std::sync::atomic::Ordering;

use crate::index::engine::commit::Committer;
use crate::index::engine::failed::Failed;
use crate::index::engine::group_commit::GroupCommit;
use crate::index::invariant::{Invariant, Violation};

impl Committer {
    /// Checks that a batch may be appended: its evaluation found no violation, its commits follow
    /// the durable ones (I2), the log belongs to this owner (I2), and the budget has the bytes of
    /// the memtables (I16).
    pub(super) fn check(&self, batch: &GroupCommit) -> Result<(), Violation> {
        batch.sound.clone()?;
        let (first, last) = (batch.rows.first(), batch.last);
        let numbered = self.sequence.plus(u64::from(batch.rows.commits()));
        let follows = first == self.sequence.plus(1) && last == numbered;
        Invariant::OneOwner.assert(follows, || {
            format!("commits {first} to {last} would follow commit {}", self.sequence)
        })?;
        self.log.check_owner(self.core.id, self.core.epoch)?;
        self.log.check_next(first)?;
        self.sources.tables().try_for_each(|tables| tables.check_counted())
    }

    /// Subtracts a write from the bytes of the queue (I16).
    pub(super) fn uncount(&self, weight: usize) -> Result<(), Violation> {
        let less = |queued: usize| queued.checked_sub(weight);
        let counted = self.queued_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        counted.map(drop).map_err(|queued| {
            Invariant::Bounded.violated(format!("{weight} bytes leave a queue of {queued}"))
        })
    }

    /// Stops the partition unless an invariant holds.
    pub(crate) fn assert(
        &mut self,
        invariant: Invariant,
        holds: bool,
        found: impl FnOnce() -> String,
    ) -> Result<(), Failed> {
        invariant.assert(holds, found).map_err(|violation| self.stop_violated(violation))
    }

    /// Counts that an invariant does not hold, and stops the partition.
    pub(crate) fn stop_violated(&mut self, violation: Violation) -> Failed {
        let health = self.core.context.deps.env.tasks.health();
        violation.report(&health, format_args!("partition {}", self.core.id));
        let failed = Failed::from(violation);
        if self.failed.is_none() {
            self.stop_after(&failed);
        }
        failed
    }
}
