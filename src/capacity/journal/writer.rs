//! Group commit: records wait in a queue; while one batch is written, the next one forms. There is
//! no timer.

mod erase;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::capacity::health::Health;
use crate::capacity::journal::layout::{
    Lsn, RING_AT, Record, RingId, Superblock, batch_len, encode_batch,
};
use crate::capacity::metrics::CapacityMetrics;
use crate::capacity::units::{FileOffset, index};
use crate::env::DiskFile;

/// The longest batch body, bytes; also at most a quarter of the ring.
const BATCH_MAX: u64 = 1024 * 1024;

/// The journal of one disk.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Arc<dyn DiskFile>,
    /// Held during every write and sync of the file. When two syncs overlap, the system reports
    /// lost bytes to only one of them, perhaps not to the one that covers them.
    syncing: tokio::sync::Mutex<()>,
    /// Held from the choice of a batch's position until the batch is in `live`, and while a piece
    /// of the ring is erased.
    placing: tokio::sync::Mutex<()>,
    ring: RingId,
    size: u64,
    queue: Mutex<Queue>,
    ready: Notify,
    state: Mutex<RingState>,
    space: Notify,
    checkpoint_due: Notify,
    budget: Arc<Semaphore>,
    budget_max: u64,
    health: Arc<Health>,
    metrics: CapacityMetrics,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Their encoded records, bytes.
    bytes: u64,
    closed: bool,
}

#[derive(Debug)]
struct Waiting {
    record: Record,
    /// Gets the number of the batch when the batch is durable.
    durable: oneshot::Sender<Lsn>,
    /// Its part of the queue's bytes, released when the batch is durable.
    _budget: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct RingState {
    superblock: Superblock,
    /// Number and position of the next batch.
    next: ReplayPoint,
    /// Bytes from the superblock's position to that of the next batch, including skipped ends of
    /// the ring.
    used: u64,
    /// Batches a replay would read.
    live: VecDeque<LiveBatch>,
}

/// A batch that a replay would read.
#[derive(Debug)]
struct LiveBatch {
    lsn: Lsn,
    /// Bytes of the ring that it takes, including the end of the ring if the batch skipped it.
    consumed: u64,
}

/// A point between two batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplayPoint {
    /// Number of the batch after it.
    pub(crate) lsn: Lsn,
    /// The position of that batch, unless it does not fit before the end of the ring.
    pub(crate) position: FileOffset,
}

/// Space in the ring for a batch.
struct BatchSpace {
    position: FileOffset,
    consumed: u64,
}

impl Journal {
    /// A journal after its replay. `superblock` must be durable and name the next batch.
    pub(crate) fn new(
        file: Arc<dyn DiskFile>,
        superblock: Superblock,
        queue_bytes: u64,
        health: Arc<Health>,
        metrics: CapacityMetrics,
    ) -> Self {
        let next = ReplayPoint { lsn: superblock.lsn, position: superblock.position };
        Self {
            file,
            syncing: tokio::sync::Mutex::default(),
            placing: tokio::sync::Mutex::default(),
            ring: superblock.ring,
            size: superblock.size,
            queue: Mutex::default(),
            ready: Notify::new(),
            state: Mutex::new(RingState { superblock, next, used: 0, live: VecDeque::new() }),
            space: Notify::new(),
            checkpoint_due: Notify::new(),
            budget: Arc::new(Semaphore::new(index(queue_bytes))),
            budget_max: queue_bytes,
            health,
            metrics,
        }
    }

    /// The end of the file, and of the ring.
    fn ring_end(&self) -> FileOffset {
        FileOffset::new(self.size)
    }

    /// Bytes of batches that fit in the ring.
    pub(crate) fn capacity(&self) -> u64 {
        self.size - RING_AT.get()
    }

