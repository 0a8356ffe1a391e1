//! What all partitions of a host have in common.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::{Notify, Semaphore};

use crate::capacity;
use crate::capacity::{Capacity, ExtentKind};
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::env::Env;
use crate::index::api::Error;
use crate::index::engine::ahead::AHEAD_MAX;
use crate::index::engine::config::Config;
use crate::index::engine::owned::Owned;
use crate::index::engine::owned::Uses;
use crate::index::engine::run::cache::BlockCache;
use crate::index::engine::table::Budget;
use crate::index::metrics::Metrics;
use crate::index::rows::Machine;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;

/// Issues extent ids that were never issued before.
#[async_trait]
pub trait ExtentIds: Send + Sync + Debug {
    /// A fresh id.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn next_extent(&self) -> Result<ExtentId, Error>;
}

#[async_trait]
impl ExtentIds for IdAllocator {
    async fn next_extent(&self) -> Result<ExtentId, Error> {
        let id = self.next().await.map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(ExtentId::new(id))
    }
}

/// What a host needs of the layers below, and what its rows mean.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Clock and tasks.
    pub env: Env,
    /// Where logs and runs lie.
    pub capacity: Arc<dyn Capacity>,
    /// Where descriptors lie.
    pub coordinator: Arc<dyn Coordinator>,
    /// Ids for logs and runs.
    pub extents: Arc<dyn ExtentIds>,
    /// The meaning of rows.
    pub machine: Arc<dyn Machine>,
    /// Counters.
    pub metrics: Metrics,
}

/// Parts, limits, and the state common to all partitions.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) parts: Parts,
    pub(crate) config: Config,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) chores: Arc<Chores>,
    /// Places for writes that are evaluated ahead.
    pub(crate) ahead: Semaphore,
    /// Rung when memory, logs or runs may need work.
    pub(crate) wake: Notify,
    /// Rung when a partition has stopped and is to be opened again.
    pub(crate) stopped: Notify,
    /// Some partition's log has grown long since the last look.
    long_log: AtomicBool,
    /// Who serves the partitions.
    pub(crate) host: HostId,
    owned: Arc<Owned>,
}

impl Shared {
    /// `owned` is the same for all hosts of a process.
    pub(crate) fn new(parts: Parts, config: Config, (host, owned): (HostId, Arc<Owned>)) -> Self {
        Self {
            host,
            owned,
            parts,
            config,
            cache: Arc::new(BlockCache::new(config.block_cache_bytes)),
            budget: Arc::default(),
            chores: Arc::default(),
            ahead: Semaphore::new(AHEAD_MAX),
            wake: Notify::new(),
            stopped: Notify::new(),
            long_log: AtomicBool::new(false),
        }
    }

    /// Notes that a partition's log is long.
    pub(crate) fn note_long_log(&self) {
        self.long_log.store(true, Ordering::Relaxed);
    }

    /// Whether a look at all partitions may find one to flush. Thousands of them are not looked at for nothing.
    pub(crate) fn may_be_due(&self) -> bool {
        // No memtable is outside the budget.
        let half_full = self.budget.used() >= self.config.memtable_bytes_max / 2;
        self.long_log.swap(false, Ordering::Relaxed) || half_full
    }

    /// Creates an extent. It counts as owned from before it exists, so the audit never takes it for an orphan.
    pub(crate) async fn create(&self, kind: ExtentKind, epoch: Epoch) -> Result<ExtentId, Failed> {
        let extent =
            self.parts.extents.next_extent().await.map_err(|e| Failed::Refused(e.to_string()))?;
        self.own(extent);
        match self.parts.capacity.create(extent, kind, epoch).await {
            Ok(()) => Ok(extent),
            Err(error) => {
                // Not removed here: if the id is not fresh after all, it is someone's extent. The audit decides.
                self.owned.end(extent);
                Err(Failed::from(error).before_it_counts())
            }
        }
    }

    /// Notes an extent as in use by one more partition.
    pub(crate) fn own(&self, extent: ExtentId) {
        self.owned.add(extent);
    }

