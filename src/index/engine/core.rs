//! The state of a partition that its committer, its readers and its maintenance share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::RwLock;
#[cfg(test)]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::env::Waits;
use crate::index::api::{Error, Full};
use crate::index::engine::context::HostContext;
use crate::index::engine::extents::{Extents, Owner};
use crate::index::engine::pace::Pace;
use crate::index::engine::run::reader::RunSize;
use crate::index::engine::sources::{Published, Sources};
use crate::index::engine::view::Snapshot;
use crate::index::engine::watches::Watches;
use crate::index::invariant::{Invariant, Violation};
use crate::index::load::Meter;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Timestamp;

/// A partition with more log extents than this is flushed even if memory is left: otherwise a few
/// unflushed rows would keep much log.
const LOG_EXTENTS_MAX: usize = 4;

/// A partition that was not written for so long is at rest.
const REST: Duration = Duration::from_secs(10);

/// Which requests a partition still serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Everything.
    Serving,
    /// Reads only. The partition is being opened again; writers wait for that as they wait for a
    /// move. Published rows are durable and stay readable.
    Stopped(String),
    /// Reads only. Writes get this error: the partition is closing, or could not be opened again so
    /// far.
    ReadOnly(Error),
    /// Nothing: another owner has the partition.
    Lost,
}

/// One open partition.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) context: Arc<HostContext>,
    pub(crate) id: PartitionId,
    pub(crate) epoch: Epoch,
    pub(crate) keys: Arc<PartitionKeys>,
    /// The logs and runs of the partition, as the coordinator records them.
    pub(crate) extents: Arc<Extents>,
    /// Counts requests when they arrive, and their cost.
    pub(crate) meter: Arc<Meter>,
    /// Watches of the rows that writes evaluated ahead have read.
    pub(crate) watches: Arc<Watches>,
    /// The most rows that the committer has read for one write so far.
    #[cfg(test)]
    pub(crate) longest_turn: AtomicUsize,
    /// The highest time given to a change so far, in ticks.
    given: AtomicU64,
    published: RwLock<Published>,
    status: Mutex<Status>,
    log: Mutex<Vec<ExtentId>>,
    /// Why the last flush failed for lack of space; `None` if it did not.
    full: Mutex<Option<Full>>,
    /// Whether the runs have changed since a compaction last examined them.
    changed: AtomicBool,
    /// The same for a compaction at rest.
    changed_at_rest: AtomicBool,
    /// The last commit that [`Self::is_at_rest`] has seen, and when it first did.
    rest: Mutex<Option<(Sequence, Duration)>>,
}

impl Core {
    pub(crate) fn new(
        context: Arc<HostContext>,
        owner: Owner<'_>,
        keys: PartitionKeys,
        published: Published,
    ) -> Self {
        Self {
            context,
            id: owner.extents.partition(),
            epoch: owner.epoch,
            keys: Arc::new(keys),
            extents: Arc::clone(owner.extents),
            meter: Arc::default(),
            watches: Arc::default(),
            #[cfg(test)]
            longest_turn: AtomicUsize::new(0),
            given: AtomicU64::new(0),
            published: RwLock::new(published),
            status: Mutex::new(Status::Serving),
            log: Mutex::default(),
            full: Mutex::default(),
            changed: AtomicBool::new(true),
            changed_at_rest: AtomicBool::new(true),
            rest: Mutex::default(),
        }
    }

