//! What the committer asserts of itself, and how a violation stops the partition.

use std::sync::atomic::Ordering;

use crate::index::engine::commit::{Committer, Numbers};
use crate::index::engine::failed::Failed;
use crate::index::invariant::{Invariant, Violation};

impl Committer {
    /// Whether a batch may be appended: nothing was found violated while it was evaluated, its
    /// commits follow those that are durable (I2), the log is the one of this owner (I2), and the
    /// bytes of the memtables are counted (I16).
    pub(crate) fn check(
        &self,
        sound: Result<(), Violation>,
        batch: Numbers,
    ) -> Result<(), Violation> {
        sound?;
        let Numbers { first, last, commits } = batch;
        let follows = first == self.sequence.plus(1) && last == self.sequence.plus(commits);
        Invariant::OneOwner.assert(follows, || {
            format!("commits {first} to {last} would follow commit {}", self.sequence)
        })?;
        self.log.check_owner(self.core.id, self.core.epoch)?;
        self.log.check_next(first)?;
        self.sources.tables().try_for_each(|tables| tables.check_counted())
    }

    /// Counts a write of the queue out (I16).
    pub(crate) fn uncount(&self, weight: usize) -> Result<(), Violation> {
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
        let health = self.core.shared.parts.env.tasks.health();
        violation.report(&health, format_args!("partition {}", self.core.id));
        let failed = Failed::from(violation);
        if self.failed.is_none() {
            self.stop_after(&failed);
        }
        failed
    }
}
