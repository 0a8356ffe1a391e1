//! Writes that take long to evaluate: outside the committer, ahead of their turn.
//!
//! The committer evaluates one write after the other, and everybody waits behind a blob with
//! thousands of snapshots or tens of thousands of blocks. So it gives a write back that reads more
//! than [`ROWS_IN_TURN`]. Then:
//!
//! 1. A [`Watch`] on all rows the write rests on begins, and after that a snapshot is taken.
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
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::env::Clock;
use crate::env::Waits;
use crate::index::api::Error;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::engine::config::Config;
use crate::index::engine::partition::Partition;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::types::KeyRange;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Rows that a write may read in the committer; long values count as several.
pub(crate) const ROWS_IN_TURN: usize = 2_048;
/// Writes of one host that are evaluated ahead at a time: each holds all the rows it changes in
/// memory.
pub(crate) const AHEAD_MAX: usize = 4;
/// Bytes of a write that is evaluated ahead without asking the committer first: a long list.
const LONG_BYTES: usize = 256 * 1024;
/// Times a write is overtaken before it keeps others waiting.
const OVERTAKEN_MAX: usize = 2;
/// Times a write is evaluated at most.
const TRIES_MAX: usize = 8;
/// What a changed row takes beside its bytes.
const ROW_OVERHEAD: usize = 80;

/// The outcome of a turn in the queue.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The write was carried out.
    Done(WriteReply),
    /// Nothing was done: the write is to be evaluated ahead, or once more.
    Again(Box<Write>),
}

/// A write that was evaluated ahead.
#[derive(Debug)]
pub(crate) struct Evaluated {
    pub(crate) reply: WriteReply,
    pub(crate) rows: RowBatch,
    /// Above the times of all commits that the snapshot shows.
    pub(crate) time: Timestamp,
    /// To be kept until its rows are visible.
    pub(crate) watch: Arc<Watching>,
    snapshot: Sequence,
}

impl Evaluated {
    /// Whether the rows it rests on are as they were, also after the commits in the making.
    pub(crate) fn holds(&self, making: &[(Family, Bytes, Sequence)]) -> bool {
        let watch = &self.watch.watch;
        let is_touched = watch.touched.load(Ordering::Acquire) > self.snapshot.get();
        !is_touched && !making.iter().any(|(_, key, _)| watch.range.contains(key))
    }

    fn weight(&self) -> usize {
        let bytes = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        let rows = self.rows.changes.iter();
        rows.map(|(_, key, value)| key.len() + bytes(value) + ROW_OVERHEAD).sum()
    }
}

/// What becomes of the rows that a write evaluated ahead rests on.
#[derive(Debug)]
struct Watch {
    range: KeyRange,
    /// The last commit that touched one of them.
    touched: AtomicU64,
    /// Other writes to them wait.
    alone: AtomicBool,
    /// The time of the change that is being evaluated; [`NO_TIME`] before that. Changes under the
    /// lock of the watches.
    time: AtomicU64,
    ended: CancellationToken,
}

const NO_TIME: u64 = u64::MAX;

/// The watches of one partition.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// How many there are: mostly none, and then nobody takes the lock.
    count: AtomicUsize,
    all: Mutex<Vec<Arc<Watch>>>,
    /// Writes that wait for one to end, or for a place to be evaluated, and their bytes.
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
}

/// A write that waits as one of [`Watches::waiting`].
#[derive(Debug)]
struct Waiter<'a> {
    watches: &'a Watches,
    weight: usize,
}

/// A watch that lasts as long as somebody may ask it.
#[derive(Debug)]
pub(crate) struct Watching {
    watch: Arc<Watch>,
    watches: Arc<Watches>,
}

