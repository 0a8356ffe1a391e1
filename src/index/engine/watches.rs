//! What writes that are evaluated ahead rest on: watches on rows, and what came of an evaluation.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::index::api::WriteReply;
use crate::index::engine::config::Config;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::types::KeyRange;
use crate::types::Sequence;
use crate::types::Timestamp;

/// What a changed row takes beside its bytes.
const ROW_OVERHEAD: usize = 80;

/// The outcome of a turn in the queue.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The write was carried out.
    Done(WriteReply),
    /// Nothing was done: the write is to be evaluated ahead, or once more.
    Again,
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
    /// The last commit that the snapshot shows.
    pub(super) snapshot: Sequence,
}

impl Evaluated {
    /// Whether the rows it rests on are as they were, also after the commits in the making.
    pub(crate) fn holds(&self, making: &[ChangedRow]) -> bool {
        let watch = &self.watch.watch;
        let is_touched = watch.touched.load(Ordering::Acquire) > self.snapshot.get();
        !is_touched && !making.iter().any(|row| watch.range.contains(&row.key))
    }

    pub(super) fn weight(&self) -> usize {
        let bytes = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        let rows = self.rows.changes.iter();
        rows.map(|(_, key, value)| key.len() + bytes(value) + ROW_OVERHEAD).sum()
    }
}

/// What becomes of the rows that a write evaluated ahead rests on.
#[derive(Debug)]
pub(super) struct Watch {
    range: KeyRange,
    /// The last commit that touched one of them.
    touched: AtomicU64,
    /// Other writes to them wait.
    pub(super) alone: AtomicBool,
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
    pub(super) waiting: AtomicUsize,
    pub(super) waiting_bytes: AtomicUsize,
}

/// A write that waits as one of [`Watches::waiting`].
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    watches: &'a Watches,
    weight: usize,
}

/// A write that begins to wait, and who else does.
pub(super) struct Entered<'a> {
    pub(super) waiter: Waiter<'a>,
    /// How many others wait.
    others: usize,
    /// The bytes of all of them and of this one.
    bytes: usize,
}

/// A snapshot, and the time below which no more changes will become visible.
#[derive(Debug)]
pub(crate) struct Settled<T> {
    pub(crate) snapshot: T,
    /// `None` when nothing is being evaluated: then it shows all changes so far.
    pub(crate) below: Option<Timestamp>,
}

/// A row that a batch changed, and in which commit.
#[derive(Debug)]
pub(crate) struct ChangedRow {
    pub(crate) family: Family,
    pub(crate) key: Bytes,
    pub(crate) sequence: Sequence,
}

/// A watch that lasts as long as somebody may ask it.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(super) watch: Arc<Watch>,
    watches: Arc<Watches>,
}

impl Watches {
    /// Begins a watch, unless there is one on some of the same rows: then what to wait for.
    pub(super) fn begin(
        self: &Arc<Self>,
        range: &KeyRange,
    ) -> Result<Arc<Watching>, CancellationToken> {
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

    /// Takes a snapshot, and notes below which time it shows all changes there will ever be: a
    /// write that was evaluated ahead has its time before commits that become visible earlier.
    pub(crate) fn settled<T>(&self, snapshot: impl FnOnce() -> T) -> Settled<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.iter().map(|watch| watch.time.load(Ordering::Acquire));
        let lowest = times.filter(|time| *time != NO_TIME).min();
        // With the lock: a write that takes its time after this has one above all that the snapshot
        // shows.
        Settled { snapshot: snapshot(), below: lowest.map(Timestamp::from_ticks) }
    }

    /// Notes what a batch changed, after it was published: a snapshot that does not show it was
    /// taken before, and its watch began before that.
    pub(crate) fn note(&self, changes: &[ChangedRow]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for watch in all.iter() {
            let inside = changes.iter().filter(|row| watch.range.contains(&row.key));
            if let Some(last) = inside.map(|row| row.sequence.get()).max() {
                watch.touched.fetch_max(last, Ordering::AcqRel);
            }
        }
    }

    /// Whether another write may need the rows of a key for itself; mostly none does.
    pub(super) fn may_be_alone(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Has a write wait, unless as many do as may be in a queue. One may be larger than the whole
    /// queue: it waits when no other does.
    pub(super) fn wait(&self, weight: usize, config: &Config) -> Option<Waiter<'_>> {
        // Counted first: of two that come at once, the second sees the first.
        let Entered { waiter, others, bytes } = self.enter(weight);
        let fits = others < config.queue_ops && (others == 0 || bytes <= config.queue_bytes);
        fits.then_some(waiter)
    }

    /// Counts a write that waits.
    pub(super) fn enter(&self, weight: usize) -> Entered<'_> {
        let others = self.waiting.fetch_add(1, Ordering::Relaxed);
        let bytes = self.waiting_bytes.fetch_add(weight, Ordering::Relaxed);
        let waiter = Waiter { watches: self, weight };
        Entered { waiter, others, bytes: bytes.saturating_add(weight) }
    }

    pub(super) fn alone_with(&self, key: &[u8]) -> Option<CancellationToken> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut alone = all.iter().filter(|watch| watch.alone.load(Ordering::Acquire));
        alone.find(|watch| watch.range.contains(key)).map(|watch| watch.ended.clone())
    }
}

impl Watching {
    /// Takes a time for a change. Until the watch ends, [`Watches::settled`] knows that it may
    /// still become visible.
    pub(super) fn date(&self, tick: impl FnOnce() -> Timestamp) -> Timestamp {
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
