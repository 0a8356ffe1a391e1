use std::sync::Arc;

use super::*;
use crate::capacity::AppendRequest;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CatalogPlace;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::capacity::SimulatedCatalog;
use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupState;
use crate::coordinator::SimulatedStore;
use crate::coordinator::simulated::Fault;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::SimDisk;
use crate::env::Tasks;
use crate::index::create_map;
use crate::node::disks::Given;
use crate::node::keys::MasterKeyError;
use crate::node::storage::Owner;
use crate::node::storage::Start;
use crate::node::storage::node_of;
use crate::node::testing::SimulatedPlace;
use crate::types::Epoch;
use crate::types::ExtentOffset;
use crate::types::Generation;

const NUMBER: ClusterNumber = ClusterNumber::new(9);

/// A node alone, with what becomes of it.
struct World {
    folder: tempfile::TempDir,
    /// The name of its master key file.
    key: &'static str,
    disk: SimDisk,
    catalog: SimulatedCatalog,
    own: SimulatedStore,
    cluster: SimulatedStore,
    env: Env,
}

impl World {
    /// A store with extents of two groups, all of them open, and a map of four partitions.
    async fn new() -> Self {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
            key: "key",
            disk: SimDisk::new(1, 64 << 20),
            catalog: SimulatedCatalog::default(),
            own: SimulatedStore::new(),
            cluster: SimulatedStore::new(),
            env: Env { clock, rand, tasks: Tasks::new() },
        };
        let storage = world.start(Owner::Alone).await.unwrap();
        for (id, kind) in [(1, ExtentKind::Data), (2, ExtentKind::Log), (70, ExtentKind::Run)] {
            let (extent, epoch) = (ExtentId::new(id), Epoch::new(1));
            storage.capacity.create(extent, kind, epoch).await.unwrap();
            let append = AppendRequest {
                extent,
                epoch,
                offset: ExtentOffset::START,
                payloads: vec![vec![Bytes::from_static(b"bytes")]],
                durability: Durability::Durable,
            };
            storage.capacity.append(append).await.unwrap();
        }
        let (own, alone) = (storage.coordinator.as_ref(), ClusterNumber::ALONE);
        create_map(own, alone, (&[HostId::new(0)], 4)).await.unwrap();
        let file = world.key_file();
        master_key::open(&file, own, true, world.env.clock.now()).await.unwrap();
        let counter = Op::Put(Bytes::from_static(b"counter/extent"), Bytes::from_static(&[0; 8]));
        let sharers = Op::Put(Bytes::from_static(b"sharers/1"), Bytes::from_static(b"some"));
        own.txn(&[], &[counter, sharers]).await.unwrap();
        storage.capacity.shutdown().await;
        world
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join(self.key)
    }

    async fn start(&self, owner: Owner) -> Result<Storage, NodeError> {
        let data = [self.folder.path().join("data")];
        let start = Start {
            given: Given { data: &data, add: &[], without: &[] },
            disks: vec![self.disk.disk()],
            env: self.env.clone(),
            config: CapacityConfig {
                catalog: CatalogPlace::Simulated(vec![self.catalog.clone()]),
                ..CapacityConfig::small()
            },
            metrics: CapacityMetrics::default(),
            owner,
        };
        start.open(&SimulatedPlace(self.own.clone(), self.env.clone())).await
    }

    async fn adopt(&self, number: Option<ClusterNumber>) -> Result<AdoptedStore, NodeError> {
        let storage = self.start(Owner::Founder).await?;
        let adopt = Adopt {
            data: vec![self.folder.path().join("data")],
            master_key_file: Some(self.key_file()),
            number,
            copies: 3,
        };
        let coordinator = self.cluster.open(&self.env);
        let adopted = adopt_store(&storage, &coordinator, &adopt, &self.env).await;
        storage.capacity.shutdown().await;
        adopted
    }

    async fn undo(&self) -> Result<bool, NodeError> {
        let storage = self.start(Owner::Founder).await?;
        let coordinator = self.cluster.open(&self.env);
        let undone = undo_store(&storage, &coordinator, self.folder.path()).await;
        storage.capacity.shutdown().await;
        undone
    }

    /// The faults are over, those too that nothing has met yet.
    async fn calm(&self) {
        for store in [&self.own, &self.cluster] {
            let coordinator = store.open(&self.env);
            for _ in 0..20 {
                let nothing = [Op::Delete(Bytes::from_static(b"any"))];
                drop(coordinator.txn(&[], &nothing).await);
                drop(coordinator.get(b"any").await);
            }
        }
    }

    async fn keys(&self, store: &SimulatedStore) -> Vec<String> {
        let all = store.open(&self.env).range(b"").await.unwrap().entries;
        all.into_iter().map(|(key, _)| key.escape_ascii().to_string()).collect()
    }

    /// Checks the cluster that was made, and that the store belongs to its first node.
    async fn assert_adopted(&self, why: &str) {
        let cluster = self.cluster.open(&self.env);
        let record = ClusterRecord::read(&cluster).await.unwrap();
        assert_eq!((record.number, record.copies), (NUMBER, 3), "{why}");
        let node = NodeId::new(9 << 48);
        let map = PartitionMap::load(&cluster).await.unwrap();
        assert_eq!(map.partitions().len(), 4, "{why}");
        assert!(map.partitions().iter().all(|one| one.host == HostId::of(node, 0)), "{why}");
        let found = groups::read_all(&cluster).await.unwrap().groups;
        let found: Vec<GroupRecord> =
            found.into_values().map(|stored| stored.record.unwrap()).collect();
        let kept = |record: &GroupRecord| -> Vec<u64> {
            let kept = Extents::ALL.without(record.gone()).in_group(record.id());
            kept.map(ExtentId::get).collect()
        };
        assert_eq!(found.iter().map(kept).collect::<Vec<_>>(), [vec![1, 2], vec![70]], "{why}");
        for group in &found {
            let ended = kept(group).into_iter().map(ExtentId::new);
            assert!(ended.clone().all(|extent| group.length(extent).is_some()), "{why}");
            assert_eq!((group.members(), group.state()), (&[node][..], GroupState::Closed));
            assert_eq!(group.generation(), Generation::FIRST);
        }
        let keys = self.keys(&self.cluster).await;
        let has = |key: &str| keys.iter().any(|found| found == key);
        assert!(has("sharers/1") && has("node/key-ring") && has("cluster/authority"), "{keys:?}");
        assert!(!has("counter/extent") && !has("cluster/adopting"), "{keys:?}");
        // The next node gets the next id.
        let next = crate::coordinator::nodes::new_id(&self.cluster.open(&self.env), NUMBER).await;
        assert_eq!(next.unwrap(), NodeId::new(node.get() + 1), "{why}");

        let alone = self.start(Owner::Alone).await;
        assert!(matches!(alone, Err(NodeError::OfCluster { .. })), "{why}: {alone:?}");
        let founder = self.start(Owner::Founder).await;
        assert!(matches!(founder, Err(NodeError::OfCluster { .. })), "{why}: {founder:?}");
        let storage = self.start(Owner::Cluster(record)).await.unwrap();
        let own = storage.coordinator.as_ref();
        assert_eq!(node_of(own).await.unwrap(), Some(node), "{why}");
        // As a start does.
        founded(own).await.unwrap();
        storage.capacity.shutdown().await;
        let keys = self.keys(&self.own).await;
        assert!(keys.iter().all(|key| key.starts_with("node/")), "{why}: {keys:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn store_becomes_the_first_node_with_one_copy_of_everything() {
    let world = World::new().await;
    let adopted = world.adopt(Some(NUMBER)).await.unwrap();
    assert_eq!((adopted.partitions, adopted.extents), (4, 3));
    world.assert_adopted("at once").await;
}

/// A crash is a transaction after which nothing more happens, and which may have been applied.
#[tokio::test(start_paused = true)]
async fn crash_after_any_step_is_resumed_or_undone() {
    let faults = [Fault::Unavailable, Fault::AppliedThenAway, Fault::LostThenAway];
    let mut crashed = 0;
    for (at, fault) in (0..16).flat_map(|at| faults.map(|fault| (at, fault))) {
        for is_own in [false, true] {
            let why = format!("{fault:?} after {at} of {}", if is_own { "own" } else { "cluster" });
            let world = World::new().await;
            let store = if is_own { &world.own } else { &world.cluster };
            store.inject_after(at, fault);
            if world.adopt(Some(NUMBER)).await.is_err() {
                crashed += 1;
            }
            world.calm().await;
            let is_made = ClusterRecord::read(&world.cluster.open(&world.env)).await.is_ok();
            if !is_made {
                let alone = world.start(Owner::Alone).await;
                // Marked or not: nothing of a marked store is served.
                let is_marked = matches!(alone, Err(NodeError::OfCluster { .. }));
                if let Ok(storage) = alone {
                    storage.capacity.shutdown().await;
                }
                if is_marked && at % 2 == 0 {
                    world.undo().await.unwrap();
                    assert_eq!(world.keys(&world.cluster).await, [""; 0], "{why}");
                    world.start(Owner::Alone).await.unwrap().capacity.shutdown().await;
                }
            }
            match world.adopt(Some(NUMBER)).await {
                Ok(_) => {}
                // It was done, but for the answer.
                Err(NodeError::OfCluster { .. }) if is_made => {}
                Err(error) => panic!("{why}: {error}"),
            }
            world.assert_adopted(&why).await;
        }
    }
    assert!(crashed > 20, "{crashed}");
}

/// The transaction that makes the cluster may have been carried out there.
#[tokio::test(start_paused = true)]
async fn store_founds_one_cluster_although_another_coordinator_is_given() {
    let mut world = World::new().await;
    // The mark of the store is written, and nothing is made.
    world.cluster.inject(Fault::Unavailable);
    world.adopt(Some(NUMBER)).await.unwrap_err();
    let first = std::mem::take(&mut world.cluster);
    world.cluster.inject_after(1, Fault::Unavailable);
    world.adopt(Some(NUMBER)).await.unwrap_err();
    // Nobody goes on with that, after it was begun again elsewhere.
    let second = std::mem::replace(&mut world.cluster, first);
    world.cluster.inject_after(3, Fault::AppliedThenAway);
    let error = world.adopt(Some(NUMBER)).await.unwrap_err();
    assert!(matches!(error, NodeError::Cluster(ClusterError::Coordinator(_))), "{error:?}");
    world.calm().await;
    assert!(ClusterRecord::read(&world.cluster.open(&world.env)).await.is_ok());
    for other in [second, SimulatedStore::new()] {
        let made = std::mem::replace(&mut world.cluster, other);
        for result in [world.adopt(Some(NUMBER)).await.map(|_| true), world.undo().await] {
            let is_refused = matches!(
                result,
                Err(NodeError::Adopt(AdoptError::Elsewhere(_))
                    | NodeError::Cluster(ClusterError::Adopting))
            );
            assert!(is_refused, "{result:?}");
        }
        world.cluster = made;
    }
    world.adopt(Some(NUMBER)).await.unwrap();
    world.assert_adopted("where it was made").await;
}

#[tokio::test(start_paused = true)]
async fn damaged_index_is_not_adopted() {
    let world = World::new().await;
    let own = world.own.open(&world.env);
    let map = PartitionMap::load(&own).await.unwrap();
    let broken = PartitionDescriptor { log: vec![ExtentId::new(5)], ..map.partitions()[0].clone() };
    let key = PartitionDescriptor::coordinator_key(broken.id);
    own.txn(&[], &[Op::Put(key, broken.encode())]).await.unwrap();
    let refused = world.adopt(None).await;
    assert!(matches!(refused, Err(NodeError::Adopt(AdoptError::Damaged(_)))), "{refused:?}");
    world.start(Owner::Alone).await.unwrap().capacity.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn node_finishes_an_adoption_whose_cluster_is_made() {
    let world = World::new().await;
    // The mark of the store, and the note that the cluster is made now; then the one that ends the
    // adoption.
    world.own.inject_after(2, Fault::Unavailable);
    world.adopt(Some(NUMBER)).await.unwrap_err();
    let record = ClusterRecord::read(&world.cluster.open(&world.env)).await.unwrap();
    let storage = world.start(Owner::Cluster(record)).await.unwrap();
    founded(storage.coordinator.as_ref()).await.unwrap();
    storage.capacity.shutdown().await;
    world.assert_adopted("by the node").await;
    let undone = world.undo().await;
    assert!(matches!(undone, Err(NodeError::OfCluster { .. })), "{undone:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_adopted_is_refused_and_not_marked() {
    let world = World { key: "another", ..World::new().await };
    let refused = world.adopt(None).await;
    assert!(
        matches!(refused, Err(NodeError::MasterKey(MasterKeyError::Missing { .. }))),
        "{refused:?}"
    );
    let world = World::new().await;
    let taken = Op::Put(Bytes::from_static(b"something"), Bytes::new());
    world.cluster.open(&world.env).txn(&[], &[taken]).await.unwrap();
    let refused = world.adopt(None).await;
    assert!(
        matches!(refused, Err(NodeError::Cluster(ClusterError::NotEmpty { .. }))),
        "{refused:?}"
    );
    world.start(Owner::Alone).await.unwrap().capacity.shutdown().await;
    let undone = world.undo().await;
    assert!(matches!(undone, Err(NodeError::Adopt(AdoptError::NotBegun(_)))), "{undone:?}");
}

#[tokio::test(start_paused = true)]
async fn resumed_adoption_keeps_its_number() {
    let world = World::new().await;
    world.cluster.inject_after(1, Fault::Unavailable);
    world.adopt(Some(NUMBER)).await.unwrap_err();
    let other = world.adopt(Some(ClusterNumber::new(10))).await;
    assert!(matches!(other, Err(NodeError::Adopt(AdoptError::OtherNumber(NUMBER)))), "{other:?}");
    world.adopt(None).await.unwrap();
    world.assert_adopted("with the number of the first try").await;
}
