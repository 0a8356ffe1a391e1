//! Reclaim over the real index and the real capacity node, on a simulated disk that is killed in
//! between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::fakes::{ACCOUNT, CONTAINER, commit, delete, put, stage};
use crate::capacity::*;
use crate::coordinator::counter::EXTENT_IDS;
use crate::coordinator::{Coordinator, IdAllocator, SimulatedStore};
use crate::env::{Env, SeededRand, SimClock, SimDisk, Tasks};
use crate::index::check::CheckReport;
use crate::index::check::check;
use crate::index::*;
use crate::reclaim::service::PassState;
use crate::reclaim::{CoordinatorPartitions, Reclaim, ReclaimConfig, ReclaimMetrics, Setup};
use crate::types::*;

/// What outlives the process.
struct Machine {
    disk: SimDisk,
    coordinator: SimulatedStore,
}

/// One run of the program.
struct Process {
    env: Env,
    capacity: Arc<CapacityNode>,
    coordinator: Arc<dyn Coordinator>,
    ids: Arc<IdAllocator>,
    host: Arc<IndexServer>,
    reclaim: Arc<Reclaim>,
}

impl Machine {
    fn env() -> Env {
        Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        }
    }

    async fn capacity(&self, env: &Env) -> Arc<CapacityNode> {
        let config = CapacityConfig {
            catalog: CatalogPlace::Memory,
            scrub_bytes_per_second: 0,
            journal_bytes: 1 << 20,
            reserve_bytes: Some(1 << 20),
            ..CapacityConfig::default()
        };
        let disks = vec![self.disk.disk()];
        CapacityNode::open(disks, env.clone(), config, CapacityMetrics::default()).await.unwrap()
    }

    async fn start(&self) -> Process {
        let env = Self::env();
        let capacity = self.capacity(&env).await;
        let coordinator = Arc::new(self.coordinator.open(&env));
        let ids = IdAllocator::new(Arc::clone(&coordinator) as _, ClusterNumber::ALONE, EXTENT_IDS);
        let (ids, metrics) = (Arc::new(ids), Metrics::default());
        let deps = Dependencies {
            node: NodeId::new(0),
            env: env.clone(),
            capacity: Arc::clone(&capacity) as _,
            coordinator: Arc::clone(&coordinator) as _,
            cluster: ClusterNumber::ALONE,
            extent_ids: Arc::clone(&ids) as _,
            machine: Arc::new(Objects),
            leases: None,
            writers: None,
            metrics: metrics.clone(),
        };
        let border = |name| {
            RoutingKey::from_bytes(RoutingKey::prefix(ACCOUNT, CONTAINER, name, Collation::Utf16))
        };
        let borders = [border("c"), border("m")];
        let host = Arc::new(
            IndexServer::open_with(vec![deps], Config::default(), &borders).await.unwrap(),
        );
        let reclaim = Reclaim::new(Setup {
            node: NodeId::new(0),
            host: Arc::clone(&host) as _,
            partitions: Arc::new(CoordinatorPartitions(Arc::clone(&coordinator) as _)),
            capacity: Arc::clone(&capacity) as _,
            requests: LocalRequests::shared(InFlight::default(), Arc::clone(&env.clock)),
            coordinator: Arc::clone(&coordinator) as _,
            env: env.clone(),
            config: ReclaimConfig { audit_blobs: 2, ..ReclaimConfig::default() },
            metrics: ReclaimMetrics::default(),
            index: metrics,
        });
        Process { env, capacity, coordinator, ids, host, reclaim }
    }

    fn kill(&self) {
        drop(self.disk.restart_after_kill());
        self.coordinator.crash();
    }
}

impl Process {
    async fn write(&self, mut write: Write) {
        if let Write::PutBlob(put) = &mut write {
            put.crc64 = self.crc64(&put.content).await;
        }
        if let Write::StageBlock(stage) = &mut write {
            stage.crc64 = self.crc64(&stage.content).await;
        }
        let map = PartitionMap::load(self.coordinator.as_ref()).await.unwrap();
        let owner = map.owner(&write.routing_key()).unwrap();
        let target = Target::of(owner);
        self.host.write(target, write).await.unwrap();
    }

