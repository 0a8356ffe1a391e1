//! Writes that take long to evaluate: outside the committer, ahead of their turn.
//!
//! The committer evaluates one write after the other, and everybody waits behind a blob with
//! thousands of snapshots or tens of thousands of blocks. So it gives a write back that reads more
//! rows than it may in the committer (`commit.rs`). Then:
//!
//! 1. A watch (`watches.rs`) on all rows the write rests on begins, and after that a snapshot is
//!    taken.
//! 2. The write is evaluated on the snapshot, in the task of its caller, in steps.
//! 3. The result is queued. The committer looks whether a commit after the snapshot touched the
//!    rows of the watch. If none did, it adds the rows as if it had just evaluated the write. Else
//!    the write goes back to 1.
//!
//! A write that was overtaken again and again keeps other writes to the same rows waiting before
//! they are queued, so that it comes through. Of two that are evaluated ahead and may touch the
//! same rows, the second waits for the end of the first.
//!
//! Few are evaluated at a time, since each holds its rows in memory. One that is queued counts in
//! the bytes of the queue instead, and gives its place to the next; only one for which the queue
//! has no room keeps it through its commit.
//!
//! Those that wait for a watch to end or for a place are a queue like the committer's, with the
//! same bounds and the same patience: the watch they wait for ends with a commit, which may be on a
//! slow disk. One that was overtaken is let in however many wait; it was let in before.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::env::Clock;
use crate::env::Waits;
use crate::index::api::Error;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::engine::partition::{Entry, Partition, Ready};
use crate::index::engine::watches::{Evaluated, Outcome};
use crate::index::rows::RowBatch;

/// Bytes of a write that is evaluated ahead without asking the committer first: a long list.
const LONG_BYTES: usize = 256 * 1024;
/// Times a write is overtaken before it keeps others waiting.
const OVERTAKEN_MAX: usize = 2;
/// Times a write is evaluated at most.
const TRIES_MAX: usize = 8;
/// Whether a write takes long for what it brings along, whatever it finds.
pub(crate) fn is_long(write: &Write, weight: usize) -> bool {
    weight >= LONG_BYTES || matches!(write, Write::PurgeContainer { .. })
}

impl Partition {
    /// Waits until no other write needs the rows of this one for itself; returns for how long.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when that takes longer than a write may wait, or too many wait.
    pub(crate) async fn pass(
        &self,
        write: &Write,
        weight: usize,
        clock: &dyn Clock,
    ) -> Result<Duration, Error> {
        let watches = &self.core.watches;
        if !watches.may_be_alone() {
            return Ok(Duration::ZERO);
        }
        let key = write.routing_key();
        let Some(mut ended) = watches.alone_with(&key) else { return Ok(Duration::ZERO) };
        let arrived = clock.monotonic();
        let few = self.few_wait_ahead(arrived)?;
        let config = &self.core.context.config;
        let _waiter = watches.wait(weight, config).ok_or(Error::Overloaded)?;
        let mut late = pin!(self.waits.over(clock, arrived, few));
        loop {
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = &mut late => return Err(Error::Overloaded),
            }
            match watches.alone_with(&key) {
                Some(next) => ended = next,
                None => return Ok(clock.monotonic().saturating_sub(arrived)),
            }
        }
    }

    /// Whether few wait here and in the queue, where what waits here goes next.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when many do and another would wait in vain.
    fn few_wait_ahead(&self, now: Duration) -> Result<bool, Error> {
        let (config, watches) = (&self.core.context.config, &self.core.watches);
        let few = self.few_are_queued()
            && Waits::is_few(watches.waiting.load(Ordering::Relaxed), config.queue_ops)
            && Waits::is_few(watches.waiting_bytes.load(Ordering::Relaxed), config.queue_bytes);
        if self.waits.is_late(now, few) { Err(Error::Overloaded) } else { Ok(few) }
    }

    /// Evaluates a write on snapshots and has the committer take the result, until one still holds
    /// then. It has waited for `waited` already.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub(crate) async fn write_ahead(
        &self,
        write: Arc<Write>,
        waited: Duration,
        clock: &dyn Clock,
    ) -> Result<WriteReply, Error> {
        let context = &self.core.context;
        let range = write.reach().ok_or_else(|| Error::Unavailable("no reach".into()))?;
        let now = clock.monotonic();
        let few = self.few_wait_ahead(now)?;
        let arrived = if few { now.saturating_sub(waited) } else { now };
        let waiter = self.core.watches.wait(write.weight(), &context.config);
        let mut waiter = Some(waiter.ok_or(Error::Overloaded)?);
        let mut late = pin!(self.waits.over(clock, arrived, few));
        // Before the snapshot: what is committed after that, it notes.
        let watch = loop {
            match self.core.watches.begin(&range) {
                Ok(watch) => break watch,
                Err(ended) => tokio::select! {
                    biased;
                    () = ended.cancelled() => {}
                    () = &mut late => return Err(Error::Overloaded),
                },
            }
        };
        let mut waited = None;
        for overtaken in 0..TRIES_MAX {
            // That of the try before was given back.
            let place = tokio::select! {
                biased;
                place = context.ahead.acquire() => place.ok(),
                () = &mut late => return Err(Error::Overloaded),
            };
            drop(waiter.take());
            let waited = *waited.get_or_insert_with(|| clock.monotonic().saturating_sub(arrived));
            if overtaken >= OVERTAKEN_MAX {
                watch.watch.alone.store(true, Ordering::Release);
            }
            self.core.may_write()?;
            let view = self.core.snapshot();
            let time = watch.date(|| self.core.tick());
            let mut rows = RowBatch::default();
            let reply = context.deps.machine.evaluate(&view, &write, time, &mut rows).await;
            self.stop_if_violated(&view).await;
            if reply.is_err() || (rows.changes.is_empty() && !rows.must_commit) {
                // It rests on durable rows alone. Ownership is checked after they were read, as for
                // a read.
                self.core.may_read()?;
                return reply;
            }
            let reply = reply?;
            let snapshot = view.sequence;
            drop(view);
            let ready = Evaluated { reply, rows, time, snapshot, watch: Arc::clone(&watch) };
            let weight = write.weight() + ready.weight();
            let ready = Some(Ready { evaluated: Box::new(ready), place });
            let entry = Entry { write: Arc::clone(&write), evaluated: ready, weight, waited };
            match self.take_turn(entry, clock).await? {
                Outcome::Done(reply) => return Ok(reply),
                Outcome::Again => {}
            }
            waiter = Some(self.core.watches.enter(write.weight()).waiter);
        }
        Err(Error::Overloaded)
    }
}
