//! Long writes are evaluated outside of the committer, ahead of their turn.
//!
//! The committer evaluates one write after the other. A write to a blob with thousands of snapshots
//! or tens of thousands of blocks would delay all writes behind it. So the committer returns a
//! write that reads more than [`ROWS_IN_TURN`](crate::index::engine::commit::ROWS_IN_TURN) rows to
//! its caller. Then:
//!
//! 1. The caller begins a watch (`watches.rs`) on all rows that the write may read, and then takes
//!    a snapshot.
//! 2. It evaluates the write on the snapshot, in its own task, in steps.
//! 3. It queues the result. The committer checks whether a commit after the snapshot changed a
//!    watched row. If not, it adds the result's rows as if it had just evaluated the write.
//!    Otherwise the write is *overtaken*: the caller evaluates it again on a new snapshot.
//!
//! A write that was overtaken several times makes other writes to its rows wait before they are
//! queued, so that it succeeds. Of two writes that are evaluated ahead and may touch the same rows,
//! the second waits until the first has ended.
//!
//! Only [`AHEAD_MAX`](crate::index::engine::context::AHEAD_MAX) writes are evaluated ahead at a
//! time, since each holds its rows in memory. A queued result counts in the bytes of the queue and
//! gives its permit to the next write. A result for which the queue has no room keeps its permit
//! until its commit.
//!
//! Writes that wait for a watch to end or for a permit form a queue with the bounds and time limits
//! of the committer's queue: the watch ends with a commit, which may be on a slow disk. An
//! overtaken write is admitted again whatever the length of that queue.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::env::Clock;
use crate::env::Waits;
use crate::index::api::Error;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::engine::partition::{Entry, Partition, Ready};
use crate::index::engine::watches::{Evaluated, Outcome};
use crate::index::rows::RowBatch;

/// A write of at least this many bytes, such as a long block list, is evaluated ahead without
/// trying the committer first.
const LONG_BYTES: usize = 256 * 1024;
/// A write that was overtaken this often makes others wait.
const OVERTAKEN_MAX: usize = 2;
/// The most evaluations of one write.
const TRIES_MAX: usize = 8;
/// Whether a write takes long to evaluate because of its own size or kind, whatever rows it finds.
pub(crate) fn is_long(write: &Write, weight: usize) -> bool {
    weight >= LONG_BYTES || matches!(write, Write::PurgeContainer { .. })
}

impl Partition {
    /// Waits until no watch makes writes to this key wait. Returns how long it waited.
    ///
    /// # Errors
    /// [`Error::Overloaded`] if that takes longer than a write may wait, or if too many writes
    /// wait.
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

    /// Whether few writes wait, both here and in the committer's queue, which they enter next.
    ///
    /// # Errors
    /// [`Error::Overloaded`] if many wait and this write would wait too long.
    fn few_wait_ahead(&self, now: Duration) -> Result<bool, Error> {
        let (config, watches) = (&self.core.context.config, &self.core.watches);
        let few = self.few_are_queued()
            && Waits::is_few(watches.waiting.load(Ordering::Relaxed), config.queue_ops)
            && Waits::is_few(watches.waiting_bytes.load(Ordering::Relaxed), config.queue_bytes);
        if self.waits.is_late(now, few) { Err(Error::Overloaded) } else { Ok(few) }
    }

    /// Evaluates a write on snapshots and queues the result, until the committer accepts one. The
    /// write has already waited for `waited`.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub(crate) async fn write_ahead(
        &self,
        (write, id): (Arc<Write>, Option<WriteId>),
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
        // The watch begins before the snapshot, so it notes every commit after the snapshot.
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
            // The permit of the try before was returned.
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
            let is_read = reply.is_err() || (rows.changes.is_empty() && !rows.must_commit);
            // Every final answer to a repetition is kept, so it goes through the committer.
            let is_kept = matches!(reply, Ok(_) | Err(Error::Refused(_)))
                && id.is_some_and(|id| id.is_repeated);
            if is_read && !is_kept {
                // The answer depends on durable rows alone. As for a read, ownership is checked
                // afterwards.
                self.confirm().await?;
                self.core.may_read()?;
                return reply;
            }
            let snapshot = view.sequence;
            drop(view);
            let ready = Evaluated { reply, rows, time, snapshot, watch: Arc::clone(&watch) };
            let weight = write.weight() + ready.weight();
            let ready = Some(Ready { evaluated: Box::new(ready), place });
            let entry = Entry { write: Arc::clone(&write), id, evaluated: ready, weight, waited };
            match self.take_turn(entry, clock).await? {
                Outcome::Done(reply) => return Ok(reply),
                Outcome::Read(reply) => {
                    self.confirm().await?;
                    return reply;
                }
                Outcome::Again => {}
            }
            waiter = Some(self.core.watches.enter(write.weight()).waiter);
        }
        Err(Error::Overloaded)
    }
}
