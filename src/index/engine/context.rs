//! The context of a host: what all of its partitions use.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, Semaphore};

use crate::capacity::{Capacity, ExtentIds, ReadLeases};
use crate::coordinator::Coordinator;
use crate::env::Env;
use crate::index::api::WriterSessions;
use crate::index::engine::chores::{Chore, Chores};
use crate::index::engine::config::Config;
use crate::index::engine::extents::{Extents, Pins};
use crate::index::engine::run::cache::BlockCache;
use crate::index::engine::table::Budget;
use crate::index::metrics::Metrics;
use crate::index::rows::Machine;
use crate::types::ClusterNumber;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::NodeId;

/// The most writes of one host that are evaluated ahead at a time. Each holds all the rows that it
/// changes in memory.
pub(crate) const AHEAD_MAX: usize = 4;

/// The parts of lower layers that a host uses, and the meaning of its rows.
#[derive(Clone, Debug)]
pub struct Dependencies {
    /// The clock and the tasks.
    pub env: Env,
    /// Stores logs and runs.
    pub capacity: Arc<dyn Capacity>,
    /// Stores descriptors and the records of extents.
    pub coordinator: Arc<dyn Coordinator>,
    /// The node of a cluster that this process is; zero if it is alone.
    pub node: NodeId,
    /// The number that ids of new partitions carry.
    pub cluster: ClusterNumber,
    /// Issues ids for logs and runs.
    pub extent_ids: Arc<dyn ExtentIds>,
    /// Evaluates writes and answers reads.
    pub machine: Arc<dyn Machine>,
    /// The read leases of logs; `None` if no other process can open the partitions.
    pub leases: Option<Arc<dyn ReadLeases>>,
    /// Which processes have ended, whose writes are numbered; `None` if none are.
    pub writers: Option<Arc<dyn WriterSessions>>,
    /// Counters and gauges.
    pub metrics: Metrics,
}

/// The parts that all partitions of a host use: the layers below, the limits, the block cache, the
/// memory budget of memtables, and the queue of chores.
#[derive(Debug)]
pub(crate) struct HostContext {
    pub(crate) deps: Dependencies,
    pub(crate) config: Config,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) chores: Arc<Chores>,
    /// Limits the logs that are replayed at a time.
    pub(crate) replays: Semaphore,
    /// Limits the writes that are evaluated ahead to [`AHEAD_MAX`].
    pub(crate) ahead: Semaphore,
    /// Notified when memtables or logs may need a flush.
    pub(crate) wake: Notify,
    /// Notified when a partition has stopped and must be opened again.
    pub(crate) stopped: Notify,
    /// Whether the log of some partition has grown long since [`Self::may_be_due`] was last called.
    long_log: AtomicBool,
    /// The host that serves the partitions.
    pub(crate) host: HostId,
    pub(crate) pins: Arc<Pins>,
}

impl HostContext {
    /// Creates the context of one host. All hosts of a process use the same `pins`.
    pub(crate) fn new(deps: Dependencies, config: Config, host: HostId, pins: Arc<Pins>) -> Self {
        Self {
            host,
            pins,
            deps,
            config,
            cache: Arc::new(BlockCache::new(config.block_cache_bytes)),
            budget: Arc::default(),
            chores: Arc::default(),
            replays: Semaphore::new(config.parallel_opens.max(1)),
            ahead: Semaphore::new(AHEAD_MAX),
            wake: Notify::new(),
            stopped: Notify::new(),
            long_log: AtomicBool::new(false),
        }
    }

    /// Whether logs have read leases: then other processes may take the partitions over, and an
    /// extent has one writer.
    pub(crate) fn has_leases(&self) -> bool {
        self.deps.leases.is_some()
    }

    /// Notes that a partition's log is long.
    pub(crate) fn note_long_log(&self) {
        self.long_log.store(true, Ordering::Relaxed);
    }

    /// Whether some partition may need a flush. The caller examines all partitions, perhaps
    /// thousands, only then.
    pub(crate) fn may_be_due(&self) -> bool {
        // The budget counts all memtables.
        let half_full = self.budget.used() >= self.config.memtable_bytes_max / 2;
        self.long_log.swap(false, Ordering::Relaxed) || half_full
    }

    /// Queues the release of an extent that the partition certainly does not use.
    pub(crate) fn release(&self, extents: &Arc<Extents>, extent: ExtentId) {
        self.chores.add(Chore::Release(Arc::clone(extents), extent));
    }

    /// Queues the release of all extents that a partition just opened does not use.
    pub(crate) fn release_unused(&self, extents: &Arc<Extents>, used: &BTreeSet<ExtentId>) {
        for extent in extents.unused(used) {
            self.chores.add(Chore::Release(Arc::clone(extents), extent));
        }
    }
}

/// An extent in the making. It is released on drop, unless [`Self::finish`] is called.
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

    /// Keeps the extent: another owner is responsible for it now.
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
