use crate::capacity::AppendRequest;
use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::coordinator::Op;
use crate::env::Fault;
use crate::env::SimDisk;
use crate::env::clock::TrapClock;
use crate::index::engine::testing::World;
use crate::node::account_list::tests::Started;
use crate::node::account_list::tests::flip;
use crate::node::account_list::tests::four_accounts;
use crate::node::account_list::tests::start;
use crate::telemetry::CapturedLog;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

use super::*;

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
        let append =
            AppendRequest { extent, epoch, offset: ExtentOffset::START, payloads, durability };
        node.append(append).await.unwrap();
    }
    let mut known = [0, 1].map(|number| {
        format!(r#"{{"path":"{}","number":{number},"state":"in_use"}}"#, SEEN_AS[number])
    });
    for (number, state) in [(2, "in_use"), (3, "removed")] {
        known[1] += &format!(r#",{{"path":"/{number}","number":{number},"state":"{state}"}}"#);
    }
    let value = format!(r#"{{"version":2,"disks":[{}]}}"#, known.join(","));
    coordinator.txn(&[], &[Op::Put(list::KEY.into(), value.into())]).await.unwrap();
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
    let index = Arc::clone(&started.index);
    let disks = NodeDisks::start(Arc::clone(&capacity), coordinator, index, env.clone());
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
    started.index.shutdown().await;
}

/// What an operator looks at first names everything that is not as it should be, and nothing else.
#[tokio::test(start_paused = true)]
async fn troubles_name_disks_that_are_full_poisoned_or_away_and_quarantined_partitions() {
    let world = four_accounts().await;
    let started = start(&world, &[], &[]).await;
    let env = started.env.clone();
    let sims = [1, 2].map(|seed| SimDisk::new(seed, 64 << 20));
    let disks = sims.iter().map(SimDisk::disk).collect();
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    let capacity = CapacityNode::open(disks, env.clone(), config, metrics).await.unwrap();
    list(started.coordinator.as_ref(), &[("in_use", 0), ("in_use", 1)]).await;
    let serve = |started: &Started| {
        let (capacity, coordinator) = (Arc::clone(&capacity), Arc::clone(&started.coordinator));
        NodeDisks::start(capacity, coordinator, Arc::clone(&started.index), env.clone())
    };
    let sound = serve(&started).await.unwrap();
    assert_eq!(sound.troubles(), Vec::<String>::new());

    // Others fill the first disk; the second one fails once.
    let file = sims[0].disk().create("others").await.unwrap();
    file.allocate(0, 54 << 20).await.unwrap();
    env.clock.sleep(SPACE_EVERY * 2).await;
    sims[1].fail_once(Fault::WriteError, 0);
    for id in 1..100 {
        let (extent, epoch) = (ExtentId::new(id), Epoch::new(1));
        drop(capacity.create(extent, ExtentKind::Data, epoch).await);
        if capacity.disks()[1].poisoned {
            break;
        }
    }
    started.index.shutdown().await;
    flip(&world, "iiii").await;
    let again = start(&world, &[], &[]).await;
    // One that the node started without, and one that is no longer of the store.
    let known = [("in_use", 0), ("in_use", 1), ("in_use", 2), ("removed", 3)];
    list(again.coordinator.as_ref(), &known).await;
    let lines = serve(&again).await.unwrap().troubles();
    let status = again.index.status();
    let out = status.iter().find(|one| one.quarantined).unwrap().id;
    assert_eq!(lines[0], "disk 2: out of service; see the log of the start");
    let percent: u64 =
        lines[1].strip_prefix("disk 0: ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((84..100).contains(&percent) && lines[1].ends_with(" % full"), "{lines:?}");
    assert_eq!(
        lines[2..],
        [
            "disk 1: takes no writes because a write failed; restart the node to verify it"
                .to_owned(),
            format!("partition {out}: quarantined; `blockyard partitions list` shows its range"),
        ]
    );
    capacity.shutdown().await;
    env.tasks.shutdown().await;
    again.index.shutdown().await;
}

/// Writes the list of the store's disks, each with its state and number.
async fn list(coordinator: &dyn Coordinator, disks: &[(&str, usize)]) {
    let one = |(state, number): &(&str, usize)| {
        format!(r#"{{"path":"/disks/{number}","number":{number},"state":"{state}"}}"#)
    };
    let known = disks.iter().map(one).collect::<Vec<_>>().join(",");
    let value = format!(r#"{{"version":2,"disks":[{known}]}}"#);
    coordinator.txn(&[], &[Op::Put(list::KEY.into(), value.into())]).await.unwrap();
}