    async fn crc64(&self, content: &NewContent) -> Crc64 {
        let NewContent::Stored(locations) = content else { panic!("not stored") };
        let mut hasher = Crc64Hasher::default();
        for location in locations {
            for piece in self.capacity.read(location, 0..location.len.get()).await.unwrap() {
                hasher.update(&piece);
            }
        }
        hasher.finish()
    }

    /// Stores payloads of these lengths in a new extent, sealed afterwards.
    async fn store(&self, lens: &[usize]) -> Vec<Location> {
        let locations = self.store_open(lens).await;
        self.capacity.seal(locations[0].extent, Epoch::new(1)).await.unwrap();
        locations
    }

    /// Stores payloads of these lengths in a new extent that stays open.
    async fn store_open(&self, lens: &[usize]) -> Vec<Location> {
        let extent = self.ids.next_extent(ExtentKind::Data).await.unwrap();
        let epoch = Epoch::new(1);
        self.capacity.create(extent, ExtentKind::Data, epoch).await.unwrap();
        let mut locations = Vec::new();
        let mut offset = 0;
        for (n, len) in lens.iter().enumerate() {
            let byte = u8::try_from((n * 7 + len) % 251).unwrap();
            let request = AppendRequest {
                extent,
                epoch,
                offset: ExtentOffset::new(offset),
                payloads: vec![vec![Bytes::from(vec![byte; *len])]],
                durability: Durability::Durable,
            };
            let appended = self.capacity.append(request).await.unwrap();
            locations.extend(appended.locations);
            offset = appended.end.get();
        }
        locations
    }

    async fn readable(&self, location: &Location) -> bool {
        self.capacity.read(location, 0..location.len.get()).await.is_ok()
    }

