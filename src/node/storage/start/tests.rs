use std::path::PathBuf;
use std::time::Duration;

use crate::capacity;
use crate::capacity::AppendRequest;
use crate::capacity::CatalogPlace;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::capacity::OpenError;
use crate::capacity::SimulatedCatalog;
use crate::coordinator::SimulatedStore;
use crate::coordinator::cluster::ClusterRecord;
use crate::env::DiskError;
use crate::env::Faults;
use crate::env::SeededRand;
use crate::env::SimDisk;
use crate::env::Tasks;
use crate::env::UnusableDisk;
use crate::env::clock::SimClock;
use crate::node::testing::SimulatedPlace;
use crate::telemetry::CapturedLog;
use crate::types::ClusterNumber;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::NodeId;

use super::*;

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
    start_without(disks, &[], store).await
}

async fn start_without(
    disks: &[Mounted],
    without: &[PathBuf],
    store: &SimulatedStore,
) -> Result<Storage, NodeError> {
    let given = Given { data: &paths(disks), add: &[], without };
    start_with(disks, opened(disks), given, store).await
}

fn opened(disks: &[Mounted]) -> Vec<Arc<dyn Disk>> {
    disks.iter().map(|disk| disk.sim.disk()).collect()
}

fn paths(disks: &[Mounted]) -> Vec<PathBuf> {
    disks.iter().map(|disk| disk.path.clone()).collect()
}

async fn start_with(
    disks: &[Mounted],
    opened: Vec<Arc<dyn Disk>>,
    given: Given<'_>,
    store: &SimulatedStore,
) -> Result<Storage, NodeError> {
    start_owned(disks, opened, (given, Owner::Alone), store).await
}

