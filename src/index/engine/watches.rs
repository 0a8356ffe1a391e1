//! Watches: they detect commits to the rows that a write evaluated ahead has read.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::index::api::Error;
use crate::index::api::WriteReply;
use crate::index::engine::config::Config;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::types::KeyRange;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Bytes of memory that a changed row takes beside its key and value.
const ROW_OVERHEAD: usize = 80;

/// The outcome of a queued write.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The write was carried out.
    Done(WriteReply),
    /// The answer depends on durable rows alone, and nothing was appended for it. As for a read,
    /// ownership must be checked afterwards.
    Read(Result<WriteReply, Error>),
    /// Nothing was done. The caller must evaluate the write ahead, or again.
    Again,
}

/// A write that was evaluated ahead.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// A refusal only if that is to be kept.
    pub(crate) reply: Result<WriteReply, Error>,
    pub(crate) rows: RowBatch,
    /// The time of the change. It is above the times of all commits in the snapshot.
    pub(crate) time: Timestamp,
    /// The watch of the rows that it read. It is kept until the rows of the write are visible.
    pub(crate) watch: Arc<Watching>,
    /// The last commit in the snapshot.
    pub(super) snapshot: Sequence,
}

impl Evaluated {
    /// Whether the rows that the write read are unchanged, by published commits and by the rows of
    /// the batch in the making.
    pub(crate) fn holds(&self, making: &[ChangedRow]) -> bool {
        let watch = &self.watch.watch;
        let is_touched = watch.touched.load(Ordering::Acquire) > self.snapshot.get();
        !is_touched && !making.iter().any(|row| watch.range.contains(&row.key))
    }

    pub(super) fn weight(&self) -> usize {
        let bytes = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        let rows = self.rows.changes.iter();
        rows.map(|row| row.key.len() + bytes(&row.value) + ROW_OVERHEAD).sum()
    }
}

/// The watch of one write: the range of the rows that it reads, and the last commit that changed
/// one of them.
#[derive(Debug)]
pub(super) struct Watch {
    range: KeyRange,
    /// The last commit that changed a row in the range.
    touched: AtomicU64,
    /// Whether other writes to the range wait until this watch ends.
    pub(super) alone: AtomicBool,
    /// The time of the change that is being evaluated; [`NO_TIME`] before the evaluation. It
    /// changes only under the lock of the watches.
    time: AtomicU64,
    ended: CancellationToken,
}

const NO_TIME: u64 = u64::MAX;

/// The watches of one partition.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// The number of watches. It is mostly 0; then no task takes the lock.
    count: AtomicUsize,
    all: Mutex<Vec<Arc<Watch>>>,
    /// The number of writes that wait for a watch to end or for a permit to be evaluated ahead.
    pub(super) waiting: AtomicUsize,
    /// The bytes of these writes.
    pub(super) waiting_bytes: AtomicUsize,
}

/// A write counted in [`Watches::waiting`] until this is dropped.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    watches: &'a Watches,
    weight: usize,
}

/// A write that begins to wait, and the load it found.
pub(super) struct Entered<'a> {
    pub(super) waiter: Waiter<'a>,
    /// The number of other writes that wait.
    others: usize,
    /// The bytes of all waiting writes, this one included.
    bytes: usize,
}

/// A snapshot, and the time below which no further change will become visible.
#[derive(Debug)]
pub(crate) struct Settled<T> {
    pub(crate) snapshot: T,
    /// `None` if no write is being evaluated ahead: then the snapshot shows all changes so far.
    pub(crate) below: Option<Timestamp>,
}

/// A row that a batch changed, and the commit that changed it.
#[derive(Debug)]
pub(crate) struct ChangedRow {
    pub(crate) family: Family,
    pub(crate) key: Bytes,
    pub(crate) sequence: Sequence,
}

/// Owns a watch. The watch ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(super) watch: Arc<Watch>,
    watches: Arc<Watches>,
}

impl Watches {
    /// Begins a watch on `range`. If another watch overlaps it, returns a token that is cancelled
    /// when that watch ends.
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

    /// Begins a watch that makes other writes to `range` wait, as a write does that was overtaken
    /// too often.
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

    /// Takes a snapshot, and determines the time below which it shows all changes there will ever
    /// be. That is not the time of the snapshot: a write that is evaluated ahead gets its time
    /// early and becomes visible after commits with later times.
    pub(crate) fn settled<T>(&self, snapshot: impl FnOnce() -> T) -> Settled<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.iter().map(|watch| watch.time.load(Ordering::Acquire));
        let lowest = times.filter(|time| *time != NO_TIME).min();
        // The snapshot is taken under the lock: a write that gets its time afterwards has a time
        // above all commits in the snapshot.
        Settled { snapshot: snapshot(), below: lowest.map(Timestamp::from_ticks) }
    }

    /// Notes the rows that a published batch changed. A snapshot without these rows was taken
    /// before the batch was published, and its watch began before that, so the watch is found here.
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

    /// Whether a write that must wait for a watch is possible. Usually there is no watch.
    pub(super) fn may_be_alone(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Counts a write as waiting, or returns `None` if as many wait as the queue may hold. A write
    /// larger than the whole queue may wait if no other does.
    pub(super) fn wait(&self, weight: usize, config: &Config) -> Option<Waiter<'_>> {
        // Counted before the check: of two concurrent calls, at least one sees the other.
        let Entered { waiter, others, bytes } = self.enter(weight);
        let fits = others < config.queue_ops && (others == 0 || bytes <= config.queue_bytes);
        fits.then_some(waiter)
    }

    /// Counts a write as waiting, whatever the load.
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
    /// Takes the time of the change. Until the watch ends, [`Watches::settled`] assumes that the
    /// change may still become visible.
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
