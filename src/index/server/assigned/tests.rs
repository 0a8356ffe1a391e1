use std::time::Duration;

use super::*;
use crate::coordinator::Op;
use crate::index::api::IndexHost;
use crate::index::api::Read;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::engine::Dependencies;
use crate::index::engine::testing::World;
use crate::index::map::PartitionMap;
use crate::index::server::create_map;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ClusterNumber;
use crate::types::HostId;
use crate::types::NodeId;
use crate::types::RoutingKey;

/// A process that serves partitions.
struct Process {
    deps: Dependencies,
    server: Arc<IndexServer>,
}

fn host(node: u64) -> HostId {
    HostId::of(NodeId::new(node), 0)
}

impl Process {
    async fn start(world: &World, common: &Dependencies, node: u64) -> Self {
        let (node, machine) = (NodeId::new(node), Arc::new(crate::index::Objects));
        let deps = Dependencies { node, machine, ..common.clone() };
        let server = IndexServer::open(vec![deps.clone()], world.config).await.unwrap();
        let server = Arc::new(server);
        let map = Arc::new(FollowedMap::start(&*deps.coordinator).await.unwrap());
        let (following, of) = (Arc::clone(&map), deps.clone());
        let follow = async move { following.follow(&*of.coordinator, &*of.env.clock).await };
        drop(deps.env.tasks.spawn("follow", follow));
        server.follow_map(map);
        Self { deps, server }
    }

    async fn serves(&self, count: usize) {
        for _ in 0..1_000 {
            if self.server.partitions() == count {
                return;
            }
            self.deps.env.clock.sleep(Duration::from_millis(10)).await;
        }
        panic!("{} partitions instead of {count}", self.server.partitions());
    }

    async fn map(&self) -> PartitionMap {
        PartitionMap::load(&*self.deps.coordinator).await.unwrap()
    }
}

fn name(number: u64) -> AccountName {
    AccountName::new(&format!("acc{number:05}")).unwrap()
}

/// Two processes, and a map of one partition at the first.
async fn two() -> (Process, Process) {
    let world = World::empty();
    // They have one coordinator.
    let common = world.deps();
    let one = Process::start(&world, &common, 1).await;
    let two = Process::start(&world, &common, 2).await;
    let coordinator = Arc::clone(&one.deps.coordinator);
    create_map(&*coordinator, ClusterNumber::ALONE, (&[host(1)], 1)).await.unwrap();
    one.serves(1).await;
    (one, two)
}

async fn write(at: &Process, number: u64) {
    let map = at.map().await;
    let target = Target::of(map.owner(RoutingKey::account(&name(number)).as_bytes()).unwrap());
    let write =
        Write::CreateAccount { name: name(number), id: AccountId::new(number), anonymous: false };
    at.server.write(target, write).await.unwrap();
}

async fn read(at: &Process, number: u64) {
    let map = at.map().await;
    let target = Target::of(map.owner(RoutingKey::account(&name(number)).as_bytes()).unwrap());
    at.server.read(target, Read::Account(name(number))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn partition_is_given_to_another_process_and_back() {
    let (one, two) = two().await;
    for (number, (from, to, node)) in (0..).zip([(&one, &two, 2), (&two, &one, 1)]) {
        write(from, number).await;
        let id = from.map().await.partitions()[0].id;
        from.server.move_to(id, host(node)).await.unwrap();
        assert_eq!(from.server.partitions(), 0);
        to.serves(1).await;
        read(to, number).await;
        write(to, number + 100).await;
    }
    one.server.shutdown().await;
    two.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn partition_that_the_map_gives_to_another_process_is_left() {
    let (one, two) = two().await;
    write(&one, 1).await;
    let mut taken = one.map().await.partitions()[0].clone();
    taken.host = host(2);
    let put = Op::Put(PartitionDescriptor::coordinator_key(taken.id), taken.encode());
    one.deps.coordinator.txn(&[], &[put]).await.unwrap();
    two.serves(1).await;
    one.serves(0).await;
    read(&two, 1).await;
    // It does not take it back.
    let context = &one.server.hosts[0].context;
    let again = Partition::open(context, taken.id).await;
    assert!(matches!(again, Err(crate::index::Error::WrongPartition)));
    assert_eq!(two.map().await.partitions()[0].epoch, taken.epoch.next());
    one.server.shutdown().await;
    two.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn children_of_a_split_are_not_opened_twice() {
    let (one, two) = two().await;
    write(&one, 1).await;
    let id = one.map().await.partitions()[0].id;
    one.server.split(id, &[RoutingKey::account(&name(500))]).await.unwrap();
    let before = one.map().await;
    one.deps.env.clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(one.map().await.partitions(), before.partitions());
    assert_eq!(one.server.partitions(), 2);
    let [low, high] = [0, 1].map(|at| before.partitions()[at].id);
    one.server.move_to(high, host(2)).await.unwrap();
    two.serves(1).await;
    write(&two, 700).await;
    // Its neighbour is elsewhere.
    assert!(one.server.merge(&[low, high]).await.is_err());
    two.server.move_to(high, host(1)).await.unwrap();
    one.serves(2).await;
    one.server.merge(&[low, high]).await.unwrap();
    read(&one, 700).await;
    one.serves(1).await;
    one.server.shutdown().await;
    two.server.shutdown().await;
}