    async fn freed(&self) -> BTreeMap<ExtentId, u64> {
        let extents = self.capacity.extents().await;
        let data = extents.into_iter().filter(|info| info.kind == ExtentKind::Data);
        data.map(|info| (info.extent, info.freed)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn audit_finds_again_what_was_freed_before_a_kill_and_what_was_never_committed() {
    let machine = Machine { disk: SimDisk::new(7, 1 << 30), coordinator: SimulatedStore::new() };
    let process = machine.start().await;
    // Small frames and page-aligned large ones, of several frames.
    let lens = [100, 5_000, 70_000, 1_500_000, 33_000, 200, 40_000, 900, 3_000_000];
    let first = process.store(&lens).await;
    let second = process.store(&lens).await;
    let whole = process.store(&[10_000]).await;
    let [deleted, staged, expired_never, orphan] = [first[0], first[3], first[4], first[8]];
    process.write(put("a", &[deleted])).await;
    process.write(put("b", &first[1..3])).await;
    process.write(stage("d", "1", &[staged])).await;
    process.write(stage("z", "1", &[expired_never])).await;
    process.write(put("p", &first[5..7])).await;
    process.write(put("q", &second[..4])).await;
    process.write(put("q", &second[4..7])).await;
    process.write(commit("d", &["1"])).await;
    process.write(put("w", &whole)).await;
    process.write(delete("a")).await;
    process.write(delete("w")).await;
    let live: Vec<Location> =
        [&first[1..3], &[staged, expired_never], &first[5..7], &second[4..7]].concat();

    process.env.clock.sleep(Duration::from_secs(3)).await;
    let mut state = PassState::default();
    assert!(process.reclaim.pass(&mut state).await);
    let report = process.reclaim.audit().await.unwrap();
    assert_eq!((report.orphaned, report.missing), (0, 0));
    for location in &live {
        assert!(process.readable(location).await, "{location:?}");
    }
    for location in [deleted, orphan, first[7], second[0], second[3], second[7], second[8]] {
        assert!(!process.readable(&location).await, "{location:?}");
    }
    let freed = process.freed().await;
    assert!(!freed.contains_key(&whole[0].extent), "an extent with nothing left goes");

    // Killed, and the catalog that remembered the frees is lost. A run that no record has appears.
    let left_over = process.ids.next_extent(ExtentKind::Data).await.unwrap();
    process.capacity.create(left_over, ExtentKind::Run, Epoch::new(1)).await.unwrap();
    machine.kill();
    let process = machine.start().await;
    let report = process.reclaim.audit().await.unwrap();
    assert_eq!((report.orphaned, report.missing), (1, 0));
    assert_eq!(process.freed().await, freed);
    for location in &live {
        assert!(process.readable(location).await, "{location:?}");
    }
    process.host.shutdown().await;
    process.capacity.shutdown().await;
    machine.kill();

    let env = Machine::env();
    let capacity = machine.capacity(&env).await;
    assert!(capacity.extents().await.iter().any(|info| info.extent == left_over));
    let map = PartitionMap::load(&machine.coordinator.open(&env)).await.unwrap();
    let mut report = CheckReport::default();
    for partition in map.partitions() {
        let rows = open_offline(Arc::clone(&capacity) as _, partition).await.unwrap();
        report.add(check(&rows, capacity.as_ref(), &mut |_| {}).await);
    }
    assert_eq!(report.problems, []);
    assert_eq!((report.blobs, report.staged_blocks, report.garbage_locations), (4, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn open_extent_with_much_garbage_is_sealed_and_gives_its_space_back() {
    let machine = Machine { disk: SimDisk::new(8, 1 << 30), coordinator: SimulatedStore::new() };
    let process = machine.start().await;
    let wasteful = process.store_open(&[3 << 20; 4]).await;
    let frugal = process.store_open(&[3 << 20; 4]).await;
    for (n, location) in wasteful.iter().chain(&frugal).enumerate() {
        process.write(put(&format!("{n}"), &[*location])).await;
    }
    for name in ["0", "1", "2", "4"] {
        process.write(delete(name)).await;
    }
    process.env.clock.sleep(Duration::from_secs(3)).await;
    assert!(process.reclaim.pass(&mut PassState::default()).await);
    let extents = process.capacity.extents().await;
    let state = |location: &Location| {
        extents.iter().find(|info| info.extent == location.extent).map(|info| info.state)
    };
    assert_eq!(state(&wasteful[0]), Some(ExtentState::Sealed), "9 MiB of 12 are garbage");
    assert_eq!(
        state(&frugal[0]),
        Some(ExtentState::Open),
        "3 MiB are below what is worth a new file"
    );
    for location in [&wasteful[3], &frugal[1], &frugal[2], &frugal[3]] {
        assert!(process.readable(location).await);
    }
}

#[tokio::test(start_paused = true)]
async fn audit_leaves_logs_whose_first_page_is_damaged() {
    let machine = Machine { disk: SimDisk::new(9, 1 << 30), coordinator: SimulatedStore::new() };
    let process = machine.start().await;
    let stored = process.store(&[10_000]).await;
    process.write(put("a", &stored)).await;
    let map = PartitionMap::load(process.coordinator.as_ref()).await.unwrap();
    let logs: Vec<ExtentId> = map.partitions().iter().flat_map(|p| p.log.clone()).collect();
    assert!(!logs.is_empty());
    machine.kill();
    for log in &logs {
        let id = log.get();
        assert!(machine.disk.flip(&format!("extents/{:02x}/{id:016x}.x", id & 0xff), 9));
    }
    let process = machine.start().await;
    process.reclaim.audit().await.unwrap();
    let extents = process.capacity.extents().await;
    for log in &logs {
        let found = extents.iter().find(|info| info.extent == *log);
        assert_eq!(found.map(|info| (info.kind, info.freed)), Some((ExtentKind::Data, 0)), "{log}");
    }
    machine.kill();
    let process = machine.start().await;
    process.write(delete("a")).await;
}
