use std::path::PathBuf;

use super::*;
use crate::capacity::CatalogPlace;
use crate::capacity::ExtentKind;
use crate::capacity::OpenError;
use crate::capacity::SimulatedCatalog;
use crate::coordinator::SimulatedStore;
use crate::env::Faults;
use crate::env::SeededRand;
use crate::env::SimDisk;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::types::Epoch;
use crate::types::ExtentId;

#[derive(Debug)]
struct Simulated(SimulatedStore, Env);

#[async_trait]
impl CoordinatorPlace for Simulated {
    fn path(&self) -> &Path {
        Path::new("/coordinator")
    }

    fn is_made(&self) -> bool {
        self.0.is_made()
    }

    async fn open(&self) -> Result<Arc<dyn Coordinator>, NodeError> {
        Ok(Arc::new(self.0.open(&self.1)))
    }
}

/// A disk with its directory and its catalog.
#[derive(Clone, Debug)]
struct Mounted {
    path: PathBuf,
    sim: SimDisk,
    catalog: SimulatedCatalog,
}

fn mounted(number: u64) -> Mounted {
    let path = PathBuf::from(format!("/disks/{number}"));
    Mounted { path, sim: SimDisk::new(number, 64 << 20), catalog: SimulatedCatalog::default() }
}

fn env() -> Env {
    let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
    Env { clock, rand, tasks: Tasks::new() }
}

async fn start(disks: &[Mounted], store: &SimulatedStore) -> Result<Storage, NodeError> {
    let env = env();
    let data: Vec<PathBuf> = disks.iter().map(|disk| disk.path.clone()).collect();
    let catalogs = disks.iter().map(|disk| disk.catalog.clone()).collect();
    let start = Start {
        given: Given { data: &data, add: &[], without: &[] },
        disks: disks.iter().map(|disk| disk.sim.disk()).collect(),
        env: env.clone(),
        config: CapacityConfig {
            catalog: CatalogPlace::Simulated(catalogs),
            ..CapacityConfig::small()
        },
        metrics: CapacityMetrics::default(),
    };
    start.open(&Simulated(store.clone(), env)).await
}

/// Makes a store of two disks with an extent.
async fn store_of(disks: &[Mounted; 2]) -> SimulatedStore {
    let store = SimulatedStore::new();
    let storage = start(disks, &store).await.unwrap();
    let numbers: Vec<_> = known(&storage).await.into_iter().map(|(_, number)| number).collect();
    assert_eq!(numbers, [Some(0), Some(1)], "from the first start on");
    storage.capacity.create(ExtentId::new(1), ExtentKind::Data, Epoch::new(1)).await.unwrap();
    storage.capacity.shutdown().await;
    store
}

/// Where the store has its disks, and with which numbers.
async fn known(storage: &Storage) -> Vec<(String, Option<usize>)> {
    let known = disks::read(storage.coordinator.as_ref()).await.unwrap();
    known.into_iter().map(|disk| (disk.path, disk.number)).collect()
}

#[tokio::test(start_paused = true)]
async fn new_disks_get_their_numbers_and_keep_them_in_another_order() {
    let [one, two] = [mounted(1), mounted(2)];
    let store = store_of(&[one.clone(), two.clone()]).await;
    for (order, numbers) in [([one.clone(), two.clone()], [0, 1]), ([two, one], [1, 0])] {
        let storage = start(&order, &store).await.unwrap();
        let paths = order.map(|disk| disk.path.display().to_string());
        let expected: Vec<_> = paths.into_iter().zip(numbers.map(Some)).collect();
        assert_eq!(known(&storage).await, expected);
        assert_eq!(storage.capacity.extents().await.len(), 1);
        storage.capacity.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn disks_with_extents_and_no_coordinator_are_refused_and_none_is_made() {
    let disks = [mounted(1), mounted(2)];
    store_of(&disks).await;
    let other = SimulatedStore::new();
    let refused = start(&disks, &other).await;
    assert!(matches!(refused, Err(NodeError::CoordinatorMissing { .. })), "{refused:?}");
    assert!(!other.is_made());
}

/// A disk that is not read is neither a new one nor one whose `format` is damaged.
#[tokio::test(start_paused = true)]
async fn a_disk_whose_format_cannot_be_read_is_named() {
    let disks = [mounted(1), mounted(2)];
    let store = store_of(&disks).await;
    disks[1].sim.set_faults(Faults { read_error: 1_000_000, ..Faults::default() });
    match start(&disks, &store).await {
        Err(NodeError::Capacity { path, error: OpenError::Disk { disk: 1, .. } }) => {
            assert_eq!(path, "/disks/2");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_disk_or_with_a_new_one_changes_nothing() {
    let [one, two, new] = [mounted(1), mounted(2), mounted(3)];
    let store = store_of(&[one.clone(), two.clone()]).await;
    let missing = start(std::slice::from_ref(&two), &store).await;
    assert!(matches!(missing, Err(NodeError::DiskMissing { .. })), "{missing:?}");
    let unknown = start(&[one.clone(), two.clone(), new.clone()], &store).await;
    assert!(matches!(unknown, Err(NodeError::DiskUnknown { .. })), "{unknown:?}");
    assert!(new.sim.disk().list("").await.unwrap().is_empty());
    start(&[one, two], &store).await.unwrap().capacity.shutdown().await;
}
