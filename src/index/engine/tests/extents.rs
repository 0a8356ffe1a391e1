//! Logs and runs are removed against the records in the coordinator (ADR 0022): never those of
//! another process, and after a crash at any step no unused extent is left.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt;

use super::changes::halves;
use crate::capacity;
use crate::capacity::ExtentKind;
use crate::coordinator;
use crate::index::engine::change;
use crate::index::engine::context::{Dependencies, HostContext};
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{Fault, PARTITION, When, World, put};
use crate::index::map::PartitionMap;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::PartitionId;

/// A process of its own: it shares nothing with others but the coordinator and the capacity.
pub(super) fn process(world: &World, deps: &Dependencies) -> Arc<HostContext> {
    Arc::new(HostContext::new(deps.clone(), world.config, HostId::new(0), Arc::default()))
}

fn keys() -> impl Iterator<Item = String> {
    (b'a'..=b'z').map(|letter| char::from(letter).to_string())
}

pub(super) async fn separate(partition: &Partition) {
    partition.flush().await.unwrap();
    while partition.separate().await.unwrap() {}
}

/// Two partitions that share a run and a log, the second one served by another process.
pub(super) async fn shared_by_two(world: &World, deps: &Dependencies) -> [Partition; 2] {
    let first = process(world, deps);
    let whole = Partition::open(&first, PARTITION).await.unwrap();
    for key in keys() {
        whole.apply(put(&key, "in a run")).await.unwrap();
    }
    whole.flush().await.unwrap();
    for key in keys() {
        whole.apply(put(&format!("{key}{key}"), "in the log")).await.unwrap();
    }
    let [left, right] = <[_; 2]>::try_from(whole.split(halves(b"m")).await.unwrap().children)
        .unwrap_or_else(|_| panic!("two halves"));
    whole.abandon().await;
    right.abandon().await;
    let right = Partition::open(&process(world, deps), right.core.id).await.unwrap();
    [left, right]
}

#[tokio::test]
async fn a_process_leaves_the_runs_and_logs_that_another_one_uses() {
    for second_first in [true, false] {
        let world = World::new().await;
        let deps = world.deps();
        let mut both = shared_by_two(&world, &deps).await;
        if second_first {
            both.reverse();
        }
        let [quick, slow] = &both;
        let shared: BTreeSet<ExtentId> =
            slow.core.snapshot().sources.runs.iter().flatten().map(|run| run.extent()).collect();
        separate(quick).await;
        quick.core.context.do_chores().await;
        let left = world.capacity.extents_of_index();
        assert!(shared.iter().all(|run| left.contains(run)), "{shared:?} of {left:?}");
        let rows = slow.rows().await.len();
        let again = Partition::open(&process(&world, &deps), slow.core.id).await.unwrap();
        assert_eq!(again.rows().await.len(), rows, "the log they shared is there, too");
        // What the last one leaves goes.
        separate(&again).await;
        let gone = again.core.context.clone();
        gone.do_chores().await;
        let left = world.capacity.extents_of_index();
        assert!(shared.iter().all(|run| !left.contains(run)), "{shared:?} of {left:?}");
        assert_eq!(again.rows().await.len() + quick.rows().await.len(), 52);
        again.close().await;
    }
}

/// Everything a partition does to extents; gives what was acknowledged.
async fn life(world: &World) -> BTreeMap<String, String> {
    let context = process(world, &world.deps());
    let mut known = BTreeMap::new();
    let Ok(whole) = Partition::open(&context, PARTITION).await else { return known };
    for round in 0..4 {
        write(&whole, round, &mut known).await;
        drop(whole.flush().await);
        context.do_chores().await;
    }
    drop(whole.compact().await);
    context.do_chores().await;
    write(&whole, 4, &mut known).await;
    let Ok(split) = whole.split(halves(b"m")).await else { return known };
    whole.core.lose();
    whole.abandon().await;
    let children: Vec<Arc<Partition>> = split.children.into_iter().map(Arc::new).collect();
    for child in &children {
        write(child, 5, &mut known).await;
        drop(child.flush().await);
    }
    if let Some(child) = children.first() {
        drop(child.separate().await);
    }
    context.do_chores().await;
    let Ok(merged) = change::merge(&context, PartitionId::new(4), &children).await else {
        return known;
    };
    for child in &children {
        child.core.lose();
        child.abandon().await;
    }
    context.do_chores().await;
    write(&merged.partition, 6, &mut known).await;
    drop(merged.partition.flush().await);
    context.do_chores().await;
    known
}

