//! Upkeep that panics: it is started again, and what it had in hand is done after all.

use super::*;
use crate::capacity::ExtentKind;
use crate::index::engine::Chore;
use crate::index::engine::testing::Trap;

const ACCOUNTS: u64 = 400;

/// A start with little memory for memtables.
async fn start(world: &World) -> (Dependencies, IndexServer) {
    world.capacity.crash();
    let deps = deps(world);
    let config = Config { memtable_bytes_max: 64 << 10, ..world.config };
    let host = IndexServer::open(vec![deps.clone()], config).await.unwrap();
    (deps, host)
}

async fn write(deps: &Dependencies, host: &IndexServer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let write = account(&format!("acc{number:05}"), number);
        let at = target(deps, &write.routing_key()).await;
        host.write(at, write).await.unwrap();
    }
}

async fn check(deps: &Dependencies, host: &IndexServer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let name = AccountName::new(&format!("acc{number:05}")).unwrap();
        let at = target(deps, account(name.as_str(), number).routing_key().as_ref()).await;
        let read = host.read(at, Read::Account(name.clone())).await;
        assert!(matches!(read, Ok(ReadReply::Account(_))), "{name}: {read:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn flusher_that_panicked_flushes_after_all_and_nothing_is_lost() {
    let world = World::empty();
    let (deps, host) = start(&world).await;
    world.capacity.trap(Trap::Create(ExtentKind::Run));
    write(&deps, &host, 0..ACCOUNTS).await;
    deps.env.clock.sleep(LONG).await;
    let health = deps.env.tasks.health();
    assert_eq!((health.panics("index flusher"), health.stopped()), (1, Vec::new()));
    write(&deps, &host, ACCOUNTS..2 * ACCOUNTS).await;
    deps.env.clock.sleep(LONG).await;
    assert!(host.status()[0].memtable_bytes < 64 << 10);
    assert!(world.capacity.count(ExtentKind::Run) > 0);
    check(&deps, &host, 0..2 * ACCOUNTS).await;
    drop(host);
    let (deps, host) = start(&world).await;
    check(&deps, &host, 0..2 * ACCOUNTS).await;
    host.shutdown().await;
}

/// The chores that come after the one that panicked are not forgotten.
#[tokio::test(start_paused = true)]
async fn removal_that_panicked_keeps_no_other_from_being_done() {
    let world = World::empty();
    let (deps, host) = start(&world).await;
    let context = Arc::clone(&host.hosts[0].context);
    let partition = Arc::clone(&host.hosts[0].opened.all()[0]);
    partition.reserve(3).await.unwrap();
    let extents = &partition.core.extents;
    let mut left = Vec::new();
    for _ in 0..3 {
        let created = context.create(ExtentKind::Run, partition.core.owner()).await;
        left.push(created.unwrap().extent);
    }
    world.capacity.trap(Trap::Remove);
    left.iter().for_each(|id| context.chores.add(Chore::Release(Arc::clone(extents), *id)));
    deps.env.clock.sleep(LONG).await;
    assert_eq!(deps.env.tasks.health().panics("index chores"), 1);
    let there = world.capacity.extents_of(ExtentKind::Run);
    assert_eq!(there, left[..1], "the next owner removes it");
    let used = host.owned_extents().await;
    assert!(left.iter().all(|id| !used.contains(id)), "{left:?} are left, {used:?} used");
    host.shutdown().await;
    drop((partition, host));
    let (deps, host) = start(&world).await;
    deps.env.clock.sleep(LONG).await;
    assert_eq!(world.capacity.extents_of(ExtentKind::Run), []);
    host.shutdown().await;
}