async fn start_owned(
    disks: &[Mounted],
    opened: Vec<Arc<dyn Disk>>,
    (given, owner): (Given<'_>, Owner),
    store: &SimulatedStore,
) -> Result<Storage, NodeError> {
    let env = env();
    let catalogs = disks.iter().map(|disk| disk.catalog.clone()).collect();
    let start = Start {
        given,
        disks: opened,
        env: env.clone(),
        config: CapacityConfig {
            catalog: CatalogPlace::Simulated(catalogs),
            ..CapacityConfig::small()
        },
        metrics: CapacityMetrics::default(),
        owner,
    };
    start.open(&SimulatedPlace(store.clone(), env)).await
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
    let known = list::read(storage.coordinator.as_ref()).await.unwrap();
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

fn cluster(id: u128) -> ClusterRecord {
    ClusterRecord { number: ClusterNumber::new(7), id, generation: 1, copies: 3 }
}

async fn start_as(
    owner: Owner,
    disks: &[Mounted],
    store: &SimulatedStore,
) -> Result<(), NodeError> {
    let given = Given { data: &paths(disks), add: &[], without: &[] };
    let storage = start_owned(disks, opened(disks), (given, owner), store).await?;
    storage.capacity.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn store_belongs_to_a_node_alone_or_to_one_cluster_for_ever() {
    let [ours, other] = [1, 2].map(|id| Owner::Cluster(cluster(id)));
    let alone = [mounted(1), mounted(2)];
    let store = store_of(&alone).await;
    let refused = start_as(ours, &alone, &store).await;
    assert!(matches!(refused, Err(NodeError::OfSingleNode { .. })), "{refused:?}");
    start_as(Owner::Alone, &alone, &store).await.unwrap();

    let (disks, store) = ([mounted(3)], SimulatedStore::new());
    start_as(ours, &disks, &store).await.unwrap();
    start_as(ours, &disks, &store).await.unwrap();
    let refused = start_as(Owner::Alone, &disks, &store).await;
    assert!(matches!(refused, Err(NodeError::OfCluster { .. })), "{refused:?}");
    let refused = start_as(other, &disks, &store).await;
    assert!(matches!(refused, Err(NodeError::OfOtherCluster { .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn node_of_a_cluster_keeps_its_id() {
    let (disks, store, record) = ([mounted(1)], SimulatedStore::new(), cluster(1));
    start_as(Owner::Cluster(record), &disks, &store).await.unwrap();
    let own = store.open(&env());
    assert_eq!(owner::node_of(&own).await.unwrap(), None);
    owner::set_node(&own, &record, NodeId::new(9)).await.unwrap();
    start_as(Owner::Cluster(record), &disks, &store).await.unwrap();
    assert_eq!(owner::node_of(&store.open(&env())).await.unwrap(), Some(NodeId::new(9)));
}

/// Every read fails.
const UNREADABLE: Faults =
    Faults { read_error: 1_000_000, write_error: 0, sync_error: 0, sync_lie: 0, full: 0 };

/// The bytes of every extent of [`extents_of`].
const BYTES: u64 = 9_000;

/// Makes a store of two disks, and sealed extents until each disk has two. Returns where their
/// bytes are, by disk.
async fn extents_of(disks: &[Mounted; 2]) -> (SimulatedStore, [Vec<Location>; 2]) {
    let store = store_of(disks).await;
    let storage = start(disks, &store).await.unwrap();
    let capacity = &storage.capacity;
    let mut stored = [Vec::new(), Vec::new()];
    for id in 2.. {
        let (extent, epoch) = (ExtentId::new(id), Epoch::new(1));
        capacity.create(extent, ExtentKind::Data, epoch).await.unwrap();
        let payloads = vec![vec![vec![7; 9_000].into()]];
        let durability = Durability::Durable;
        let request =
            AppendRequest { extent, epoch, offset: ExtentOffset::START, payloads, durability };
        let location = capacity.append(request).await.unwrap().locations[0];
        capacity.seal(extent, epoch).await.unwrap();
        let all = capacity.extents().await;
        let place = all.iter().find(|info| info.extent == extent).unwrap().disk;
        stored[place].push(location);
        if stored.iter().all(|locations| locations.len() >= 2) {
            break;
        }
    }
    capacity.shutdown().await;
    (store, stored)
}

/// The first disk serves and the second one is out of service: nothing goes there, and nothing
/// there counts as freed or removed.
async fn only_the_first_serves(storage: &Storage, [first, second]: &[Vec<Location>; 2]) {
    let capacity = &storage.capacity;
    for location in first {
        let read = capacity.read(location, 0..BYTES).await.unwrap();
        assert_eq!(read.concat(), vec![7; 9_000]);
    }
    for location in second {
        let read = capacity.read(location, 0..BYTES).await;
        assert!(matches!(read, Err(capacity::Error::OutOfService { .. })), "{read:?}");
        let freed = capacity.free(std::slice::from_ref(location)).await;
        assert!(matches!(freed, Err(capacity::Error::OutOfService { .. })), "{freed:?}");
        capacity.remove(location.extent).await.unwrap_err();
    }
    assert!(!capacity.is_whole());
    assert_eq!(capacity.disks().iter().map(|info| info.number).collect::<Vec<_>>(), [0]);
    for id in 100..104 {
        let (extent, kind) = (ExtentId::new(id), ExtentKind::Log);
        capacity.create(extent, kind, Epoch::new(1)).await.unwrap();
    }
    assert!(capacity.extents().await.iter().all(|info| info.disk == 0));
}

async fn both_serve(storage: &Storage, stored: &[Vec<Location>; 2]) {
    for location in stored.iter().flatten() {
        let read = storage.capacity.read(location, 0..BYTES).await.unwrap();
        assert_eq!(read.concat(), vec![7; 9_000]);
    }
    assert!(storage.capacity.is_whole());
}

/// A disk that is not read is neither a new one nor a reason not to start.
#[tokio::test(start_paused = true)]
async fn a_disk_whose_format_cannot_be_read_is_out_of_service() {
    let disks = [mounted(1), mounted(2)];
    let (store, stored) = extents_of(&disks).await;
    let before = disks[1].sim.operations();
    disks[1].sim.set_faults(UNREADABLE);
    let log = CapturedLog::default();
    {
        let _kept = log.begin();
        let storage = start(&disks, &store).await.unwrap();
        only_the_first_serves(&storage, &stored).await;
        let listed = [("/disks/1".to_owned(), Some(0)), ("/disks/2".to_owned(), Some(1))];
        assert_eq!(known(&storage).await, listed, "its number stays its own");
        storage.capacity.shutdown().await;
    }
    assert_eq!(log.lines_with(&["ERROR", "/disks/2", "out of service"]), 1, "{}", log.text());
    assert!(disks[1].sim.operations() > before, "it was looked at");
    disks[1].sim.set_faults(Faults::default());
    let storage = start(&disks, &store).await.unwrap();
    both_serve(&storage, &stored).await;
    storage.capacity.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_cannot_be_opened_is_out_of_service() {
    let disks = [mounted(1), mounted(2)];
    let (store, stored) = extents_of(&disks).await;
    let error =
        DiskError::Io { action: "open", path: "lock".into(), kind: std::io::ErrorKind::Other };
    let opened: Vec<Arc<dyn Disk>> = vec![disks[0].sim.disk(), Arc::new(UnusableDisk(error))];
    let given = Given { data: &paths(&disks), add: &[], without: &[] };
    let storage = start_with(&disks, opened, given, &store).await.unwrap();
    only_the_first_serves(&storage, &stored).await;
    storage.capacity.shutdown().await;
    let storage = start(&disks, &store).await.unwrap();
    both_serve(&storage, &stored).await;
    storage.capacity.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_whose_format_is_damaged_is_out_of_service() {
    let disks = [mounted(1), mounted(2)];
    let (store, stored) = extents_of(&disks).await;
    assert!(disks[1].sim.flip("format", 0));
    let storage = start(&disks, &store).await.unwrap();
    only_the_first_serves(&storage, &stored).await;
    storage.capacity.shutdown().await;
}

/// What the `format` file of a disk says.
async fn format_of(disk: &Mounted) -> String {
    let file = disk.sim.disk().open("format").await.unwrap();
    String::from_utf8(file.read_at(0, 4096).await.unwrap().to_vec()).unwrap()
}

/// As the release before wrote it: the store of a disk that it made.
async fn become_format_1(disk: &Mounted) {
    let now = format_of(disk).await;
    let before = now.replace(r#""format":5"#, r#""format":1"#);
    assert_ne!(before, now);
    let files = disk.sim.disk();
    files.remove("format").await.unwrap();
    let file = files.create("format").await.unwrap();
    file.write_sync(0, vec![before.into()]).await.unwrap();
    files.sync_dir("").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_of_the_release_before_is_raised_when_it_is_served_and_not_when_it_is_looked_at() {
    let disks = [mounted(1), mounted(2)];
    let (store, stored) = extents_of(&disks).await;
    become_format_1(&disks[0]).await;
    become_format_1(&disks[1]).await;
    let looked_at = CapacityConfig { keeps_format: true, ..CapacityConfig::small() };
    let files = disks.iter().map(|disk| disk.sim.disk()).collect();
    let node = CapacityNode::open(files, env(), looked_at, CapacityMetrics::default()).await;
    node.unwrap().shutdown().await;
    for disk in &disks {
        assert!(format_of(disk).await.contains(r#""format":1"#));
    }
    let storage = start(&disks, &store).await.unwrap();
    both_serve(&storage, &stored).await;
    storage.capacity.shutdown().await;
    for disk in &disks {
        assert!(format_of(disk).await.contains(r#""format":5"#), "a release before refuses it");
    }
    let storage = start(&disks, &store).await.unwrap();
    both_serve(&storage, &stored).await;
    storage.capacity.shutdown().await;
}

/// A crash between two disks leaves them with different formats.
#[tokio::test(start_paused = true)]
async fn a_store_that_was_raised_in_part_starts() {
    let disks = [mounted(1), mounted(2)];
    let (store, stored) = extents_of(&disks).await;
    become_format_1(&disks[1]).await;
    let storage = start(&disks, &store).await.unwrap();
    both_serve(&storage, &stored).await;
    storage.capacity.shutdown().await;
    assert!(format_of(&disks[1]).await.contains(r#""format":5"#));
}

/// What recovery gives back, or an operator, makes room for the new format while it is waited for.
#[tokio::test(start_paused = true)]
async fn a_full_disk_of_the_release_before_is_raised_when_there_is_room() {
    let disks = [mounted(1), mounted(2)];
    let (store, stored) = extents_of(&disks).await;
    become_format_1(&disks[1]).await;
    disks[1].sim.set_capacity(0);
    let room = async {
        env().clock.sleep(Duration::from_millis(300)).await;
        disks[1].sim.set_capacity(64 << 20);
    };
    let (storage, ()) = tokio::join!(start(&disks, &store), room);
    let storage = storage.unwrap();
    both_serve(&storage, &stored).await;
    storage.capacity.shutdown().await;
    assert!(format_of(&disks[1]).await.contains(r#""format":5"#));
}

/// A new disk that is added meanwhile gets a number of its own.
#[tokio::test(start_paused = true)]
async fn the_number_of_an_unreadable_disk_is_not_given_again() {
    let [one, two, new] = [mounted(1), mounted(2), mounted(3)];
    let (store, _) = extents_of(&[one.clone(), two.clone()]).await;
    two.sim.set_faults(UNREADABLE);
    let disks = [one, two, new];
    let added = [disks[2].path.clone()];
    let given = Given { data: &paths(&disks), add: &added, without: &[] };
    let storage = start_with(&disks, opened(&disks), given, &store).await.unwrap();
    let numbers: Vec<_> = known(&storage).await.into_iter().map(|(_, number)| number).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
    storage.capacity.shutdown().await;
    disks[1].sim.set_faults(Faults::default());
    let storage = start(&disks, &store).await.unwrap();
    assert_eq!(storage.capacity.disks().len(), 3);
    storage.capacity.shutdown().await;
}

/// Without the list nothing shows that it is a disk of the store.
#[tokio::test(start_paused = true)]
async fn an_unreadable_disk_that_is_not_in_the_list_is_refused_by_name() {
    let [one, two, other] = [mounted(1), mounted(2), mounted(3)];
    let store = store_of(&[one.clone(), two.clone()]).await;
    store_of(&[other.clone(), mounted(4)]).await;
    other.sim.set_faults(UNREADABLE);
    let refused = start(&[one.clone(), two.clone(), other.clone()], &store).await;
    match refused {
        Err(NodeError::Capacity { path, error: OpenError::Disk { disk: 2, .. } }) => {
            assert_eq!(path, "/disks/3");
        }
        other => panic!("{other:?}"),
    }
    // In the place of a disk that is given elsewhere: its number is not taken twice.
    let turned = [one, Mounted { path: PathBuf::from("/disks/9"), ..two.clone() }];
    let there = Mounted { path: two.path.clone(), ..other };
    let refused = start(&[turned[0].clone(), turned[1].clone(), there], &store).await;
    assert!(matches!(refused, Err(NodeError::Capacity { .. })), "{refused:?}");
    start(&turned, &store).await.unwrap().capacity.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_first_disk_is_refused_with_what_to_do() {
    let disks = [mounted(1), mounted(2)];
    let store = store_of(&disks).await;
    disks[0].sim.set_faults(UNREADABLE);
    let text = start(&disks, &store).await.unwrap_err().to_string();
    assert!(text.contains("/disks/1") && text.contains("the first disk"), "{text}");
    assert!(text.contains("repair it"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_disk_leaves_its_data_as_they_are() {
    let disks = [mounted(1), mounted(2)];
    let (store, stored) = extents_of(&disks).await;
    let here = &disks[..1];
    let missing = start(here, &store).await.unwrap_err().to_string();
    assert!(missing.contains("/disks/2") && missing.contains("--without-disk"), "{missing}");
    let without = [disks[1].path.clone()];
    let storage = start_without(here, &without, &store).await.unwrap();
    only_the_first_serves(&storage, &stored).await;
    let listed = [("/disks/1".to_owned(), Some(0)), ("/disks/2".to_owned(), Some(1))];
    assert_eq!(known(&storage).await, listed);
    storage.capacity.shutdown().await;
    // The permission was for that start.
    let missing = start(here, &store).await;
    assert!(matches!(missing, Err(NodeError::DiskMissing { .. })), "{missing:?}");
    let unknown = start_without(here, &[PathBuf::from("/disks/7")], &store).await;
    assert!(matches!(unknown, Err(NodeError::DiskNotKnown { .. })), "{unknown:?}");
    let storage = start(&disks, &store).await.unwrap();
    both_serve(&storage, &stored).await;
    storage.capacity.shutdown().await;
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