    /// For the uses of a partition that is not open yet.
    pub(crate) fn uses(&self) -> Uses {
        Uses::new(&self.owned)
    }

    /// Notes all extents there are as in use once more, and tells which.
    pub(crate) async fn own_all(&self) -> Vec<ExtentId> {
        let infos = self.parts.capacity.extents().await;
        let all: Vec<ExtentId> = infos.into_iter().map(|info| info.extent).collect();
        all.iter().for_each(|extent| self.own(*extent));
        all
    }

    /// Ends uses without removing anything: what nobody names then is left to the audit.
    pub(crate) fn release(&self, uses: &[ExtentId]) {
        for extent in uses {
            if self.owned.leave(*extent) {
                self.owned.end(*extent);
            }
        }
    }

    /// All extents in use by partitions of the process, those about to be removed too.
    pub(crate) fn owned(&self) -> Vec<ExtentId> {
        self.owned.all()
    }

    /// Seals and removes what is due. What fails is dropped: recovery seals, the audit removes. So
    /// is one that panics; the others stay due.
    pub(crate) async fn do_chores(&self) {
        while let Some(chore) = self.chores.next() {
            match chore {
                Chore::Seal(extent, epoch) => {
                    if let Err(error) = self.parts.capacity.seal(extent, epoch).await {
                        tracing::debug!(%extent, %error, "could not seal a left log extent");
                    }
                }
                Chore::Leave(extent) if self.owned.leave(extent) => {
                    // The audit removes nothing that counts as used.
                    let _end = Ending { owned: &self.owned, extent };
                    if let Err(error) = self.parts.capacity.remove(extent).await {
                        tracing::debug!(%extent, %error, "could not remove an unused extent");
                    }
                }
                Chore::Leave(_) => {}
            }
        }
    }
}

/// Ends the use of an extent when it is dropped, also by a panic.
struct Ending<'a> {
    owned: &'a Owned,
    extent: ExtentId,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.owned.end(self.extent);
    }
}

/// Work on extents that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// A log extent was left for a new one.
    Seal(ExtentId, Epoch),
    /// One partition uses the extent no more; it is removed after the last.
    Leave(ExtentId),
}

/// Chores not yet done, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Chores(Mutex<VecDeque<Chore>>);

impl Chores {
    pub(crate) fn add(&self, chore: Chore) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(chore);
    }

    fn next(&self) -> Option<Chore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Why durable work failed, by what follows for the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nothing was written for want of room; may work later.
    Full,
    /// Nothing has changed: the coordinator or a disk refused. May work later.
    Refused(String),
    /// Another owner has the partition.
    Fenced,
    /// It may or may not have been written.
    Other(String),
}

impl Failed {
    /// The failure of a step that nothing refers to yet: whatever came of it, the partition is as
    /// it was.
    pub(crate) fn before_it_counts(self) -> Self {
        match self {
            Self::Full => Self::Full,
            Self::Refused(reason) | Self::Other(reason) => Self::Refused(reason),
            Self::Fenced => Self::Refused("the extent is another owner's".into()),
        }
    }
}

impl From<capacity::Error> for Failed {
    fn from(error: capacity::Error) -> Self {
        match error {
            capacity::Error::Full => Self::Full,
            capacity::Error::Fenced { .. } => Self::Fenced,
            capacity::Error::Sealed { .. }
            | capacity::Error::WrongOffset { .. }
            | capacity::Error::NoSuchExtent { .. }
            | capacity::Error::Corrupt { .. }
            | capacity::Error::Poisoned { .. }
            | capacity::Error::Ended { .. }
            | capacity::Error::Unreadable { .. }
            | capacity::Error::OutOfService { .. } => Self::Other(error.to_string()),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Full => Self::Full,
            Failed::Fenced => Self::WrongPartition,
            Failed::Refused(reason) | Failed::Other(reason) => Self::Unavailable(reason),
        }
    }
}