    /// The owner of the logs and runs that this partition writes.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner { extents: &self.extents, epoch: self.epoch }
    }

    /// The key range of the partition. A stripe has only some of the keys in it.
    pub(crate) fn range(&self) -> &KeyRange {
        self.keys.range()
    }

    /// Returns a time for a change, later than all times given before.
    pub(crate) fn tick(&self) -> Timestamp {
        let now = self.context.deps.env.clock.now().ticks();
        let next = |last: u64| Some(now.max(last.saturating_add(1)));
        let last = self.given.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        Timestamp::from_ticks(now.max(last.unwrap_or_else(|last| last).saturating_add(1)))
    }

    /// Makes all later changes have times above `time`.
    pub(crate) fn begin_after(&self, time: Timestamp) {
        self.given.fetch_max(time.ticks(), Ordering::AcqRel);
    }

    /// A snapshot of the published rows.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let Published { sources, sequence } = self.published();
        let pace = Pace::new(&self.context.deps.env.clock);
        let keys = Arc::clone(&self.keys);
        Snapshot { sources, sequence, keys, pace, violation: OnceLock::new() }
    }

    pub(crate) fn published(&self) -> Published {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes commits up to `sequence` visible, which must be durable (I6), or publishes new sources
    /// of the same rows.
    ///
    /// # Errors
    /// [`Invariant::Monotonic`]: `sequence` is below the published one. Nothing is published then.
    pub(crate) fn publish(
        &self,
        sources: &Arc<Sources>,
        sequence: Sequence,
    ) -> Result<(), Violation> {
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        Invariant::Monotonic.assert(sequence >= published.sequence, || {
            format!("commit {sequence} would be published after {}", published.sequence)
        })?;
        *published = Published { sources: Arc::clone(sources), sequence };
        Ok(())
    }

    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the status to `to`. A partition that is [`Status::Lost`] keeps that status.
    pub(crate) fn stop(&self, to: Status) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if *status != Status::Lost {
            tracing::info!(partition = %self.id, ?to, "partition stops");
            if !matches!(to, Status::Serving | Status::ReadOnly(_)) {
                self.extents.close();
            }
            *status = to;
            self.context.budget.ring();
            self.context.stopped.notify_one();
        }
    }

    /// Refuses writes with this error from now on. If the partition is read-only already, only the
    /// error changes, because no write waits.
    pub(crate) fn refuse(&self, refusal: Error) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if let Status::ReadOnly(said) = &mut *status {
            *said = refusal;
            return;
        }
        drop(status);
        self.stop(Status::ReadOnly(refusal));
    }

    /// Stops a partition that will not flush its memtables. Their rows are in its log; their bytes
    /// no longer count in the memory budget. Call it only while no task adds rows.
    pub(crate) fn fail(&self, to: Status) {
        self.stop(to);
        let sources = self.published().sources;
        sources.tables().for_each(|tables| tables.uncount());
    }

    /// The error of writes to a partition that is closed in order. In a cluster another process
    /// serves it soon.
    pub(crate) fn error_of_closing(&self, why: &str) -> Error {
        if self.context.has_leases() {
            Error::WrongPartition
        } else {
            Error::Unavailable(why.to_owned())
        }
    }

    /// Stops all service: the range has other owners now.
    pub(crate) fn lose(&self) {
        self.stop(Status::Lost);
    }

    /// # Errors
    /// [`Error::WrongPartition`] when another owner has the partition.
    pub(crate) fn may_read(&self) -> Result<(), Error> {
        match *self.status.lock().unwrap_or_else(PoisonError::into_inner) {
            Status::Serving | Status::Stopped(_) | Status::ReadOnly(_) => Ok(()),
            Status::Lost => Err(Error::WrongPartition),
        }
    }

    /// # Errors
    /// The error of a read-only partition; [`Error::WrongPartition`] when another owner has or will
    /// have it; [`Error::Full`] or [`Error::Overloaded`] while memtables are full.
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        match &*self.status.lock().unwrap_or_else(PoisonError::into_inner) {
            Status::Serving => {}
            Status::ReadOnly(refusal) => return Err(refusal.clone()),
            Status::Stopped(_) | Status::Lost => return Err(Error::WrongPartition),
        }
        if self.context.budget.used() < self.context.config.memtable_bytes_max {
            return Ok(());
        }
        self.context.wake.notify_one();
        let full = self.full.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Err(full.map_or(Error::Overloaded, Error::Full))
    }

    /// Waits until memtables have room for a write, at most as long as a write may wait in the
    /// queue. A flush is imminent; a 503 would make the client miss the freed space.
    ///
    /// # Errors
    /// As of [`Self::may_write`].
    pub(crate) async fn room(&self) -> Result<(), Error> {
        let first = self.may_write();
        if first != Err(Error::Overloaded) {
            return first;
        }
        let clock = &self.context.deps.env.clock;
        let config = &self.context.config;
        let waiter = self.context.budget.wait();
        let few = Waits::is_few(waiter.ahead(), config.queue_ops);
        // The oldest waiter has waited this long without success; a new one would too.
        let full_for = self.context.budget.full_for(clock.monotonic());
        if !few && full_for >= config.queue_wait_max / 2 {
            return first;
        }
        let mut late = clock.sleep(if few { config.queue_patience } else { config.queue_wait_max });
        loop {
            let freed = self.context.budget.freed();
            let now = self.may_write();
            if now != Err(Error::Overloaded) {
                return now;
            }
            tokio::select! {
                biased;
                () = freed => {}
                () = &mut late => return now,
            }
        }
    }

    /// Notes that the runs have changed, so that a compaction examines them.
    pub(crate) fn runs_are_changed(&self) {
        self.changed.store(true, Ordering::Release);
        self.changed_at_rest.store(true, Ordering::Release);
    }

    /// Notes that a compaction examines the runs as they are now. One at rest finds what any other
    /// would find, too.
    pub(crate) fn runs_are_looked_at(&self, at_rest: bool) {
        self.changed.store(false, Ordering::Release);
        if at_rest {
            self.changed_at_rest.store(false, Ordering::Release);
        }
    }

    /// Whether a compaction may find runs to merge. Of thousands of partitions most do not change.
    pub(crate) fn may_compact(&self) -> bool {
        self.changed.load(Ordering::Acquire) && self.may_write_log()
    }

    /// Whether the partition has not been written for [`REST`], as far as these calls have seen.
    /// `now` is monotonic time.
    pub(crate) fn is_at_rest(&self, now: Duration) -> bool {
        let sequence = self.published().sequence;
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match *rest {
            Some((last, since)) if last == sequence => since,
            Some(_) | None => now,
        };
        *rest = Some((sequence, since));
        now.saturating_sub(since) >= REST
    }

    /// Makes the rest begin at `now`, so that failed work is tried again later.
    pub(crate) fn rest_again(&self, now: Duration) {
        let rest = Some((self.published().sequence, now));
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = rest;
    }

    /// As [`Self::may_compact`], for a compaction at rest.
    pub(crate) fn may_compact_at_rest(&self) -> bool {
        self.changed_at_rest.load(Ordering::Acquire) && self.may_write_log()
    }

    /// Notes whether the last flush failed for lack of space.
    pub(crate) fn set_full(&self, full: Option<Full>) {
        *self.full.lock().unwrap_or_else(PoisonError::into_inner) = full;
        self.context.budget.ring();
    }

    pub(crate) fn set_log_extents(&self, extents: &[ExtentId]) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = extents.to_vec();
        if self.has_long_log() {
            self.context.note_long_log();
        }
    }

    /// Whether the log has too many extents, so that the partition should be flushed.
    pub(crate) fn has_long_log(&self) -> bool {
        self.log_extents() > LOG_EXTENTS_MAX
    }

    /// Whether maintenance may still write runs and manifests.
    pub(crate) fn may_write_log(&self) -> bool {
        self.status() == Status::Serving
    }

    /// Rows in runs, and their bytes.
    pub(crate) fn run_size(&self) -> RunSize {
        let sources = self.published().sources;
        sources.runs.iter().flatten().map(|run| run.size()).sum()
    }

    /// An estimate of the rows and bytes in runs that belong to this partition: of a run shared
    /// with other partitions only its part counts.
    pub(crate) fn own_size(&self) -> RunSize {
        let sources = self.published().sources;
        sources.runs.iter().flatten().map(|run| run.size_in(&self.keys)).sum()
    }

    /// The number of extents of its log.
    pub(crate) fn log_extents(&self) -> usize {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The logs and runs that it uses now.
    pub(crate) fn uses(&self) -> BTreeSet<ExtentId> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sources = self.published().sources;
        log.into_iter().chain(sources.extents()).collect()
    }

    /// The memory that its memtables take, in bytes.
    pub(crate) fn table_bytes(&self) -> usize {
        let sources = self.published().sources;
        sources.tables().map(|tables| tables.bytes()).sum()
    }
}
