use std::sync::Mutex;

use super::*;
use crate::coordinator::SimulatedStore;
use crate::coordinator::claim::Holder;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::types::Incarnation;

/// A process is gone when it is named here, and moves are written to the map.
#[derive(Debug)]
struct World {
    env: Env,
    coordinator: Arc<dyn Coordinator>,
    gone: Mutex<BTreeSet<NodeId>>,
    drained: Mutex<BTreeSet<NodeId>>,
    /// Those that open nothing.
    closed: Mutex<BTreeSet<NodeId>>,
    /// Whether these say that files are damaged.
    damaged: Mutex<bool>,
    /// Those with as many requests as a hot partition.
    busy: Mutex<BTreeSet<PartitionId>>,
}

#[derive(Debug)]
struct Of(Arc<World>);

#[async_trait]
impl WatchHolder for Of {
    async fn gone(&self, holder: Holder) {
        while !self.0.gone.lock().unwrap().contains(&holder.node) {
            self.0.env.clock.sleep(Duration::from_millis(100)).await;
        }
    }
}

#[async_trait]
impl MovesPartitions for Of {
    fn takes(&self, node: NodeId) -> bool {
        !self.0.drained.lock().unwrap().contains(&node)
    }

    async fn asked(&self, target: Target) -> Result<(), index::Error> {
        if !self.0.closed.lock().unwrap().contains(&target.host.node()) {
            return Ok(());
        }
        let damaged = index::Damage::Quarantined(target.partition);
        Err(if *self.0.damaged.lock().unwrap() {
            damaged.into()
        } else {
            index::Error::WrongPartition
        })
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), index::Error> {
        let key = PartitionDescriptor::coordinator_key(target.partition);
        let found = self.0.coordinator.get(&key).await.unwrap().unwrap();
        let mut descriptor = PartitionDescriptor::decode(&found.value).unwrap();
        assert_eq!(descriptor.host, target.host);
        descriptor.host = to;
        descriptor.epoch = descriptor.epoch.next();
        self.0.coordinator.txn(&[], &[Op::Put(key, descriptor.encode())]).await.unwrap();
        Ok(())
    }

    async fn counts(&self) -> Vec<PartitionCounts> {
        let (map, busy) = (self.0.map().await, self.0.busy.lock().unwrap());
        let seconds = self.0.env.clock.monotonic().as_secs();
        let of = |one: PartitionDescriptor| PartitionCounts {
            id: one.id,
            host: one.host,
            range: one.keys.range().clone(),
            stripe: None,
            requests: if busy.contains(&one.id) { seconds * 5_000 } else { 0 },
            cpu: Duration::ZERO,
        };
        map.into_iter().map(of).collect()
    }
}

impl World {
    fn new() -> Arc<Self> {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let coordinator = Arc::new(SimulatedStore::new().open(&env));
        let (gone, drained, closed, damaged, busy) = Default::default();
        Arc::new(Self { env, coordinator, gone, drained, closed, damaged, busy })
    }

    /// Starts a manager.
    async fn manage(self: &Arc<Self>, initial_partitions: u64) -> tokio::task::JoinHandle<()> {
        let coordinator = Arc::clone(&self.coordinator);
        let map = Arc::new(FollowedMap::start(&*coordinator).await.unwrap());
        let claims = Arc::new(HostClaims::start(&*coordinator).await.unwrap());
        let manager = HostManager {
            coordinator,
            cluster: ClusterNumber::new(5),
            initial_partitions,
            map: Arc::clone(&map),
            claims: Arc::clone(&claims),
            watch: Arc::new(Of(Arc::clone(self))),
            moves: Arc::new(Of(Arc::clone(self))),
            policy: Some(PolicyConfig::default()),
            audit_log: AuditLog::default(),
            clock: Arc::clone(&self.env.clock),
        };
        let world = Arc::clone(self);
        self.env.tasks.spawn("manager", async move {
            let (of, clock) = (&*world.coordinator, &*world.env.clock);
            tokio::select! {
                biased;
                () = map.follow(of, clock) => {}
                () = claims.follow(of, clock) => {}
                () = manager.run() => {}
            }
        })
    }

    async fn claim(&self, node: u64) {
        let node = NodeId::new(node);
        let holder = Holder { node, incarnation: Incarnation::new(1) };
        let put = Op::Put(host_claim(node), holder.encode());
        self.coordinator.txn(&[], &[put]).await.unwrap();
    }

    async fn release(&self, node: u64) {
        let delete = Op::Delete(host_claim(NodeId::new(node)));
        self.coordinator.txn(&[], &[delete]).await.unwrap();
    }

    async fn has_claim(&self, node: u64) -> bool {
        self.coordinator.get(&host_claim(NodeId::new(node))).await.unwrap().is_some()
    }

    async fn sleep(&self, millis: u64) {
        self.env.clock.sleep(Duration::from_millis(millis)).await;
    }

