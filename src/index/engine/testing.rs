//! Fixtures of engine tests: capacity in memory with faults, and rows with the simplest meaning.

mod capacity;
mod machine;

pub(crate) use capacity::{Fault, MemoryCapacity, Trap, When};
pub(crate) use machine::{Plain, put, put_if_absent, remove};

use std::sync::Arc;

use bytes::Bytes;

use crate::coordinator::IdAllocator;
use crate::coordinator::SimulatedStore;
use crate::coordinator::counter::EXTENT_IDS;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::index::api::Error;
use crate::index::api::Full;
use crate::index::api::Write;
use crate::index::engine::config::Config;
use crate::index::engine::context::{Dependencies, HostContext};
use crate::index::engine::partition::Partition;
use crate::index::map::PartitionDescriptor;
use crate::index::metrics::Metrics;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::ClusterNumber;
use crate::types::Epoch;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;

/// The state that survives a restart of the process.
pub(crate) struct World {
    pub(crate) capacity: Arc<MemoryCapacity>,
    pub(crate) store: SimulatedStore,
    pub(crate) config: Config,
}

pub(crate) const PARTITION: PartitionId = PartitionId::new(1);

impl World {
    /// A new store.
    pub(crate) fn empty() -> Self {
        Self {
            capacity: Arc::default(),
            store: SimulatedStore::new(),
            config: Config { memtable_bytes_max: 8 << 20, ..Config::default() },
        }
    }

    /// A store with one partition of all keys.
    pub(crate) async fn new() -> Self {
        let world = Self::empty();
        let descriptor = PartitionDescriptor {
            id: PARTITION,
            keys: KeyRange::all().into(),
            epoch: Epoch::new(0),
            log: Vec::new(),
            host: HostId::new(0),
        };
        let key = PartitionDescriptor::coordinator_key(PARTITION);
        let put = crate::coordinator::Op::Put(key, descriptor.encode());
        world.deps().coordinator.txn(&[], &[put]).await.unwrap();
        world
    }

    pub(crate) fn deps(&self) -> Dependencies {
        const ALONE: ClusterNumber = ClusterNumber::ALONE;
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(crate::env::rand::SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        let coordinator = Arc::new(self.store.open(&env));
        Dependencies {
            env,
            capacity: Arc::clone(&self.capacity) as _,
            coordinator: Arc::clone(&coordinator) as _,
            node: NodeId::new(0),
            cluster: ALONE,
            extent_ids: Arc::new(IdAllocator::new(coordinator, ALONE, EXTENT_IDS)),
            machine: Arc::new(Plain),
            leases: None,
            writers: None,
            metrics: Metrics::default(),
        }
    }

    /// Starts the process: everything not durable is lost.
    pub(crate) async fn open(&self) -> Result<Partition, Error> {
        self.capacity.crash();
        let context =
            Arc::new(HostContext::new(self.deps(), self.config, HostId::new(0), Arc::default()));
        Partition::open(&context, PARTITION).await
    }

    pub(crate) async fn descriptor(&self) -> PartitionDescriptor {
        let key = PartitionDescriptor::coordinator_key(PARTITION);
        let found = self.deps().coordinator.get(&key).await.unwrap().unwrap();
        PartitionDescriptor::decode(&found.value).unwrap()
    }
}

/// Whether a write is refused since the coordinator has no room.
pub(crate) fn is_no_room(error: &Error) -> bool {
    matches!(error, Error::Full(Full::Coordinator(_)))
}

impl Partition {
    /// Writes with the partition's own epoch.
    pub(crate) async fn apply(&self, write: Write) -> Result<(), Error> {
        self.write(self.core.epoch, write).await.map(|_| ())
    }

    /// All main rows as readers see them.
    pub(crate) async fn rows(&self) -> Vec<(Bytes, Bytes)> {
        let snapshot = self.core.snapshot();
        let rows = snapshot.scan_all(Family::Main, (&[], None), usize::MAX).await.unwrap();
        rows.into_iter().map(|row| (row.key, row.value)).collect()
    }
}
