use super::*;
use crate::capacity::AppendRequest;
use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::coordinator::Op;
use crate::env::SimDisk;
use crate::env::clock::TrapClock;
use crate::index::engine::testing::World;
use crate::node::account_list::tests::start;
use crate::telemetry::CapturedLog;
use crate::types::Epoch;
use crate::types::ExtentId;

const SEEN_AS: [&str; 2] = ["/disks/0", "/disks/1"];

/// Two disks with extents on each; the coordinator knows them, one that is out of service and one
/// that was removed.
async fn two_disks(env: &Env, coordinator: &dyn Coordinator) -> Arc<CapacityNode> {
    let disks = [1, 2].map(|seed| SimDisk::new(seed, 64 << 20).disk()).to_vec();
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    let node = CapacityNode::open(disks, env.clone(), config, metrics).await.unwrap();
    let epoch = Epoch::new(1);
    for id in 1..=6 {
        let extent = ExtentId::new(id);
        node.create(extent, ExtentKind::Data, epoch).await.unwrap();
        let payloads = vec![vec![vec![7; 9_000].into()]];
        let durability = Durability::Durable;
        let append = AppendRequest { extent, epoch, offset: 0, payloads, durability };
        node.append(append).await.unwrap();
    }
    let mut known = [0, 1].map(|number| {
        format!(r#"{{"path":"{}","number":{number},"state":"in_use"}}"#, SEEN_AS[number])
    });
    for (number, state) in [(2, "in_use"), (3, "removed")] {
        known[1] += &format!(r#",{{"path":"/{number}","number":{number},"state":"{state}"}}"#);
    }
    let value = format!(r#"{{"version":2,"disks":[{}]}}"#, known.join(","));
    coordinator.txn(&[], &[Op::Put(disks::KEY.into(), value.into())]).await.unwrap();
    node
}

#[tokio::test(start_paused = true)]
async fn drain_that_panicked_is_started_again_and_empties_the_disk() {
    let world = World::empty();
    let started = start(&world, &[], &[]).await;
    let clock = Arc::new(TrapClock::new(Arc::clone(&started.env.clock)));
    let env = Env { clock: Arc::clone(&clock) as _, ..started.env.clone() };
    let coordinator = Arc::clone(&started.coordinator);
    let capacity = two_disks(&env, coordinator.as_ref()).await;
    let fleet = Arc::clone(&started.fleet);
    let disks = NodeDisks::start((Arc::clone(&capacity), coordinator), fleet, env.clone());
    let disks = disks.await.unwrap();
    let out = "disk 2: out of service; see the log of the start";
    assert_eq!(disks.troubles(), [out], "a disk that was removed is not missed");
    let log = CapturedLog::default();
    let _kept = log.begin();
    clock.trap(ROUND);
    let draining = disks.drain(SEEN_AS[1]).await.unwrap();
    assert!(draining.state == "draining" && draining.extents > 0, "{draining:?}");
    env.clock.sleep(Duration::from_secs(60)).await;
    let health = env.tasks.health();
    assert_eq!((health.panics("disk drain"), health.stopped()), (1, Vec::new()));
    for parts in [["ERROR", "a task panicked"], ["WARN", "started again"]] {
        assert_eq!(log.lines_with(&[&parts[..], &["disk drain"]].concat()), 1, "{parts:?}");
    }
    let states = disks.list().await.unwrap().into_iter().map(|disk| (disk.state, disk.extents));
    let expected = [("in use", 6), ("drained", 0), ("out of service", 0)]
        .map(|(state, count)| (state.to_owned(), count));
    assert_eq!(states.collect::<Vec<_>>(), expected);
    capacity.shutdown().await;
    env.tasks.shutdown().await;
    started.fleet.shutdown().await;
}