    /// How many partitions each of these nodes has; the last number is of all others.
    async fn counts<const N: usize>(&self, nodes: [u64; N]) -> ([usize; N], usize) {
        let map = self.map().await;
        let of = |node: u64| map.iter().filter(|one| one.host.node().get() == node).count();
        let counts = nodes.map(of);
        (counts, map.len() - counts.iter().sum::<usize>())
    }

    async fn map(&self) -> Vec<PartitionDescriptor> {
        let map = FollowedMap::start(&*self.coordinator).await.unwrap();
        map.all(|_| true).into_iter().map(|found| found.descriptor).collect()
    }

    /// How many busy partitions each of these nodes has.
    async fn busy_at<const N: usize>(&self, nodes: [u64; N]) -> [usize; N] {
        let (map, busy) = (self.map().await, self.busy.lock().unwrap());
        let busy: Vec<_> = map.iter().filter(|one| busy.contains(&one.id)).collect();
        nodes.map(|node| busy.iter().filter(|one| one.host.node().get() == node).count())
    }
}

#[tokio::test(start_paused = true)]
async fn new_cluster_gets_a_map_when_a_process_takes_partitions() {
    let world = World::new();
    drop(world.manage(6).await);
    world.sleep(5_000).await;
    assert_eq!(world.counts([]).await, ([], 0));
    world.claim(1).await;
    world.sleep(100).await;
    assert_eq!(world.counts([1]).await, ([6], 0));
    // Others get some of them.
    world.claim(2).await;
    world.claim(3).await;
    world.sleep(20_000).await;
    assert_eq!(world.counts([1, 2, 3]).await, ([2, 2, 2], 0));
    world.drained.lock().unwrap().insert(NodeId::new(2));
    world.sleep(60_000).await;
    assert_eq!(world.counts([1, 2, 3]).await, ([3, 0, 3], 0));
}

#[tokio::test(start_paused = true)]
async fn partitions_of_a_process_that_is_gone_go_to_others_at_once() {
    let world = World::new();
    world.claim(1).await;
    world.claim(2).await;
    drop(world.manage(6).await);
    world.sleep(5_000).await;
    assert_eq!(world.counts([1, 2]).await, ([3, 3], 0));
    world.gone.lock().unwrap().insert(NodeId::new(1));
    world.sleep(500).await;
    assert!(!world.has_claim(1).await, "it changes no descriptor any more");
    assert_eq!(world.counts([1, 2]).await, ([0, 6], 0));
    // It was not gone. Its claim is not removed again and again.
    world.claim(1).await;
    world.sleep(5_000).await;
    assert!(world.has_claim(1).await);
    world.gone.lock().unwrap().clear();
    world.sleep(60_000).await;
    assert_eq!(world.counts([1, 2]).await, ([3, 3], 0));
    world.release(2).await;
    world.sleep(100).await;
    assert_eq!(world.counts([1, 2]).await, ([6, 0], 0));
}

#[tokio::test(start_paused = true)]
async fn process_that_does_not_open_what_it_gets_loses_it_again() {
    let world = World::new();
    world.claim(1).await;
    drop(world.manage(6).await);
    world.sleep(1_000).await;
    world.closed.lock().unwrap().insert(NodeId::new(2));
    world.claim(2).await;
    world.sleep(5_000).await;
    assert_eq!(world.counts([1, 2]).await, ([5, 1], 0), "one is tried");
    world.sleep(10_000).await;
    assert_eq!(world.counts([1, 2]).await, ([6, 0], 0));
    world.sleep(30_000).await;
    assert_eq!(world.counts([1, 2]).await, ([6, 0], 0));
    world.closed.lock().unwrap().clear();
    world.sleep(120_000).await;
    assert_eq!(world.counts([1, 2]).await, ([3, 3], 0));
}

#[tokio::test(start_paused = true)]
async fn load_is_shared_out_and_stays_where_it_is_then() {
    let world = World::new();
    world.claim(1).await;
    world.claim(2).await;
    drop(world.manage(8).await);
    world.sleep(5_000).await;
    let first = world.map().await.into_iter().filter(|one| one.host.node().get() == 1);
    world.busy.lock().unwrap().extend(first.map(|one| one.id));
    assert_eq!((world.busy_at([1, 2]).await, world.counts([1, 2]).await.0), ([4, 0], [4, 4]));
    world.sleep(60_000).await;
    assert_eq!((world.busy_at([1, 2]).await, world.counts([1, 2]).await.0), ([2, 2], [4, 4]));
    let map = world.map().await;
    world.sleep(300_000).await;
    assert_eq!(world.map().await, map);
}

