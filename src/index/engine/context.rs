//! The context of a host: what all of its partitions use.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::{Notify, Semaphore};

use crate::capacity;
use crate::capacity::{Capacity, ExtentKind};
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::env::Env;
use crate::index::api::Error;
use crate::index::engine::chores::{Chore, Chores};
use crate::index::engine::config::Config;
use crate::index::engine::extents::{Extents, Owner, PinnedExtent, Pins};
use crate::index::engine::failed::Failed;
use crate::index::engine::failure;
use crate::index::engine::run::cache::BlockCache;
use crate::index::engine::table::Budget;
use crate::index::metrics::Metrics;
use crate::index::rows::Machine;
use crate::types::ExtentId;
use crate::types::HostId;

/// Writes of one host that are evaluated ahead at a time: each holds all the rows it changes in
/// memory.
pub(crate) const AHEAD_MAX: usize = 4;

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

/// What all partitions of a host use: the layers below, the limits, the block cache, the memory
/// budget of memtables, and the queue of chores.
#[derive(Debug)]
pub(crate) struct HostContext {
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

impl HostContext {
    /// `pins` are the same for all hosts of a process.
    pub(crate) fn new(parts: Parts, config: Config, host: HostId, pins: Arc<Pins>) -> Self {
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
        owner: Owner<'_>,
    ) -> Result<PinnedExtent, Failed> {
        let Owner { extents, epoch } = owner;
        let none = || Failed::Busy("no id of an extent is at hand");
        let pinned = extents.take(&self.pins).ok_or_else(none)?;
        let extent = pinned.extent;
        // Who asks may be gone before the answer. The removal waits for the end of the creation.
        let unfinished = Unfinished::new(self, extents, extent);
        let created = self.parts.capacity.create(extent, kind, epoch).await;
        unfinished.finish();
        let Err(error) = created else { return Ok(pinned) };
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
    context: &'a HostContext,
    extents: &'a Arc<Extents>,
    extent: Option<ExtentId>,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn new(
        context: &'a HostContext,
        extents: &'a Arc<Extents>,
        extent: ExtentId,
    ) -> Self {
        Self { context, extents, extent: Some(extent) }
    }

    /// It is somebody else's matter now.
    pub(crate) fn finish(mut self) {
        self.extent = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(extent) = self.extent {
            self.context.release(self.extents, extent);
        }
    }
}