async fn write(partition: &Partition, round: usize, known: &mut BTreeMap<String, String>) {
    for key in ["b", "d", "x", "z"] {
        let (key, value) = (format!("{key}{round}"), "x".repeat(400));
        if partition.core.keys.contains(key.as_bytes())
            && partition.apply(put(&key, &value)).await.is_ok()
        {
            known.insert(key, value);
        }
    }
}

/// A new process opens everything: nothing acknowledged is lost, and nothing is there that no
/// partition uses.
pub(super) async fn check_after_a_crash(
    world: &World,
    known: &BTreeMap<String, String>,
    what: &str,
) {
    world.capacity.crash();
    let deps = world.deps();
    // Faults that were not reached.
    for _ in 0..100 {
        drop(deps.coordinator.txn(&[], &[]).await);
        drop(deps.coordinator.get(b"").await);
    }
    let context = process(world, &deps);
    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    let mut found = BTreeMap::new();
    let mut used = BTreeSet::new();
    let mut open = Vec::new();
    for one in map.partitions() {
        let opened = Partition::open(&context, one.id).await;
        open.push(opened.unwrap_or_else(|error| panic!("{what}: {error}")));
    }
    context.do_chores().await;
    for partition in &open {
        for (key, value) in partition.rows().await {
            found.insert(String::from_utf8(key.into()).unwrap(), value);
        }
        used.extend(partition.core.uses());
    }
    for (key, value) in known {
        assert_eq!(found.get(key).map(|v| v.as_ref()), Some(value.as_bytes()), "{what}: {key}");
    }
    let there: BTreeSet<ExtentId> = world.capacity.extents_of_index().into_iter().collect();
    assert_eq!(there, used, "{what}");
    for partition in &open {
        partition
            .apply(put(
                &format!("{}y", if partition.core.keys.contains(b"b") { "b" } else { "x" }),
                "goes on",
            ))
            .await
            .unwrap();
        partition.close().await;
    }
}

async fn small_world() -> World {
    let mut world = World::new().await;
    world.config.log_extent_bytes = 2_000;
    world
}

