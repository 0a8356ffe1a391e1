//! The part of a partition that its committer, its readers and its maintenance share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::RwLock;
#[cfg(test)]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// Log extents beyond which a partition is flushed although memory is left, so that few rows do not
/// pin much log.
const LOG_EXTENTS_MAX: usize = 4;

/// What a partition may still do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Everything.
    Serving,
    /// No writes here any more: it is being opened again, and who writes waits for that as for a
    /// move. What is published was durable before and can be read.
    Stopped(String),
    /// No writes, and what they are told: it is closing, or could not be opened again so far. Reads
    /// as above.
    ReadOnly(Error),
    /// Nothing: another owner has it.
    Lost,
}

/// One open partition.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) context: Arc<HostContext>,
    pub(crate) id: PartitionId,
    pub(crate) epoch: Epoch,
    pub(crate) keys: Arc<PartitionKeys>,
    /// Its logs and runs, as recorded.
    pub(crate) extents: Arc<Extents>,
    /// What comes in, before it waits, and what it costs.
    pub(crate) meter: Arc<Meter>,
    /// Rows that writes evaluated ahead rest on.
    pub(crate) watches: Arc<Watches>,
    /// Rows that the committer read for one write, at most so far.
    #[cfg(test)]
    pub(crate) longest_turn: AtomicUsize,
    /// The highest time given to a change, ticks.
    given: AtomicU64,
    published: RwLock<Published>,
    status: Mutex<Status>,
    log: Mutex<Vec<ExtentId>>,
    /// Why the last flush had no space.
    full: Mutex<Option<Full>>,
    /// Whether no compaction has looked at the runs since they changed.
    changed: AtomicBool,
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
        }
    }

    /// Whose logs and runs it writes.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner { extents: &self.extents, epoch: self.epoch }
    }

    /// The range its keys lie in; all of it unless they are a stripe.
    pub(crate) fn range(&self) -> &KeyRange {
        self.keys.range()
    }

    /// A time for a change, above all that were given.
    pub(crate) fn tick(&self) -> Timestamp {
        let now = self.context.parts.env.clock.now().ticks();
        let next = |last: u64| Some(now.max(last.saturating_add(1)));
        let last = self.given.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        Timestamp::from_ticks(now.max(last.unwrap_or_else(|last| last).saturating_add(1)))
    }

    /// Changes have times above this one.
    pub(crate) fn begin_after(&self, time: Timestamp) {
        self.given.fetch_max(time.ticks(), Ordering::AcqRel);
    }

    /// The durable rows as of now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let Published { sources, sequence } = self.published();
        let pace = Pace::new(&self.context.parts.env.clock);
        let keys = Arc::clone(&self.keys);
        Snapshot { sources, sequence, keys, pace, violation: OnceLock::new() }
    }

    pub(crate) fn published(&self) -> Published {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes commits up to `sequence` visible (I6: only once they are durable), or the same rows in
    /// other places.
    ///
    /// # Errors
    /// [`Invariant::Monotonic`]: what readers see stays as it was.
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

    /// Stops writes, or everything; never goes back.
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

    /// Refuses writes with this error from now on. If they are refused already, only the error
    /// changes: nobody waits who would have to be woken.
    pub(crate) fn refuse(&self, refusal: Error) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if let Status::ReadOnly(said) = &mut *status {
            *said = refusal;
            return;
        }
        drop(status);
        self.stop(Status::ReadOnly(refusal));
    }

    /// Stops a partition that will not flush what it has in memory: that is in its log, and no part
    /// of the budget any more. Only while nobody adds rows.
    pub(crate) fn fail(&self, to: Status) {
        self.stop(to);
        let sources = self.published().sources;
        sources.tables().for_each(|tables| tables.uncount());
    }

    /// Serves nothing from now on: its range has other owners.
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
    /// What a partition that takes no writes says, [`Error::WrongPartition`] when another owner has
    /// or will have it, and [`Error::Full`] or [`Error::Overloaded`] while memtables are full.
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

    /// Waits until memtables have room for a write, as long as a write may wait. A flush is
    /// imminent; a 503 would make the client miss the freed space.
    ///
    /// # Errors
    /// As of [`Self::may_write`].
    pub(crate) async fn room(&self) -> Result<(), Error> {
        let first = self.may_write();
        if first != Err(Error::Overloaded) {
            return first;
        }
        let clock = &self.context.parts.env.clock;
        let config = &self.context.config;
        let waiter = self.context.budget.wait();
        let few = Waits::is_few(waiter.ahead(), config.queue_ops);
        // Those that wait longest have waited in vain for so long: whoever comes now would too.
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

    /// Notes that a compaction may find something to do.
    pub(crate) fn runs_are_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Notes that a compaction looks at the runs as they are now.
    pub(crate) fn runs_are_looked_at(&self) {
        self.changed.store(false, Ordering::Release);
    }

    /// Whether a compaction may find something to do: of thousands of partitions most are at rest.
    pub(crate) fn may_compact(&self) -> bool {
        self.changed.load(Ordering::Acquire) && self.may_write_log()
    }

    /// Notes whether the last flush failed for want of space.
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

    /// Whether the log has grown so long that the partition should be flushed.
    pub(crate) fn has_long_log(&self) -> bool {
        self.log_extents() > LOG_EXTENTS_MAX
    }

    /// Whether maintenance may still change it.
    pub(crate) fn may_write_log(&self) -> bool {
        self.status() == Status::Serving
    }

    /// Rows in runs, and their bytes.
    pub(crate) fn run_size(&self) -> RunSize {
        let sources = self.published().sources;
        sources.runs.iter().flatten().map(|run| run.size()).sum()
    }

    /// About how many of those rows, and of their bytes, are its own: of a run shared with former
    /// neighbours its part.
    pub(crate) fn own_size(&self) -> RunSize {
        let sources = self.published().sources;
        sources.runs.iter().flatten().map(|run| run.size_in(&self.keys)).sum()
    }

    /// Extents of its log.
    pub(crate) fn log_extents(&self) -> usize {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The logs and runs it uses now.
    pub(crate) fn uses(&self) -> BTreeSet<ExtentId> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sources = self.published().sources;
        log.into_iter().chain(sources.extents()).collect()
    }

    /// Memory of its memtables.
    pub(crate) fn table_bytes(&self) -> usize {
        let sources = self.published().sources;
        sources.tables().map(|tables| tables.bytes()).sum()
    }
}
