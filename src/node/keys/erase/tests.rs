use crate::capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::env::SimDisk;
use crate::env::clock::TrapClock;
use crate::index::AccountChange;
use crate::index::IndexHost;
use crate::index::Write;
use crate::index::engine::testing::Fault;
use crate::index::engine::testing::When;
use crate::index::engine::testing::World;
use crate::node::account_list::tests::NAMES;
use crate::node::account_list::tests::Started;
use crate::node::account_list::tests::flip;
use crate::node::account_list::tests::four_accounts;
use crate::node::account_list::tests::name;
use crate::node::account_list::tests::start;
use crate::telemetry::CapturedLog;
use crate::types::Secret;

use super::*;

const SECRET: &[u8] = b"a key that was written plain";
const LONG: Duration = Duration::from_secs(3_600);

/// A store whose accounts have plain keys, as older releases wrote them.
async fn with_plain_keys() -> World {
    let world = four_accounts().await;
    let started = start(&world, &[], &[]).await;
    for text in NAMES {
        let change = AccountChange::Keys(vec![Secret::Plain(SECRET.into())]);
        started.list.router.write(Write::UpdateAccount { name: name(text), change }).await.unwrap();
    }
    started.index.shutdown().await;
    assert!(!world.capacity.that_hold(SECRET).is_empty());
    world
}

/// Whether a log or run that a partition uses has the secret. Left-overs of a start that failed are
/// for the audit.
async fn holds(world: &World, started: &Started) -> bool {
    let used = started.index.owned_extents().await;
    world.capacity.that_hold(SECRET).iter().any(|extent| used.contains(extent))
}

async fn erase(started: &Started) -> Erase {
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    let disks = vec![SimDisk::new(1, 64 << 20).disk()];
    let env = started.env.clone();
    Erase {
        index: Arc::clone(&started.index),
        capacity: CapacityNode::open(disks, env, config, metrics).await.unwrap(),
        coordinator: Arc::clone(&started.coordinator),
        ring: Uuid::nil(),
        sealed: false,
        router: Arc::clone(&started.list.router),
        secrets: started.list.secrets.clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sealed_or_rewritten_is_tried_again_while_the_node_runs() {
    let full = capacity::Error::Full;
    for call in [0, 1, 2, 5, 8, 13, 21] {
        let world = with_plain_keys().await;
        let started = start(&world, &[], &[]).await;
        let env = started.env.clone();
        world.capacity.fail(When::From(call), Fault::Refused(full.clone()));
        let erase = erase(&started).await;
        let running = env.tasks.spawn("erase", erase.run(env.clone()));
        env.clock.sleep(LONG).await;
        assert!(!running.is_finished() && holds(&world, &started).await, "{call}");
        world.capacity.fail(When::Once(usize::MAX), Fault::Refused(full.clone()));
        env.clock.sleep(LONG).await;
        assert!(running.is_finished(), "{call}");
        assert!(!holds(&world, &started).await, "{call}");
        started.index.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn eraser_that_panicked_is_started_again_and_erases() {
    let world = with_plain_keys().await;
    let started = start(&world, &[], &[]).await;
    let clock = Arc::new(TrapClock::new(Arc::clone(&started.env.clock)));
    let env = Env { clock: Arc::clone(&clock) as _, ..started.env.clone() };
    let full = capacity::Error::Full;
    world.capacity.fail(When::From(0), Fault::Refused(full.clone()));
    let erase = erase(&started).await;
    let log = CapturedLog::default();
    let _kept = log.begin();
    clock.trap(AGAIN);
    erase.start(&env);
    env.clock.sleep(LONG).await;
    let health = env.tasks.health();
    assert_eq!((health.panics("erase plain secrets"), health.stopped()), (1, Vec::new()));
    for parts in [["ERROR", "a task panicked"], ["WARN", "started again"]] {
        assert_eq!(log.lines_with(&[&parts[..], &["erase plain"]].concat()), 1, "{parts:?}");
    }
    assert!(holds(&world, &started).await);
    world.capacity.fail(When::Once(usize::MAX), Fault::Refused(full));
    env.clock.sleep(LONG).await;
    assert!(!holds(&world, &started).await);
    env.tasks.shutdown().await;
    started.index.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn quarantined_partition_ends_it_until_the_next_start() {
    let world = with_plain_keys().await;
    flip(&world, "iiii").await;
    let started = start(&world, &[], &[]).await;
    let erase = erase(&started).await;
    erase.run(started.env.clone()).await;
    assert!(holds(&world, &started).await, "nothing of the quarantined partition is removed");
    started.index.shutdown().await;
    flip(&world, "iiii").await;
    let started = start(&world, &[], &[]).await;
    let erase = self::erase(&started).await;
    erase.run(started.env.clone()).await;
    assert!(!holds(&world, &started).await);
    started.index.shutdown().await;
}
