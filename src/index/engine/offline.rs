//! The rows of a partition of a stopped store, for the checker. Nothing is claimed, fenced, sealed
//! or written.

use std::sync::Arc;
use std::sync::OnceLock;

use async_trait::async_trait;
use bytes::Bytes;

use crate::capacity::Capacity;
use crate::index::api::Error;
use crate::index::engine::chores::Chores;
use crate::index::engine::extents::Pins;
use crate::index::engine::pace::Pace;
use crate::index::engine::replay::Replay;
use crate::index::engine::run::cache::BlockCache;
use crate::index::engine::run::reader::{PinnedRun, Run};
use crate::index::engine::sources::Sources;
use crate::index::engine::table::{Budget, Tables};
use crate::index::engine::view::Snapshot;
use crate::index::map::PartitionDescriptor;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::index::rows::Scanned;
use crate::types::ExtentId;

const CACHE_BYTES: usize = 16 << 20;

/// The durable rows of a partition, and their extents.
#[derive(Debug)]
pub struct Offline {
    snapshot: Snapshot,
    extents: Vec<ExtentId>,
}

impl Offline {
    /// The log and run extents that the partition uses.
    #[must_use]
    pub fn extents(&self) -> &[ExtentId] {
        &self.extents
    }
}

/// Reads a partition that no process has open. Holds the unflushed rows of the log in memory.
///
/// # Errors
/// [`Error::Corrupt`] if the log or a run is damaged, [`Error::Unavailable`].
pub async fn open_offline(
    capacity: Arc<dyn Capacity>,
    descriptor: &PartitionDescriptor,
) -> Result<Offline, Error> {
    let tables = Arc::new(Tables::new(Arc::new(Budget::default())));
    let mut replay = Replay::start(capacity.as_ref(), descriptor).await?;
    while replay.step(&tables).await? {}
    let done = replay.finish();
    let cache = Arc::new(BlockCache::new(CACHE_BYTES));
    let (chores, pins) = (Arc::new(Chores::default()), Arc::<Pins>::default());
    let mut sources = Sources { active: tables, frozen: None, runs: Default::default() };
    let mut extents = descriptor.log.clone();
    for entry in &done.manifest.runs {
        let (cache, chores) = (Arc::clone(&cache), Arc::clone(&chores));
        let pinned = PinnedRun { entry: *entry, pin: pins.pin(entry.footer.extent) };
        let run = Run::open(pinned, Arc::clone(&capacity), cache, chores).await?;
        extents.push(run.extent());
        sources.runs_mut(run.family()).push(Arc::new(run));
    }
    let keys = Arc::new(descriptor.keys.clone());
    let sources = Arc::new(sources);
    let (sequence, pace, violation) = (done.sequence, Pace::default(), OnceLock::new());
    let snapshot = Snapshot { sources, sequence, keys, pace, violation };
    Ok(Offline { snapshot, extents })
}

#[async_trait]
impl Rows for Offline {
    async fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.snapshot.get(family, key).await
    }

    async fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Result<Scanned, Error> {
        self.snapshot.scan(family, from, to, limit).await
    }
}