#[tokio::test]
async fn nothing_is_left_behind_by_a_crash_at_any_step_on_the_disks() {
    let world = small_world().await;
    world.capacity.fail(When::Once(usize::MAX), Fault::Refused(capacity::Error::Full));
    let known = life(&world).await;
    assert_eq!(known.len(), 28);
    let steps = world.capacity.calls();
    assert!(steps > 60, "{steps}");
    check_after_a_crash(&world, &known, "no crash").await;
    let dead = capacity::Error::Poisoned { disk: 0 };
    for step in 0..steps {
        for fault in
            [Fault::Refused(dead.clone()), Fault::Lied(dead.clone()), Fault::Torn(dead.clone())]
        {
            let world = small_world().await;
            let what = format!("{step}: {fault:?}");
            world.capacity.fail(When::From(step), fault);
            let known = life(&world).await;
            check_after_a_crash(&world, &known, &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_behind_by_a_crash_at_any_step_of_the_coordinator() {
    use coordinator::Fault::{
        AmbiguousApplied, AmbiguousLost, AppliedThenAway, LostThenAway, Unavailable,
    };
    for fault in [Unavailable, AmbiguousApplied, AmbiguousLost, AppliedThenAway, LostThenAway] {
        for step in 0..40 {
            let world = small_world().await;
            world.store.inject_after(step, fault);
            let known = life(&world).await;
            check_after_a_crash(&world, &known, &format!("{step}: {fault:?}")).await;
        }
    }
}

#[tokio::test]
async fn ids_are_recorded_before_anything_is_created() {
    let world = small_world().await;
    let deps = world.deps();
    let context = process(&world, &deps);
    let partition = Partition::open(&context, PARTITION).await.unwrap();
    let mut known = BTreeMap::new();
    for round in 0..30 {
        write(&partition, round, &mut known).await;
        drop(partition.flush().await);
        partition.compact().await.unwrap();
        context.do_chores().await;
        let recorded = recorded(&deps).await;
        let there = world.capacity.extents_of_index();
        assert!(there.iter().all(|id| recorded.contains(id)), "{there:?} of {recorded:?}");
        assert!(recorded.len() < 40, "what is gone is forgotten: {recorded:?}");
    }
}

async fn recorded(deps: &Dependencies) -> BTreeSet<ExtentId> {
    let record = crate::index::ExtentRecord::load(deps.coordinator.as_ref(), PARTITION);
    record.await.unwrap().unwrap().record.all().collect()
}

#[tokio::test]
async fn what_a_creation_dropped_midway_left_is_removed_before_the_next_opening() {
    let world = small_world().await;
    let deps = world.deps();
    let context = process(&world, &deps);
    let partition = Partition::open(&context, PARTITION).await.unwrap();
    let mut known = BTreeMap::new();
    write(&partition, 0, &mut known).await;
    partition.flush().await.unwrap();
    let extents = &partition.core.extents;
    let before = extents.fresh();
    let creation = context.create(ExtentKind::Run, partition.core.owner());
    assert!(creation.now_or_never().is_none(), "dropped before it was answered");
    assert_eq!(extents.fresh(), before - 1, "its id is not given out again");
    let there: BTreeSet<ExtentId> = world.capacity.extents_of_index().into_iter().collect();
    let left: Vec<ExtentId> = there.difference(&partition.core.uses()).copied().collect();
    let [left] = left[..] else { panic!("one is there and not used: {left:?}") };
    assert!(recorded(&deps).await.contains(&left));
    context.do_chores().await;
    assert!(!world.capacity.extents_of_index().contains(&left));
    for round in 1..30 {
        write(&partition, round, &mut known).await;
        partition.flush().await.unwrap();
        partition.compact().await.unwrap();
        context.do_chores().await;
    }
    assert!(!recorded(&deps).await.contains(&left), "what is gone is forgotten");
    partition.close().await;
    check_after_a_crash(&world, &known, "dropped midway").await;
    assert!(!world.capacity.extents_of_index().contains(&left));
}

/// Not tried again and again: a restart changes it, and the record keeps them until then.
#[tokio::test]
async fn extents_that_a_poisoned_disk_keeps_are_left_to_the_next_opening() {
    let world = small_world().await;
    let deps = world.deps();
    let context = process(&world, &deps);
    let partition = Partition::open(&context, PARTITION).await.unwrap();
    context.do_chores().await;
    partition.reserve(3).await.unwrap();
    let mut left = Vec::new();
    for _ in 0..3 {
        let owner = partition.core.owner();
        let extent = context.create(ExtentKind::Run, owner).await.unwrap().extent;
        context.release(owner.extents, extent);
        left.push(extent);
    }
    let poisoned = Fault::Refused(capacity::Error::Poisoned { disk: 0 });
    world.capacity.fail(When::From(0), poisoned);
    context.do_chores().await;
    assert_eq!(world.capacity.calls(), 3);
    context.do_chores().await;
    assert_eq!(world.capacity.calls(), 3, "tried once");
    world.capacity.crash();
    partition.abandon().await;
    drop(partition);
    let context = process(&world, &deps);
    let _partition = Partition::open(&context, PARTITION).await.unwrap();
    context.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(left.iter().all(|id| !there.contains(id)), "{left:?} of {there:?}");
}
