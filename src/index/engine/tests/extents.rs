//! Logs and runs are removed against the records in the coordinator (ADR 0022): never those of
//! another process, and after a crash at any step nothing is left that nobody uses.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt;

use super::changes::halves;
use crate::capacity;
use crate::capacity::{Capacity, ExtentKind};
use crate::coordinator;
use crate::coordinator::Op;
use crate::index::engine::change;
use crate::index::engine::partition::Partition;
use crate::index::engine::shared::{Parts, Shared};
use crate::index::engine::testing::{Fault, PARTITION, When, World, put};
use crate::index::map::PartitionMap;
use crate::index::rows::Family;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::PartitionId;

/// A process of its own: it shares nothing with others but the coordinator and the capacity.
fn process(world: &World, parts: &Parts) -> Arc<Shared> {
    Arc::new(Shared::new(parts.clone(), world.config, (HostId::new(0), Arc::default())))
}

fn keys() -> impl Iterator<Item = String> {
    (b'a'..=b'z').map(|letter| char::from(letter).to_string())
}

async fn separate(partition: &Partition) {
    partition.flush().await.unwrap();
    while partition.separate().await.unwrap() {}
}

/// Two partitions that share a run and a log, the second one served by another process.
async fn shared_by_two(world: &World, parts: &Parts) -> [Partition; 2] {
    let first = process(world, parts);
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
    let right = Partition::open(&process(world, parts), right.core.id).await.unwrap();
    [left, right]
}

#[tokio::test]
async fn a_process_leaves_the_runs_and_logs_that_another_one_uses() {
    for second_first in [true, false] {
        let world = World::new().await;
        let parts = world.parts();
        let mut both = shared_by_two(&world, &parts).await;
        if second_first {
            both.reverse();
        }
        let [quick, slow] = &both;
        let shared: BTreeSet<ExtentId> =
            slow.core.snapshot().sources.runs.iter().flatten().map(|run| run.extent()).collect();
        separate(quick).await;
        quick.core.shared.do_chores().await;
        let left = world.capacity.extents_of_index();
        assert!(shared.iter().all(|run| left.contains(run)), "{shared:?} of {left:?}");
        let rows = slow.rows().await.len();
        let again = Partition::open(&process(&world, &parts), slow.core.id).await.unwrap();
        assert_eq!(again.rows().await.len(), rows, "the log they shared is there, too");
        // What the last one leaves goes.
        separate(&again).await;
        let gone = again.core.shared.clone();
        gone.do_chores().await;
        let left = world.capacity.extents_of_index();
        assert!(shared.iter().all(|run| !left.contains(run)), "{shared:?} of {left:?}");
        assert_eq!(again.rows().await.len() + quick.rows().await.len(), 52);
        again.close().await;
    }
}

