//! What all partitions of a host have in common.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::{Notify, Semaphore};

use crate::capacity;
use crate::capacity::{Capacity, ExtentKind};
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::coordinator::Reason;
use crate::env::Env;
use crate::index::api::{Error, Full};
use crate::index::engine::ahead::AHEAD_MAX;
use crate::index::engine::chores::{Chore, Chores};
use crate::index::engine::config::Config;
use crate::index::engine::extents::{Extents, Pin, Pins};
use crate::index::engine::failure;
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
    /// [`Error::Unavailable`], [`Error::Full`].
    async fn next_extent(&self) -> Result<ExtentId, Error>;
}

#[async_trait]
impl ExtentIds for IdAllocator {
    async fn next_extent(&self) -> Result<ExtentId, Error> {
        let id = self.next().await.map_err(|error| failure::coordinator(&error))?;
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
    /// Rung when memory or logs may need work.
    pub(crate) wake: Notify,
    /// Rung when a partition has stopped and is to be opened again.
    pub(crate) stopped: Notify,
    /// Some partition's log has grown long since the last look.
    long_log: AtomicBool,
    /// Who serves the partitions.
    pub(crate) host: HostId,
    pub(crate) pins: Arc<Pins>,
}

impl Shared {
    /// `pins` are the same for all hosts of a process.
    pub(crate) fn new(parts: Parts, config: Config, (host, pins): (HostId, Arc<Pins>)) -> Self {
        Self {
            host,
            pins,
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

    /// Whether a look at all partitions may find one to flush. Thousands of them are not looked at
    /// for nothing.
    pub(crate) fn may_be_due(&self) -> bool {
        // No memtable is outside the budget.
        let half_full = self.budget.used() >= self.config.memtable_bytes_max / 2;
        self.long_log.swap(false, Ordering::Relaxed) || half_full
    }

    /// Creates an extent under an id that the partition's record has. When this fails, there may be
    /// an extent, but nothing uses it.
    pub(crate) async fn create(
        &self,
        kind: ExtentKind,
        epoch: Epoch,
        extents: &Arc<Extents>,
    ) -> Result<(ExtentId, Pin), Failed> {
        let none = || Failed::Refused("no id of an extent is at hand; tried again".into());
        let (extent, pin) = extents.take(&self.pins).ok_or_else(none)?;
        // Who asks may be gone before the answer. The removal waits for the end of the creation.
        let unfinished = Unfinished::new(self, extents, extent);
        let created = self.parts.capacity.create(extent, kind, epoch).await;
        unfinished.finish();
        let Err(error) = created else { return Ok((extent, pin)) };
        match &error {
            capacity::Error::Full => extents.give_back(extent),
            // The id was issued twice, and it is someone else's.
            capacity::Error::NoSuchExtent { .. } => extents.set_gone(extent),
            capacity::Error::Sealed { .. }
            | capacity::Error::Fenced { .. }
            | capacity::Error::WrongOffset { .. }
            | capacity::Error::Corrupt { .. }
            | capacity::Error::Poisoned { .. }
            | capacity::Error::Ended { .. }
            | capacity::Error::Unreadable { .. }
            | capacity::Error::OutOfService { .. } => self.release(extents, extent),
        }
        Err(Failed::from(error).before_it_counts())
    }

    /// Has an extent released that the partition surely does not use.
    pub(crate) fn release(&self, extents: &Arc<Extents>, extent: ExtentId) {
        self.chores.add(Chore::Release(Arc::clone(extents), extent));
    }

    /// Has everything released that a partition just opened does not use.
    pub(crate) fn release_unused(&self, extents: &Arc<Extents>, used: &BTreeSet<ExtentId>) {
        for extent in extents.unused(used) {
            self.chores.add(Chore::Release(Arc::clone(extents), extent));
        }
    }
}

/// An extent that is released unless it is finished.
pub(crate) struct Unfinished<'a> {
    shared: &'a Shared,
    extents: &'a Arc<Extents>,
    extent: Option<ExtentId>,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn new(shared: &'a Shared, extents: &'a Arc<Extents>, extent: ExtentId) -> Self {
        Self { shared, extents, extent: Some(extent) }
    }

    /// It is somebody else's matter now.
    pub(crate) fn finish(mut self) {
        self.extent = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(extent) = self.extent {
            self.shared.release(self.extents, extent);
        }
    }
}

/// Why durable work failed, by what follows for the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nothing was written for want of room; may work later.
    Full(Full),
    /// Nothing has changed: the coordinator or a disk refused. May work later.
    Refused(String),
    /// Another owner has the partition.
    Fenced,
    /// It may or may not have been written.
    Other(Reason),
}

impl Failed {
    /// The coordinator refused: surely nothing has changed.
    pub(crate) fn refused(error: &coordinator::Error) -> Self {
        if error.is_full() {
            Self::unread(failure::coordinator(error))
        } else {
            Self::Refused(error.to_string())
        }
    }

    /// Something could not be read that is needed before anything is changed.
    pub(crate) fn unread(error: Error) -> Self {
        if let Error::Full(full) = error {
            Self::Full(full)
        } else {
            Self::Refused(error.to_string())
        }
    }

    /// The coordinator did not say whether something has changed, and cannot be asked now.
    pub(crate) fn unknown(error: &coordinator::Error) -> Self {
        let text = error.to_string();
        Self::Other(if error.is_full() { Reason::full(text) } else { text.into() })
    }

    /// What is told of a partition that does not open. The next try reads what came of this one.
    pub(crate) fn of_opening(self) -> Error {
        match self {
            Self::Fenced => Error::WrongPartition,
            Self::Full(_) | Self::Refused(_) | Self::Other(_) => self.before_it_counts().into(),
        }
    }

    /// The failure of a step that nothing refers to yet: whatever came of it, the partition is as
    /// it was.
    pub(crate) fn before_it_counts(self) -> Self {
        match self {
            Self::Full(full) => Self::Full(full),
            Self::Refused(reason) => Self::Refused(reason),
            Self::Other(reason) if reason.is_full() => {
                Self::Full(Full::Coordinator(reason.to_string()))
            }
            Self::Other(reason) => Self::Refused(reason.to_string()),
            Self::Fenced => Self::Refused("the extent is another owner's".into()),
        }
    }
}

impl From<capacity::Error> for Failed {
    fn from(error: capacity::Error) -> Self {
        match error {
            capacity::Error::Full => Self::Full(Full::Disks),
            capacity::Error::Fenced { .. } => Self::Fenced,
            capacity::Error::Sealed { .. }
            | capacity::Error::WrongOffset { .. }
            | capacity::Error::NoSuchExtent { .. }
            | capacity::Error::Corrupt { .. }
            | capacity::Error::Poisoned { .. }
            | capacity::Error::Ended { .. }
            | capacity::Error::Unreadable { .. }
            | capacity::Error::OutOfService { .. } => Self::Other(error.to_string().into()),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Full(full) => Self::Full(full),
            Failed::Fenced => Self::WrongPartition,
            Failed::Refused(reason) => Self::Unavailable(reason),
            Failed::Other(reason) => Self::Unavailable(reason.to_string()),
        }
    }
}