    /// Waits until the queue has room for this many bytes, in the order of the calls. Cancel safe.
    pub(crate) async fn budget(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(self.budget_max)).ok()?;
        Arc::clone(&self.budget).acquire_many_owned(bytes).await.ok()
    }

    /// Queues a record. The receiver gets the number of the record's batch when the batch is
    /// durable. It gets an error if the journal has ended: the record will not become durable.
    pub(crate) fn submit(
        &self,
        record: Record,
        budget: OwnedSemaphorePermit,
    ) -> oneshot::Receiver<Lsn> {
        let (durable, wait) = oneshot::channel();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if !queue.closed {
            let len = record.encoded_len();
            // A record longer than the budget takes all of it, so it waits alone.
            if queue.bytes + len > self.budget_max.max(len) {
                self.health
                    .broken("I16", "more bytes wait for the journal than its queue may hold");
                self.wake();
                return wait;
            }
            queue.bytes += len;
            queue.waiting.push_back(Waiting { record, durable, _budget: budget });
            drop(queue);
            self.ready.notify_one();
        }
        wait
    }

    /// Takes no more records. [`Self::run`] ends when the queued ones are durable.
    pub(crate) fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.ready.notify_one();
    }

    /// Writes batches until the journal is closed or a write fails. After a failure the waiting
    /// appends get an error.
    pub(crate) async fn run(&self) {
        while let Some(batch) = self.next_batch().await {
            if self.write(batch).await.is_none() {
                break;
            }
        }
        self.end();
    }

    /// Takes no more records. Callers that wait for a record get an error.
    pub(crate) fn end(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.closed = true;
        queue.waiting.clear();
        queue.bytes = 0;
    }

    async fn next_batch(&self) -> Option<Vec<Waiting>> {
        loop {
            {
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                if !queue.waiting.is_empty() {
                    return Some(self.take(&mut queue));
                }
                if queue.closed {
                    return None;
                }
            }
            self.ready.notified().await;
        }
    }

    fn take(&self, queue: &mut Queue) -> Vec<Waiting> {
        let body_max = BATCH_MAX.min(self.capacity() / 4);
        let mut body = 0;
        let mut batch = Vec::new();
        while let Some(next) = queue.waiting.front() {
            let len = next.record.encoded_len();
            body += len;
            if body > body_max && !batch.is_empty() {
                break;
            }
            queue.bytes -= len;
            batch.extend(queue.waiting.pop_front());
        }
        batch
    }

    async fn write(&self, batch: Vec<Waiting>) -> Option<()> {
        let (records, waiters): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|w| (w.record, (w.durable, w._budget))).unzip();
        let body: u64 = records.iter().map(Record::encoded_len).sum();
        let _placing = self.placing.lock().await;
        let space = self.find_space(batch_len(body)).await?;
        if !self.is_free(&space, batch_len(body)) {
            self.health.broken("I1", "a journal batch would overwrite one that a replay needs");
            return None;
        }
        let (lsn, checkpoint) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.next.lsn, state.superblock.lsn)
        };
        let pieces = encode_batch(self.ring, lsn, checkpoint, &records);
        let syncing = self.syncing.lock().await;
        if self.health.poisoned() {
            return None;
        }
        self.metrics.fsyncs.inc();
        if let Err(error) = self.file.write_sync(space.position.get(), pieces).await {
            self.health.poison("journal write", &error);
            return None;
        }
        drop(syncing);
        self.metrics.journal_batches.inc();
        self.metrics.journal_bytes.inc_by(batch_len(body));
        self.commit(lsn, &space, batch_len(body));
        for (durable, _budget) in waiters {
            // A cancelled caller needs no answer.
            durable.send(lsn).unwrap_or_default();
        }
        Some(())
    }

    /// Waits until the ring has room for a batch of `len` bytes.
    async fn find_space(&self, len: u64) -> Option<BatchSpace> {
        assert!(len <= self.capacity() / 2, "a batch of {len} bytes is too long for the ring");
        loop {
            {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let wraps = (state.next.position + len).get() > self.size;
                let skipped = if wraps { self.ring_end() - state.next.position } else { 0 };
                let position = if wraps { RING_AT } else { state.next.position };
                if state.used + skipped + len <= self.capacity() {
                    return Some(BatchSpace { position, consumed: skipped + len });
                }
            }
            if self.health.poisoned() {
                return None;
            }
            self.checkpoint_due.notify_one();
            self.space.notified().await;
        }
    }

    fn commit(&self, lsn: Lsn, space: &BatchSpace, len: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next = ReplayPoint { lsn: lsn.next(), position: space.position + len };
        state.used += space.consumed;
        state.live.push_back(LiveBatch { lsn, consumed: space.consumed });
        if state.used > self.capacity() / 2 {
            self.checkpoint_due.notify_one();
        }
    }

    /// Waits until more than half of the ring is used. Cancel safe.
    pub(crate) async fn checkpoint_due(&self) {
        self.checkpoint_due.notified().await;
    }

    /// The point before the next batch. All records of earlier batches are durable in the ring.
    pub(crate) fn next_point(&self) -> ReplayPoint {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// Releases the ring before `point`. Every record before it must be durable in its extent's
    /// file.
    pub(crate) async fn advance(&self, point: ReplayPoint) {
        let superblock = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.superblock.lsn == point.lsn {
                return;
            }
            Superblock {
                generation: state.superblock.generation + 1,
                lsn: point.lsn,
                position: point.position,
                ..state.superblock
            }
        };
        let syncing = self.syncing.lock().await;
        if self.health.poisoned() {
            return;
        }
        self.metrics.fsyncs.inc();
        let written =
            self.file.write_sync(superblock.offset().get(), vec![superblock.encode()]).await;
        if let Err(error) = written {
            self.health.poison("journal superblock", &error);
            self.space.notify_one();
            return;
        }
        drop(syncing);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.superblock = superblock;
        while state.live.front().is_some_and(|batch| batch.lsn < point.lsn) {
            state.used -= state.live.pop_front().map_or(0, |batch| batch.consumed);
        }
        drop(state);
        self.space.notify_one();
    }

    /// Whether a batch at this position overwrites no batch that a replay reads.
    fn is_free(&self, space: &BatchSpace, len: u64) -> bool {
        let end = space.position + len;
        let overlaps = |live: &Range<FileOffset>| live.start < end && space.position < live.end;
        end <= self.ring_end() && !self.live().iter().filter(|live| !live.is_empty()).any(overlaps)
    }

    /// Whether the batch with this number was written and synced.
    pub(crate) fn is_durable(&self, lsn: Lsn) -> bool {
        lsn < self.next_point().lsn
    }

    /// Breaks I1 for a test: acknowledges all waiting records before their batch is written.
    /// Returns the number of acknowledged records.
    #[cfg(test)]
    pub(crate) fn acknowledge_early(&self) -> usize {
        let batch = self.take(&mut self.queue.lock().unwrap());
        let lsn = self.next_point().lsn;
        let answers = batch.into_iter().map(|waiting| waiting.durable.send(lsn));
        answers.filter(Result::is_ok).count()
    }

    /// The parts of the file with batches that a replay would read.
    fn live(&self) -> [Range<FileOffset>; 2] {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = (state.superblock.position, state.superblock.position + state.used);
        let wrapped = to.get().saturating_sub(self.size);
        [from..to.min(self.ring_end()), RING_AT..RING_AT + wrapped]
    }

    /// Wakes a writer that waits for room, so that it sees that the disk is poisoned.
    pub(crate) fn wake(&self) {
        self.space.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::capacity::Error;
    use crate::capacity::health;
    use crate::env::TaskHealth;
    use crate::env::disk_sim::SimDisk;
    use crate::telemetry::CapturedLog;
    use crate::types::ExtentId;
    use crate::types::ExtentOffset;

    /// The journal of an empty disk. The test violates `invariant`.
    async fn journal_that_breaks(invariant: &'static str, queue_bytes: u64) -> Journal {
        let disk = SimDisk::new(1, 64 << 20).disk();
        let size = 256 * 1024;
        let file = disk.create("journal").await.unwrap();
        file.allocate(0, size).await.unwrap();
        let superblock = Superblock {
            generation: 1,
            ring: RingId::new(5),
            size,
            lsn: Lsn::FIRST,
            position: RING_AT,
        };
        let metrics = CapacityMetrics::default();
        let name = health::DiskName::of(&*disk, 0);
        let tasks = TaskHealth::default();
        tasks.expect_violation(invariant);
        let health = Arc::new(Health::new(name, metrics.clone(), tasks));
        Journal::new(file, superblock, queue_bytes, health, metrics)
    }

    fn record() -> Record {
        let pieces = vec![Bytes::from_static(&[7; 1000])];
        Record { extent: ExtentId::new(1), offset: ExtentOffset::START, pieces, len: 1000 }
    }

    fn assert_stopped(journal: &Journal, log: &CapturedLog, invariant: &str) {
        assert!(matches!(journal.health.check(), Err(Error::Poisoned { .. })));
        let named = format!("invariant=\"{invariant}\"");
        assert_eq!(log.lines_with(&["ERROR", &named]), 1, "{}", log.text());
    }

    #[tokio::test(start_paused = true)]
    async fn batch_that_would_overwrite_a_live_one_breaks_i1() {
        let journal = journal_that_breaks("I1", 1 << 20).await;
        let log = CapturedLog::default();
        let _kept = log.begin();
        for should_be_durable in [true, true, false] {
            let budget = journal.budget(1024).await.unwrap();
            let durable = journal.submit(record(), budget);
            if !should_be_durable {
                // As if the ring had been released too early.
                journal.state.lock().unwrap().next.position = RING_AT;
            }
            let batch = journal.next_batch().await.unwrap();
            assert_eq!(journal.write(batch).await.is_some(), should_be_durable);
            assert_eq!(durable.await.is_ok(), should_be_durable);
        }
        assert_stopped(&journal, &log, "I1");
    }

    #[tokio::test(start_paused = true)]
    async fn queue_beyond_its_budget_breaks_i16() {
        let journal = journal_that_breaks("I16", 1500).await;
        let log = CapturedLog::default();
        let _kept = log.begin();
        let first = journal.submit(record(), journal.budget(1024).await.unwrap());
        // As if the second had not waited for room in the queue.
        let elsewhere = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let second = journal.submit(record(), elsewhere);
        assert!(second.await.is_err());
        assert_stopped(&journal, &log, "I16");
        drop(first);
    }
}