/// Everything a partition does to extents; gives what was acknowledged.
async fn life(world: &World) -> BTreeMap<String, String> {
    let shared = process(world, &world.parts());
    let mut known = BTreeMap::new();
    let Ok(whole) = Partition::open(&shared, PARTITION).await else { return known };
    for round in 0..4 {
        write(&whole, round, &mut known).await;
        drop(whole.flush().await);
        shared.do_chores().await;
    }
    drop(whole.compact().await);
    shared.do_chores().await;
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
    shared.do_chores().await;
    let Ok(merged) = change::merge(&shared, PartitionId::new(4), &children).await else {
        return known;
    };
    for child in &children {
        child.core.lose();
        child.abandon().await;
    }
    shared.do_chores().await;
    write(&merged.partition, 6, &mut known).await;
    drop(merged.partition.flush().await);
    shared.do_chores().await;
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
async fn check_after_a_crash(world: &World, known: &BTreeMap<String, String>, what: &str) {
    world.capacity.crash();
    let parts = world.parts();
    // Faults that did not have their turn.
    for _ in 0..100 {
        drop(parts.coordinator.txn(&[], &[]).await);
        drop(parts.coordinator.get(b"").await);
    }
    let shared = process(world, &parts);
    let map = PartitionMap::load(parts.coordinator.as_ref()).await.unwrap();
    let mut found = BTreeMap::new();
    let mut used = BTreeSet::new();
    let mut open = Vec::new();
    for one in map.partitions() {
        let opened = Partition::open(&shared, one.id).await;
        open.push(opened.unwrap_or_else(|error| panic!("{what}: {error}")));
    }
    shared.do_chores().await;
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
    let parts = world.parts();
    let shared = process(&world, &parts);
    let partition = Partition::open(&shared, PARTITION).await.unwrap();
    let mut known = BTreeMap::new();
    for round in 0..30 {
        write(&partition, round, &mut known).await;
        drop(partition.flush().await);
        partition.compact().await.unwrap();
        shared.do_chores().await;
        let recorded = recorded(&parts).await;
        let there = world.capacity.extents_of_index();
        assert!(there.iter().all(|id| recorded.contains(id)), "{there:?} of {recorded:?}");
        assert!(recorded.len() < 40, "what is gone is forgotten: {recorded:?}");
    }
}

async fn recorded(parts: &Parts) -> BTreeSet<ExtentId> {
    let record = crate::index::ExtentRecord::load(parts.coordinator.as_ref(), PARTITION);
    record.await.unwrap().unwrap().0.all().collect()
}

#[tokio::test]
async fn a_creation_dropped_midway_keeps_its_id_recorded_until_the_next_opening() {
    let world = small_world().await;
    let parts = world.parts();
    let shared = process(&world, &parts);
    let partition = Partition::open(&shared, PARTITION).await.unwrap();
    let mut known = BTreeMap::new();
    write(&partition, 0, &mut known).await;
    partition.flush().await.unwrap();
    let (extents, epoch) = (&partition.core.extents, partition.core.epoch);
    let before = extents.fresh();
    let creation = shared.create(ExtentKind::Run, epoch, extents);
    assert!(creation.now_or_never().is_none(), "dropped before it was answered");
    assert_eq!(extents.fresh(), before - 1, "its id is not given out again");
    let there: BTreeSet<ExtentId> = world.capacity.extents_of_index().into_iter().collect();
    let left: Vec<ExtentId> = there.difference(&partition.core.uses()).copied().collect();
    let [left] = left[..] else { panic!("one is there and not used: {left:?}") };
    for round in 1..30 {
        write(&partition, round, &mut known).await;
        partition.flush().await.unwrap();
        partition.compact().await.unwrap();
        shared.do_chores().await;
        assert!(recorded(&parts).await.contains(&left), "round {round}");
    }
    assert!(world.capacity.extents_of_index().contains(&left), "nobody knows who uses it");
    partition.close().await;
    check_after_a_crash(&world, &known, "dropped midway").await;
    assert!(!world.capacity.extents_of_index().contains(&left));
}

/// As the program wrote it before there were records.
async fn forget_records(parts: &Parts) {
    for prefix in [b"extents/".as_slice(), b"sharers/"] {
        for (key, _) in parts.coordinator.range(prefix).await.unwrap().entries {
            parts.coordinator.txn(&[], &[Op::Delete(key)]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_older_store_is_recorded_at_its_first_start() {
    let world = World::new().await;
    let parts = world.parts();
    let both = shared_by_two(&world, &parts).await;
    let shared: Vec<ExtentId> =
        both[0].core.snapshot().sources.runs.iter().flatten().map(|run| run.extent()).collect();
    let ids = both.each_ref().map(|one| one.core.id);
    for one in &both {
        one.core.shared.do_chores().await;
        one.abandon().await;
    }
    drop(both);
    forget_records(&parts).await;
    let orphan = ExtentId::new(1_000_000);
    world.capacity.create(orphan, ExtentKind::Run, Epoch::new(1)).await.unwrap();
    let map = PartitionMap::load(parts.coordinator.as_ref()).await.unwrap();
    let upgrade =
        || super::super::upgrade(parts.coordinator.as_ref(), world.capacity.as_ref(), &map);
    upgrade().await.unwrap();
    let recorded = parts.coordinator.range(b"").await.unwrap();
    upgrade().await.unwrap();
    assert_eq!(parts.coordinator.range(b"").await.unwrap(), recorded, "once is enough");

    let process = process(&world, &parts);
    let left = Partition::open(&process, ids[0]).await.unwrap();
    process.do_chores().await;
    assert!(!world.capacity.extents_of_index().contains(&orphan), "nobody names it");
    separate(&left).await;
    process.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(shared.iter().all(|run| there.contains(run)), "{shared:?} of {there:?}");
    let right = Partition::open(&process, ids[1]).await.unwrap();
    assert_eq!(left.rows().await.len() + right.rows().await.len(), 52);
    separate(&right).await;
    process.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(shared.iter().all(|run| !there.contains(run)), "{shared:?} of {there:?}");
}

/// An older store of two partitions, of which the second cannot be read: a byte of an extent of its
/// log, which this also gives, is another one.
async fn older_with_a_damaged_half(world: &World, parts: &Parts) -> ([PartitionId; 2], ExtentId) {
    let both = shared_by_two(world, parts).await;
    let ids = both.each_ref().map(|one| one.core.id);
    for one in &both {
        one.core.shared.do_chores().await;
        one.abandon().await;
    }
    drop(both);
    forget_records(parts).await;
    let map = PartitionMap::load(parts.coordinator.as_ref()).await.unwrap();
    let log = |id| map.partitions().iter().find(|p| p.id == id).unwrap().log.clone();
    let damaged = *log(ids[1]).last().unwrap();
    world.capacity.flip(damaged, 0, 33);
    (ids, damaged)
}

async fn upgrade(world: &World, parts: &Parts) {
    let map = PartitionMap::load(parts.coordinator.as_ref()).await.unwrap();
    super::super::upgrade(parts.coordinator.as_ref(), world.capacity.as_ref(), &map).await.unwrap();
}

/// Not tried again and again: a restart changes it, and the record keeps them until then.
#[tokio::test]
async fn extents_that_a_poisoned_disk_keeps_are_left_to_the_next_opening() {
    let world = small_world().await;
    let parts = world.parts();
    let shared = process(&world, &parts);
    let partition = Partition::open(&shared, PARTITION).await.unwrap();
    shared.do_chores().await;
    partition.reserve(3).await.unwrap();
    let mut left = Vec::new();
    for _ in 0..3 {
        let (extents, epoch) = (&partition.core.extents, partition.core.epoch);
        let (extent, _) = shared.create(ExtentKind::Run, epoch, extents).await.unwrap();
        shared.release(extents, extent);
        left.push(extent);
    }
    let poisoned = Fault::Refused(capacity::Error::Poisoned { disk: 0 });
    world.capacity.fail(When::From(0), poisoned);
    shared.do_chores().await;
    assert_eq!(world.capacity.calls(), 3);
    shared.do_chores().await;
    assert_eq!(world.capacity.calls(), 3, "tried once");
    world.capacity.crash();
    partition.abandon().await;
    drop(partition);
    let shared = process(&world, &parts);
    let _partition = Partition::open(&shared, PARTITION).await.unwrap();
    shared.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(left.iter().all(|id| !there.contains(id)), "{left:?} of {there:?}");
}

/// Its first start created a log and was cut short before the descriptor named it.
#[tokio::test]
async fn log_of_an_older_store_that_was_never_used_is_removed() {
    let world = World::new().await;
    let parts = world.parts();
    let log = ExtentId::new(1_000_000);
    world.capacity.create(log, ExtentKind::Log, Epoch::new(1)).await.unwrap();
    upgrade(&world, &parts).await;
    let process = process(&world, &parts);
    let partition = Partition::open(&process, PARTITION).await.unwrap();
    partition.apply(put("a", "goes on")).await.unwrap();
    process.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(!there.contains(&log), "{log} of {there:?}");
}

/// A run that is away, as on a missing disk, is named by the half that can be read only.
#[tokio::test]
async fn a_run_that_is_away_is_shared_with_a_partition_that_cannot_be_read() {
    let world = World::new().await;
    let parts = world.parts();
    let (ids, _) = older_with_a_damaged_half(&world, &parts).await;
    let infos = world.capacity.extents().await;
    let run = infos.iter().find(|info| info.kind == ExtentKind::Run).unwrap().extent;
    world.capacity.remove(run).await.unwrap();
    upgrade(&world, &parts).await;
    let records = crate::index::ExtentRecord::load_all(parts.coordinator.as_ref()).await.unwrap();
    for id in ids {
        assert!(records[&id].shared.contains_key(&run), "{run} of {id}: {records:?}");
    }
}

/// What only a partition names that cannot be read, on a disk that is missing at the first start,
/// is recorded when it is there again, and so is what nobody names.
#[tokio::test]
async fn runs_on_a_disk_that_was_missing_at_the_first_start_are_recorded_when_it_is_back() {
    let world = World::new().await;
    let parts = world.parts();
    let both = shared_by_two(&world, &parts).await;
    separate(&both[1]).await;
    let used: Vec<ExtentId> =
        both[1].core.snapshot().sources.runs.iter().flatten().map(|run| run.extent()).collect();
    let ids = both.each_ref().map(|one| one.core.id);
    for one in &both {
        one.core.shared.do_chores().await;
        one.abandon().await;
    }
    drop(both);
    forget_records(&parts).await;
    let map = PartitionMap::load(parts.coordinator.as_ref()).await.unwrap();
    let log = map.partitions().iter().find(|p| p.id == ids[1]).unwrap().log.clone();
    let orphan = ExtentId::new(1_000_000);
    world.capacity.create(orphan, ExtentKind::Run, Epoch::new(1)).await.unwrap();
    world.capacity.set_away(&[&used[..], &log[1..], &[orphan]].concat());
    upgrade(&world, &parts).await;
    let left = Partition::open(&process(&world, &parts), ids[0]).await.unwrap();
    left.apply(put("a", "goes on")).await.unwrap();
    left.close().await;
    world.capacity.set_away(&[]);
    // Cut short once.
    world.store.inject_after(0, coordinator::Fault::Unavailable);
    let again = super::super::upgrade(parts.coordinator.as_ref(), world.capacity.as_ref(), &map);
    again.await.unwrap_err();
    for _ in 0..2 {
        upgrade(&world, &parts).await;
    }
    assert!(parts.coordinator.get(b"unrecorded-extents").await.unwrap().is_none());
    let records = crate::index::ExtentRecord::load_all(parts.coordinator.as_ref()).await.unwrap();
    let recorded: BTreeSet<ExtentId> = records[&ids[1]].all().collect();
    assert!(used.iter().all(|run| recorded.contains(run)), "{used:?} of {recorded:?}");
    check_after_a_crash(&world, &BTreeMap::new(), "all is back").await;
}

/// What no record names may be somebody's: nobody removes it.
#[tokio::test]
async fn runs_that_the_record_lacks_are_not_removed() {
    let world = World::new().await;
    let parts = world.parts();
    let partition = Partition::open(&process(&world, &parts), PARTITION).await.unwrap();
    partition.apply(put("a", "in a run")).await.unwrap();
    partition.flush().await.unwrap();
    partition.close().await;
    let record = crate::index::ExtentRecord::default();
    let key = crate::index::ExtentRecord::key(PARTITION);
    parts.coordinator.txn(&[], &[Op::Put(key, record.encode())]).await.unwrap();
    let before = world.capacity.extents_of_index();
    let partition = Partition::open(&process(&world, &parts), PARTITION).await.unwrap();
    for _ in 0..2 {
        partition.apply(put("a", "in another")).await.unwrap();
        partition.flush().await.unwrap();
    }
    let (sources, _) = partition.core.published();
    let families = Family::ALL.into_iter();
    let family = families.max_by_key(|family| sources.runs(*family).len()).unwrap();
    assert_eq!(sources.runs(family).len(), 3);
    partition.merge(family, sources.runs(family), true).await.unwrap();
    drop(sources);
    partition.core.shared.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(before.iter().all(|id| there.contains(id)), "{before:?} of {there:?}");
}

/// What it uses cannot be known: until it is repaired, nothing is removed.
#[tokio::test]
async fn a_partition_of_an_older_store_that_cannot_be_read_shares_everything() {
    let world = World::new().await;
    let parts = world.parts();
    let (ids, damaged) = older_with_a_damaged_half(&world, &parts).await;
    upgrade(&world, &parts).await;
    let before = world.capacity.extents_of_index();
    let process = process(&world, &parts);
    let left = Partition::open(&process, ids[0]).await.unwrap();
    separate(&left).await;
    process.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(before.iter().all(|id| there.contains(id)), "{before:?} of {there:?}");
    world.capacity.flip(damaged, 0, 33);
    let right = Partition::open(&process, ids[1]).await.unwrap();
    separate(&right).await;
    process.do_chores().await;
    assert_eq!(left.rows().await.len() + right.rows().await.len(), 52);
    let used: BTreeSet<ExtentId> = left.core.uses().into_iter().chain(right.core.uses()).collect();
    let there: BTreeSet<ExtentId> = world.capacity.extents_of_index().into_iter().collect();
    assert_eq!(there, used);
}