#[tokio::test(start_paused = true)]
async fn partition_that_an_operator_moves_stays_for_a_moment() {
    let world = World::new();
    world.claim(1).await;
    world.claim(2).await;
    drop(world.manage(4).await);
    world.sleep(5_000).await;
    let mine: Vec<_> =
        world.map().await.into_iter().filter(|one| one.host.node().get() == 1).collect();
    for one in &mine {
        Of(Arc::clone(&world)).give(Target::of(one), HostId::of(NodeId::new(2), 0)).await.unwrap();
    }
    // Two others are there that could go.
    world.sleep(10_000).await;
    assert_eq!(world.counts([1, 2]).await, ([2, 2], 0));
    let now = world.map().await;
    assert!(mine.iter().all(|one| now.iter().any(|now| now.id == one.id && now.host != one.host)));
}

#[tokio::test(start_paused = true)]
async fn partition_that_an_operator_moves_to_a_process_that_does_not_open_it_comes_back() {
    let world = World::new();
    world.claim(1).await;
    world.claim(2).await;
    drop(world.manage(4).await);
    world.sleep(5_000).await;
    world.closed.lock().unwrap().insert(NodeId::new(2));
    let one = world.map().await.into_iter().find(|one| one.host.node().get() == 1).unwrap();
    Of(Arc::clone(&world)).give(Target::of(&one), HostId::of(NodeId::new(2), 0)).await.unwrap();
    world.sleep(5_000).await;
    assert_eq!(world.counts([1, 2]).await, ([1, 3], 0));
    world.sleep(10_000).await;
    let now = world.map().await.into_iter().find(|now| now.id == one.id).unwrap();
    assert_eq!(now.host.node().get(), 1);
}

/// It may be that it does not reach them.
#[tokio::test(start_paused = true)]
async fn process_that_finds_files_damaged_is_believed_once_another_one_says_so_too() {
    let world = World::new();
    world.claim(1).await;
    drop(world.manage(6).await);
    world.sleep(1_000).await;
    *world.damaged.lock().unwrap() = true;
    world.closed.lock().unwrap().insert(NodeId::new(2));
    world.claim(2).await;
    world.sleep(5_000).await;
    assert_eq!(world.counts([1, 2]).await, ([5, 1], 0));
    world.sleep(10_000).await;
    assert_eq!(world.counts([1, 2]).await, ([6, 0], 0), "another one opens it");
    world.closed.lock().unwrap().insert(NodeId::new(3));
    world.claim(3).await;
    world.sleep(5_000).await;
    assert_eq!(world.counts([1, 2, 3]).await, ([5, 0, 1], 0));
    world.closed.lock().unwrap().insert(NodeId::new(1));
    world.sleep(300_000).await;
    let counts = world.counts([1, 2, 3]).await.0;
    assert_eq!(counts.iter().sum::<usize>(), 6, "{counts:?}");
}

/// Perhaps its files are damaged. Others go on.
#[tokio::test(start_paused = true)]
async fn partition_that_two_processes_do_not_open_stays_and_holds_nothing_up() {
    let world = World::new();
    world.claim(1).await;
    drop(world.manage(6).await);
    world.sleep(1_000).await;
    world.closed.lock().unwrap().extend([2, 3].map(NodeId::new));
    world.claim(2).await;
    world.claim(3).await;
    world.sleep(15_000).await;
    assert_eq!(world.counts([1, 2, 3]).await, ([5, 0, 1], 0), "the second one has it");
    world.closed.lock().unwrap().clear();
    world.sleep(120_000).await;
    assert_eq!(world.counts([1, 2, 3]).await, ([2, 2, 2], 0));
}

#[tokio::test(start_paused = true)]
async fn manager_that_reaches_nobody_does_not_end_all_others_at_once() {
    let world = World::new();
    for node in [1, 2, 3] {
        world.claim(node).await;
    }
    drop(world.manage(6).await);
    world.sleep(1_000).await;
    let others = [2, 3].map(NodeId::new);
    world.gone.lock().unwrap().extend(others);
    world.sleep(2_000).await;
    let have = [world.has_claim(2).await, world.has_claim(3).await];
    assert_eq!(have.into_iter().filter(|has| *has).count(), 1);
    world.sleep(3_000).await;
    assert_eq!([world.has_claim(2).await, world.has_claim(3).await], [false; 2]);
}

#[tokio::test(start_paused = true)]
async fn new_manager_waits_a_moment_for_processes_that_may_return() {
    let world = World::new();
    world.claim(1).await;
    world.claim(2).await;
    let first = world.manage(6).await;
    world.sleep(5_000).await;
    first.abort();
    // All lost their power. The second comes back first.
    world.release(1).await;
    world.release(2).await;
    world.claim(2).await;
    drop(world.manage(6).await);
    world.sleep(2_500).await;
    assert_eq!(world.counts([1, 2]).await, ([3, 3], 0));
    world.claim(1).await;
    world.sleep(10_000).await;
    assert_eq!(world.counts([1, 2]).await, ([3, 3], 0));
    world.release(1).await;
    world.sleep(100).await;
    assert_eq!(world.counts([1, 2]).await, ([0, 6], 0), "this one has seen it end");
}