impl Watches {
    /// Begins a watch, unless there is one on some of the same rows: then what to wait for.
    fn begin(self: &Arc<Self>, range: &KeyRange) -> Result<Arc<Watching>, CancellationToken> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = all.iter().find(|other| other.range.intersect(range).is_some()) {
            return Err(other.ended.clone());
        }
        let watch = Arc::new(Watch {
            range: range.clone(),
            touched: AtomicU64::new(0),
            alone: AtomicBool::new(false),
            time: AtomicU64::new(NO_TIME),
            ended: CancellationToken::new(),
        });
        all.push(Arc::clone(&watch));
        self.count.store(all.len(), Ordering::SeqCst);
        drop(all);
        Ok(Arc::new(Watching { watch, watches: Arc::clone(self) }))
    }

    /// Keeps others from the rows of `range`, as a write that was overtaken too often.
    #[cfg(test)]
    pub(crate) fn begin_alone(self: &Arc<Self>, range: &KeyRange) -> Arc<Watching> {
        let watching = self.begin(range).expect("no other watch");
        watching.watch.alone.store(true, Ordering::Release);
        watching
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// What `snapshot` takes, and the time below which it shows all changes there will ever be: a
    /// write that was evaluated ahead has its time before commits that become visible earlier.
    /// `None` when nothing is being evaluated.
    pub(crate) fn settled<T>(&self, snapshot: impl FnOnce() -> T) -> (T, Option<Timestamp>) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.iter().map(|watch| watch.time.load(Ordering::Acquire));
        let lowest = times.filter(|time| *time != NO_TIME).min();
        // With the lock: a write that takes its time after this has one above all that the snapshot
        // shows.
        (snapshot(), lowest.map(Timestamp::from_ticks))
    }

    /// Notes what a batch changed, after it was published: a snapshot that does not show it was
    /// taken before, and its watch began before that.
    pub(crate) fn note(&self, changes: &[(Family, Bytes, Sequence)]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for watch in all.iter() {
            let inside = changes.iter().filter(|(_, key, _)| watch.range.contains(key));
            if let Some(last) = inside.map(|(_, _, sequence)| sequence.get()).max() {
                watch.touched.fetch_max(last, Ordering::AcqRel);
            }
        }
    }

    /// Whether another write may need the rows of a key for itself; mostly none does.
    fn may_be_alone(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Has a write wait, unless as many do as may be in a queue. One may be larger than the whole
    /// queue: it waits when no other does.
    fn wait(&self, weight: usize, config: &Config) -> Option<Waiter<'_>> {
        // Counted first: of two that come at once, the second sees the first.
        let (waiter, others, bytes) = self.enter(weight);
        let fits = others < config.queue_ops && (others == 0 || bytes <= config.queue_bytes);
        fits.then_some(waiter)
    }

    /// Counts a write that waits; how many others do, and the bytes of all.
    fn enter(&self, weight: usize) -> (Waiter<'_>, usize, usize) {
        let others = self.waiting.fetch_add(1, Ordering::Relaxed);
        let bytes = self.waiting_bytes.fetch_add(weight, Ordering::Relaxed);
        (Waiter { watches: self, weight }, others, bytes.saturating_add(weight))
    }

    fn alone_with(&self, key: &[u8]) -> Option<CancellationToken> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut alone = all.iter().filter(|watch| watch.alone.load(Ordering::Acquire));
        alone.find(|watch| watch.range.contains(key)).map(|watch| watch.ended.clone())
    }
}

impl Watching {
    /// Takes a time for a change. Until the watch ends, [`Watches::settled`] knows that it may
    /// still become visible.
    fn date(&self, tick: impl FnOnce() -> Timestamp) -> Timestamp {
        let _all = self.watches.all.lock().unwrap_or_else(PoisonError::into_inner);
        let time = tick();
        self.watch.time.store(time.ticks(), Ordering::Release);
        time
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut all = self.watches.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|watch| !Arc::ptr_eq(watch, &self.watch));
        self.watches.count.store(all.len(), Ordering::SeqCst);
        self.watch.ended.cancel();
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.watches.waiting.fetch_sub(1, Ordering::Relaxed);
        self.watches.waiting_bytes.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

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
        let config = &self.core.shared.config;
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
        let (config, watches) = (&self.core.shared.config, &self.core.watches);
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
        mut write: Write,
        waited: Duration,
        clock: &dyn Clock,
    ) -> Result<WriteReply, Error> {
        let shared = &self.core.shared;
        let range = write.reach().ok_or_else(|| Error::Unavailable("no reach".into()))?;
        let now = clock.monotonic();
        let few = self.few_wait_ahead(now)?;
        let arrived = if few { now.saturating_sub(waited) } else { now };
        let waiter = self.core.watches.wait(write.weight(), &shared.config);
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
                place = shared.ahead.acquire() => place.ok(),
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
            let reply = shared.parts.machine.evaluate(&view, &write, time, &mut rows).await;
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
            let ready = Some((Box::new(ready), place));
            match self.take_turn((write, ready), weight, waited, clock).await? {
                Outcome::Done(reply) => return Ok(reply),
                Outcome::Again(back) => write = *back,
            }
            waiter = Some(self.core.watches.enter(write.weight()).0);
        }
        Err(Error::Overloaded)
    }
}
