//! The content of a backup, and its protection from reclaim while it is copied.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::capacity;
use crate::capacity::Capacity;
use crate::capacity::CapacityNode;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::counter;
use crate::env::Env;
use crate::index::ConsistentCut;
use crate::index::CutPartition;
use crate::index::Hold;
use crate::index::IndexServer;
use crate::index::PartitionMap;
use crate::index::RunningRequests;
use crate::index::open_offline;
use crate::node::disks::list;
use crate::node::storage::Storage;
use crate::types::ClusterNumber;
use crate::types::ExtentId;

use super::attempt::Attempt;
use super::error::BackupError;

/// The coordinator's key of the id of the last restore.
pub(super) const RESTORED: &[u8] = b"node/restored";

/// A store to copy.
#[derive(Clone, Debug)]
pub struct Source {
    pub(super) capacity: Arc<CapacityNode>,
    coordinator: Arc<dyn Coordinator>,
    state: State,
}

/// How the store is used during the copy.
#[derive(Clone, Debug)]
enum State {
    /// A node serves it.
    Serving(Arc<IndexServer>, Arc<dyn RunningRequests>),
    /// No other process has it open.
    Stopped,
    /// It is a backup.
    Backup,
}

/// The content to copy.
#[derive(Debug)]
pub(super) struct Contents {
    /// The coordinator's rows, except those about disks.
    pub(super) rows: BTreeMap<Bytes, Bytes>,
    /// Logs and runs.
    pub(super) index: BTreeSet<ExtentId>,
    /// Extents with content.
    pub(super) data: BTreeSet<ExtentId>,
    /// The ends of the partitions' logs, of a node that serves.
    pub(super) cut: Option<Vec<CutPartition>>,
}

impl Source {
    /// The store of a node that serves.
    #[must_use]
    pub fn serving(
        storage: &Storage,
        index: Arc<IndexServer>,
        requests: Arc<dyn RunningRequests>,
    ) -> Self {
        Self::of(storage, State::Serving(index, requests))
    }

    /// A store that no other process has open.
    #[must_use]
    pub fn stopped(storage: &Storage) -> Self {
        Self::of(storage, State::Stopped)
    }

    /// A backup, from which a store is restored.
    pub(super) fn restored(storage: &Storage) -> Self {
        Self::of(storage, State::Backup)
    }

    fn of(storage: &Storage, state: State) -> Self {
        let capacity = Arc::clone(&storage.capacity);
        Self { capacity, coordinator: Arc::clone(&storage.coordinator), state }
    }

    /// Whether a node serves it.
    pub(super) fn is_served(&self) -> bool {
        matches!(self.state, State::Serving(..))
    }

    /// The id of the store, as in its `format` files.
    pub(super) fn store_id(&self) -> String {
        self.capacity.store_id().map(|id| format!("{id:032x}")).unwrap_or_default()
    }

    /// The id of the last restore.
    pub(super) async fn restored_id(&self) -> Result<Option<String>, BackupError> {
        let found = self.coordinator.get(RESTORED).await?;
        Ok(found.map(|found| String::from_utf8_lossy(&found.value).into_owned()))
    }

    /// The content to copy, as of one instant. All of it is protected until the attempt releases
    /// it.
    pub(super) async fn contents(
        &self,
        env: &Env,
        attempt: &Attempt,
    ) -> Result<Contents, BackupError> {
        if self.capacity.lacks_a_disk() {
            return Err(BackupError::DiskOut);
        }
        if let Some(stopped) = self.capacity.disks().into_iter().find(|disk| disk.poisoned) {
            return Err(BackupError::DiskStopped(stopped.number));
        }
        let mut contents = match &self.state {
            State::Serving(index, requests) => {
                // Before the cut: from now on reclaim frees no content.
                let hold = Hold::begin(requests, "a backup".to_owned()).await;
                let hold = hold.map_err(BackupError::Index)?;
                attempt.keep(|kept| kept.content = Some(hold))?;
                let cut = index.consistent_cut().await?;
                of_a_cut(cut, attempt)?
            }
            State::Stopped => self.of_all().await?,
            State::Backup => {
                let mut contents = self.of_all().await?;
                let id = format!("{:016x}{:016x}", env.rand.next_u64(), env.rand.next_u64());
                contents.rows.insert(Bytes::from_static(RESTORED), id.into());
                contents
            }
        };
        // The copy has disks of its own.
        contents.rows.remove(list::KEY);
        Ok(contents)
    }

    async fn of_all(&self) -> Result<Contents, BackupError> {
        let rows = self.coordinator.range(b"").await?.entries;
        let map = PartitionMap::load(self.coordinator.as_ref()).await;
        let mut index = BTreeSet::new();
        for descriptor in map.map_err(BackupError::Index)?.partitions() {
            let capacity = Arc::clone(&self.capacity) as Arc<dyn Capacity>;
            let opened = open_offline(capacity, descriptor).await.map_err(BackupError::Index)?;
            index.extend(opened.extents());
        }
        Ok(Contents {
            rows: rows.into_iter().map(|(key, entry)| (key, entry.value)).collect(),
            index,
            data: data_of(&self.capacity.extents().await),
            cut: None,
        })
    }

    /// Why an extent could not be sealed.
    pub(super) fn not_sealed(&self, extent: ExtentId, error: capacity::Error) -> BackupError {
        if let capacity::Error::Poisoned { disk } = error {
            let disks = self.capacity.disks();
            let found = disks.iter().find(|info| info.disk == disk);
            BackupError::DiskStopped(found.map_or(disk, |info| info.number))
        } else {
            self.not_read(extent, error)
        }
    }

    /// Why an extent could not be read.
    pub(super) fn not_read(&self, extent: ExtentId, error: capacity::Error) -> BackupError {
        if !matches!(error, capacity::Error::Ended { .. }) {
            BackupError::Damaged { extent, error }
        } else if self.capacity.is_stopping() {
            BackupError::Stops
        } else {
            // Its task panicked.
            BackupError::Ended(extent)
        }
    }

    /// Issues ids of extents for the copy alone.
    pub(super) async fn fresh_extents(
        &self,
        count: usize,
    ) -> Result<Vec<ExtentId>, coordinator::Error> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let (coordinator, alone) = (self.coordinator.as_ref(), ClusterNumber::ALONE);
        let ids = counter::allocate(coordinator, alone, counter::EXTENT_IDS, count).await?;
        Ok(ids.map(ExtentId::new).collect())
    }

    /// The rows of the counters as they are now.
    pub(super) async fn counters(&self) -> Result<BTreeMap<Bytes, Bytes>, coordinator::Error> {
        let found = self.coordinator.range(b"counter/").await?.entries;
        Ok(found.into_iter().map(|(key, entry)| (key, entry.value)).collect())
    }
}

fn of_a_cut(cut: ConsistentCut, attempt: &Attempt) -> Result<Contents, BackupError> {
    let ConsistentCut { rows, partitions, extents, pause, kept } = cut;
    attempt.keep(|all| all.index = Some(kept))?;
    tracing::info!(?pause, "backup: all partitions stood still for a moment");
    Ok(Contents {
        rows,
        index: partitions.iter().flat_map(CutPartition::extents).collect(),
        data: data_of(&extents),
        cut: Some(partitions),
    })
}

fn data_of(extents: &[ExtentInfo]) -> BTreeSet<ExtentId> {
    let data = extents.iter().filter(|info| info.kind == ExtentKind::Data);
    data.map(|info| info.extent).collect()
}
