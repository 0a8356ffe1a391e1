mod panics;
mod rest;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::index::ExtentRecord;
use crate::index::api::Damage;
use crate::index::api::PartitionStatus;
use crate::index::api::ReadReply;
use crate::index::engine::Config;
use crate::index::engine::testing::{Fault, When, World};
use crate::index::map::PartitionDescriptor;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;

fn deps(world: &World) -> Dependencies {
    Dependencies { machine: Arc::new(crate::index::Objects), ..world.deps() }
}

fn account(name: &str, id: u64) -> Write {
    let name = AccountName::new(name).unwrap();
    Write::CreateAccount { name, id: AccountId::new(id), anonymous: false }
}

async fn target(deps: &Dependencies, key: &[u8]) -> Target {
    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    let owner = map.owner(key).unwrap();
    Target::of(owner)
}

#[tokio::test]
async fn host_keeps_accounts_over_restarts_with_any_number_of_partitions() {
    for count in [1, 16] {
        let world = World::empty();
        let config = Config { initial_partitions: count, ..world.config };
        let first = deps(&world);
        let host = IndexServer::open(vec![first.clone()], config).await.unwrap();
        let map = PartitionMap::load(first.coordinator.as_ref()).await.unwrap();
        assert_eq!(map.partitions().len() as u64, count);
        let write = account("devstoreaccount1", 1);
        let at = target(&first, &write.routing_key()).await;
        host.write(at, write.clone()).await.unwrap();

        let wrong = Target { epoch: Epoch::new(at.epoch.get() + 1), ..at };
        assert_eq!(host.write(wrong, write.clone()).await, Err(Error::WrongPartition));
        let elsewhere = Target { partition: PartitionId::new(99), ..at };
        assert_eq!(host.write(elsewhere, write.clone()).await, Err(Error::WrongPartition));
        host.shutdown().await;
        assert!(matches!(host.write(at, write.clone()).await, Err(Error::Unavailable(_))));

        let second = deps(&world);
        let host =
            IndexServer::open(vec![second.clone()], Config { initial_partitions: 3, ..config })
                .await
                .unwrap();
        let map = PartitionMap::load(second.coordinator.as_ref()).await.unwrap();
        assert_eq!(map.partitions().len() as u64, count, "the first map stays");
        let at = target(&second, &write.routing_key()).await;
        let read = Read::Account(AccountName::new("devstoreaccount1").unwrap());
        assert!(matches!(host.read(at, read).await, Ok(ReadReply::Account(_))));
        let known = world.capacity.extents_of_index();
        assert_eq!(host.owned_extents().await, known);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn host_refuses_keys_of_other_partitions() {
    let world = World::empty();
    let low = account("aaaa", 1);
    let high = account("zzzz", 2);
    let bound = RoutingKey::account(&AccountName::new("mmmm").unwrap());
    let deps = deps(&world);
    let host = IndexServer::open_with(vec![deps.clone()], world.config, &[bound]).await.unwrap();
    let first = target(&deps, &low.routing_key()).await;
    let second = target(&deps, &high.routing_key()).await;
    assert_ne!(first.partition, second.partition);
    assert_eq!(host.write(first, high.clone()).await, Err(Error::WrongPartition));
    assert_eq!(host.write(second, low.clone()).await, Err(Error::WrongPartition));
    let read = Read::Account(AccountName::new("zzzz").unwrap());
    assert_eq!(host.read(first, read).await.unwrap_err(), Error::WrongPartition);
    host.write(first, low).await.unwrap();
    host.write(second, high).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn host_with_damaged_descriptor_does_not_open() {
    let world = World::empty();
    let deps = deps(&world);
    let key = PartitionDescriptor::coordinator_key(PartitionId::new(1));
    let put = crate::coordinator::Op::Put(key, b"nonsense".as_slice().into());
    deps.coordinator.txn(&[], &[put]).await.unwrap();
    let refused = IndexServer::open(vec![deps], world.config).await.map(|_| ());
    assert!(matches!(refused, Err(Error::Corrupt(Damage::Rows(_)))), "{refused:?}");
}

#[test]
fn even_boundaries_make_a_map_of_any_size() {
    for count in [0, 1, 2, 3, 16, 100] {
        let bounds = bootstrap::even_boundaries(ClusterNumber::ALONE, count);
        assert_eq!(bounds.len() as u64 + 1, count.max(1));
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

/// The partitions of a cluster have ids of it, and the first map divides the containers of its
/// first account.
#[tokio::test]
async fn first_map_and_splits_of_a_cluster_have_ids_of_it() {
    let world = World::empty();
    let cluster = ClusterNumber::new(0xAB);
    let ids = cluster.ids();
    let deps = Dependencies { cluster, ..deps(&world) };
    let config = Config { initial_partitions: 4, ..world.config };
    let host = Arc::new(IndexServer::open(vec![deps.clone()], config).await.unwrap());
    let first: Vec<u64> = host.status().iter().map(|status| status.id.get()).collect();
    assert_eq!(first, [0, 1, 2, 3].map(|number| ids.start + number));

    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    let mut owners = [0; 4];
    for counter in ids.start..ids.start + 64 {
        let (account, container) = (AccountId::new(ids.start), counter.reverse_bits());
        let key = RoutingKey::container_range(account, ContainerId::new(container));
        let owner = map.owner(key.low().as_bytes()).unwrap().id.get();
        owners[usize::try_from(owner - ids.start).unwrap()] += 1;
    }
    assert_eq!(owners, [16; 4], "containers are spread over the first map");

    let name = AccountName::new("mmm").unwrap();
    let split = host.split(PartitionId::new(ids.start), &[RoutingKey::account(&name)]).await;
    for made in split.unwrap().partitions {
        let number = made.get() - ids.start;
        assert!(number >= 128 && ids.contains(&made.get()), "{number}");
    }
    host.shutdown().await;
}

/// A store of four partitions with an account in each, flushed; and the extents of each one's log.
async fn four_accounts(world: &World) -> Vec<(Write, Vec<ExtentId>)> {
    let bounds = ["h", "n", "t"].map(|name| {
        let name = AccountName::new(&name.repeat(3)).unwrap();
        RoutingKey::account(&name)
    });
    let deps = deps(world);
    let host = IndexServer::open_with(vec![deps.clone()], world.config, &bounds).await.unwrap();
    let mut made = Vec::new();
    for (id, name) in (1..).zip(["aaaa", "iiii", "oooo", "zzzz"]) {
        let write = account(name, id);
        host.write(target(&deps, &write.routing_key()).await, write.clone()).await.unwrap();
        made.push(write);
    }
    host.shutdown().await;
    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    let log = |write: &Write| map.owner(&write.routing_key()).unwrap().log.clone();
    made.into_iter().map(|write| (write.clone(), log(&write))).collect()
}

#[tokio::test]
async fn damaged_partition_is_quarantined_and_all_others_serve() {
    let world = World::empty();
    let made = four_accounts(&world).await;
    world.capacity.flip(*made[1].1.last().unwrap(), 0, 77);
    let deps = deps(&world);
    let host = IndexServer::open(vec![deps.clone()], world.config).await.unwrap();
    let before = world.capacity.extents_of_index();
    for (number, (write, _)) in made.iter().enumerate() {
        let at = target(&deps, &write.routing_key()).await;
        let Write::CreateAccount { name, .. } = write else { panic!("no account") };
        let read = host.read(at, Read::Account(name.clone())).await;
        let again = host.write(at, write.clone()).await;
        if number == 1 {
            let refused = Error::Corrupt(Damage::Quarantined(at.partition));
            assert_eq!((read.unwrap_err(), again.unwrap_err()), (refused.clone(), refused));
        } else {
            read.unwrap();
            again.unwrap();
        }
    }
    let status = host.status();
    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    let ranges = |of: &[PartitionStatus]| of.iter().map(|p| p.range.clone()).collect::<Vec<_>>();
    let tiles: Vec<_> = map.partitions().iter().map(|p| p.keys.range().clone()).collect();
    assert_eq!(ranges(&status), tiles, "the map still tiles, and the status names every range");
    let out: Vec<usize> = (0..4).filter(|number| status[*number].quarantined).collect();
    assert_eq!(out, [1]);
    assert!(status[1].stopped.as_ref().unwrap().contains("damaged"), "{:?}", status[1].stopped);
    // Code that draws conclusions from missing references must consider those that cannot be read.
    assert!(before.iter().all(|id| world.capacity.extents_of_index().contains(id)));
    let records = ExtentRecord::load_all(deps.coordinator.as_ref()).await.unwrap().read;
    let recorded: Vec<_> = records.values().flat_map(ExtentRecord::all).collect();
    assert!(before.iter().all(|id| recorded.contains(id)));
    host.shutdown().await;

    world.capacity.flip(*made[1].1.last().unwrap(), 0, 77);
    let host = IndexServer::open(vec![deps.clone()], world.config).await.unwrap();
    let at = target(&deps, &made[1].0.routing_key()).await;
    host.write(at, made[1].0.clone()).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn run_that_a_quarantined_partition_shares_outlives_its_siblings() {
    let world = World::empty();
    let deps = deps(&world);
    let host = Arc::new(IndexServer::open(vec![deps.clone()], world.config).await.unwrap());
    for number in 0..200 {
        let write = account(&format!("acc{number:05}"), number);
        host.write(target(&deps, &write.routing_key()).await, write).await.unwrap();
    }
    host.flush().await.unwrap();
    let cut = RoutingKey::account(&AccountName::new("acc00100").unwrap());
    let only = host.status()[0].id;
    let children = host.split(only, &[cut]).await.unwrap().partitions;
    // Stopped as by a kill: the children still share the run.
    let log = |id: PartitionId| {
        let deps = deps.clone();
        async move {
            let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
            map.partitions().iter().find(|p| p.id == id).unwrap().log.clone()
        }
    };
    let damaged = *log(children[1]).await.last().unwrap();
    let runs = world.capacity.extents_of(crate::capacity::ExtentKind::Run);
    drop(host);
    world.capacity.crash();
    world.capacity.flip(damaged, 0, 77);
    let host = IndexServer::open(vec![deps.clone()], world.config).await.unwrap();
    let first = host.hosts[0].opened.all().pop().unwrap();
    assert_eq!(first.core.id, children[0]);
    while first.separate().await.unwrap() {}
    host.shutdown().await;
    let left = world.capacity.extents_of(crate::capacity::ExtentKind::Run);
    assert!(runs.iter().all(|run| left.contains(run)), "{runs:?} were there, {left:?} are left");

    world.capacity.flip(damaged, 0, 77);
    let host = IndexServer::open(vec![deps.clone()], world.config).await.unwrap();
    let name = AccountName::new("acc00150").unwrap();
    let at = target(&deps, RoutingKey::account(&name).as_bytes()).await;
    assert!(matches!(host.read(at, Read::Account(name)).await, Ok(ReadReply::Account(_))));
    host.shutdown().await;
}

#[tokio::test]
async fn coordinator_that_does_not_answer_is_no_damage() {
    let world = World::empty();
    four_accounts(&world).await;
    let deps = deps(&world);
    world.store.inject(crate::coordinator::Fault::Unavailable);
    let refused = IndexServer::open(vec![deps], world.config).await.map(|_| ());
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
}

/// Tries to open stay further apart than this for as long as they fail.
const LONG: Duration = Duration::from_secs(60);

/// What keeps a partition closed although nothing is damaged.
fn passing() -> [crate::capacity::Error; 2] {
    let extent = ExtentId::new(1);
    let reason = "injected".to_owned();
    [crate::capacity::Error::Full, crate::capacity::Error::Unreadable { extent, reason }]
}

/// A start whose n-th change of a disk is refused, once or until the fault is lifted.
async fn start_with(
    world: &World,
    fault: (When, crate::capacity::Error),
) -> (Dependencies, Result<IndexServer, Error>) {
    world.capacity.crash();
    world.capacity.fail(fault.0, Fault::Refused(fault.1));
    let deps = deps(world);
    let host = IndexServer::open(vec![deps.clone()], world.config).await;
    (deps, host)
}

/// Asks for an account until its partition is open, as a router does.
async fn comes_back(deps: &Dependencies, host: &IndexServer, made: &Write) {
    let Write::CreateAccount { name, .. } = made else { panic!("no account") };
    let clock = &deps.env.clock;
    let begun = clock.monotonic();
    loop {
        let at = target(deps, &made.routing_key()).await;
        match host.read(at, Read::Account(name.clone())).await {
            Ok(_) => break,
            Err(Error::WrongPartition | Error::Corrupt(Damage::Quarantined(_))) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(clock.monotonic() - begun < LONG, "{name} does not come back");
        clock.sleep(Duration::from_millis(10)).await;
    }
    let at = target(deps, &made.routing_key()).await;
    host.write(at, made.clone()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn partition_that_meets_a_passing_trouble_at_the_start_opens_later() {
    for error in passing() {
        for call in 0..4 {
            let world = World::empty();
            let made = four_accounts(&world).await;
            let (deps, host) = start_with(&world, (When::Once(call), error.clone())).await;
            let host = host.unwrap();
            assert_eq!(host.partitions(), 3, "{error:?} at {call} kept none closed");
            assert!(host.status().iter().all(|one| !one.quarantined), "nothing is damaged");
            for (write, _) in &made {
                comes_back(&deps, &host, write).await;
            }
            assert_eq!(host.partitions(), 4);
            assert!(host.status().iter().all(|one| one.stopped.is_none()));
            // Extents that were kept while the partition's use was unknown no longer count.
            host.flush().await.unwrap();
            host.hosts[0].context.do_chores().await;
            let mut used = world.capacity.extents_of_index();
            used.sort();
            assert_eq!(host.owned_extents().await, used);
            host.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn partition_is_tried_as_long_as_a_trouble_lasts_and_refuses_meanwhile() {
    for error in passing() {
        for call in 0..4 {
            let world = World::empty();
            let made = four_accounts(&world).await;
            let (deps, host) = start_with(&world, (When::From(call), error.clone())).await;
            let host = host.unwrap();
            deps.env.clock.sleep(LONG).await;
            assert!(host.partitions() < 4);
            let mut refused = 0;
            for (write, _) in &made {
                let at = target(&deps, &write.routing_key()).await;
                match host.write(at, write.clone()).await {
                    Err(Error::Corrupt(Damage::Quarantined(id))) => {
                        assert_eq!(id, at.partition);
                        refused += 1;
                    }
                    // Open: the account is there, so nothing is written.
                    Ok(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(refused, 4 - host.partitions(), "nobody waits for what may take for ever");
            assert!(host.status().iter().all(|one| !one.quarantined));
            world.capacity.fail(When::Once(usize::MAX), Fault::Refused(error.clone()));
            for (write, _) in &made {
                comes_back(&deps, &host, write).await;
            }
            assert_eq!(host.partitions(), 4);
            host.shutdown().await;
        }
    }
}

/// What was a passing trouble at first may turn out to be damage.
#[tokio::test(start_paused = true)]
async fn partition_that_turns_out_to_be_damaged_is_quarantined_for_good() {
    let world = World::empty();
    let made = four_accounts(&world).await;
    let full = crate::capacity::Error::Full;
    let (deps, host) = start_with(&world, (When::From(0), full.clone())).await;
    let host = host.unwrap();
    world.capacity.flip(*made[1].1.last().unwrap(), 0, 77);
    world.capacity.fail(When::Once(usize::MAX), Fault::Refused(full));
    deps.env.clock.sleep(LONG).await;
    assert_eq!(host.partitions(), 3);
    let status = host.status();
    let out: Vec<usize> = (0..4).filter(|number| status[*number].quarantined).collect();
    assert_eq!(out, [1]);
    let at = target(&deps, &made[1].0.routing_key()).await;
    let epoch = at.epoch;
    assert_eq!(
        host.write(at, made[1].0.clone()).await,
        Err(Error::Corrupt(Damage::Quarantined(at.partition)))
    );
    deps.env.clock.sleep(LONG).await;
    let at = target(&deps, &made[1].0.routing_key()).await;
    assert_eq!(at.epoch, epoch, "it is not tried again");
    host.shutdown().await;
}

/// Hosts that opened their partitions close them again. What they leave behind then, the one that
/// did not open may need.
#[tokio::test(start_paused = true)]
async fn start_that_fails_removes_no_extent() {
    let mut failed = 0;
    for after in 0..4 {
        let world = World::empty();
        let deps = deps(&world);
        let hosts = || vec![deps.clone(); 2];
        let host = Arc::new(IndexServer::open(hosts(), world.config).await.unwrap());
        let name = |number: u64| format!("acc{number:05}");
        for number in 0..200 {
            let write = account(&name(number), number);
            host.write(target(&deps, &write.routing_key()).await, write).await.unwrap();
        }
        let cut = RoutingKey::account(&AccountName::new(&name(100)).unwrap());
        let only = host.status()[0].id;
        let children = host.split(only, &[cut]).await.unwrap().partitions;
        // As when it was left on the other host: the children share the log.
        drop(host);
        world.capacity.crash();
        let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
        let second = map.partitions().iter().find(|one| one.id == children[1]).unwrap();
        let mut moved = second.clone();
        moved.host = HostId::new(1);
        let key = PartitionDescriptor::coordinator_key(moved.id);
        let put = crate::coordinator::Op::Put(key, moved.encode());
        deps.coordinator.txn(&[], &[put]).await.unwrap();
        world.store.inject_after(after, crate::coordinator::Fault::Unavailable);
        let start = IndexServer::open(hosts(), world.config).await;
        failed += u64::from(start.is_err());
        if let Ok(host) = start {
            host.shutdown().await;
        }
        for _ in 0..20 {
            drop(deps.coordinator.txn(&[], &[]).await);
        }
        let host = IndexServer::open(hosts(), world.config).await.unwrap();
        let status = host.status();
        assert!(status.iter().all(|one| one.stopped.is_none()), "after {after}: {status:?}");
        for number in 0..200 {
            let name = AccountName::new(&name(number)).unwrap();
            let at = target(&deps, RoutingKey::account(&name).as_bytes()).await;
            host.read(at, Read::Account(name)).await.unwrap();
        }
        host.shutdown().await;
    }
    assert_eq!(failed, 2, "the claim of either partition failed once");
}

/// A stop does not wait for all that slow disks have to do: the next owners of the partitions do
/// it.
#[tokio::test(start_paused = true)]
async fn shutdown_leaves_chores_on_slow_disks_to_the_next_start() {
    let world = World::empty();
    let deps = deps(&world);
    let host = IndexServer::open(vec![deps.clone()], world.config).await.unwrap();
    for id in 1_000..1_100 {
        let chore = engine::Chore::Seal(ExtentId::new(id), Epoch::new(1));
        host.hosts[0].context.chores.add(chore);
    }
    world.capacity.slow_seals(Duration::from_secs(1));
    let begun = deps.env.clock.monotonic();
    host.shutdown().await;
    let took = deps.env.clock.monotonic() - begun;
    assert!(took < Duration::from_secs(30), "{took:?} for 100 seals of a second");
    assert!(host.hosts[0].context.chores.left() > 50);
}
