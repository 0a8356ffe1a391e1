//! Stores of releases that recorded no logs and runs (ADR 0022), and records that other releases
//! left.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::extents::{check_after_a_crash, process, separate, shared_by_two};
use crate::capacity::{Capacity, ExtentKind};
use crate::coordinator;
use crate::coordinator::Op;
use crate::index::ExtentRecord;
use crate::index::engine;
use crate::index::engine::context::Dependencies;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{PARTITION, World, put};
use crate::index::map::PartitionMap;
use crate::index::rows::Family;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// As the program wrote it before there were records.
async fn forget_records(deps: &Dependencies) {
    for prefix in [b"extents/".as_slice(), b"sharers/"] {
        for (key, _) in deps.coordinator.range(prefix).await.unwrap().entries {
            deps.coordinator.txn(&[], &[Op::Delete(key)]).await.unwrap();
        }
    }
}

/// Ends what serves two partitions, and leaves the store as an older release does.
pub(super) async fn become_older(deps: &Dependencies, both: [Partition; 2]) -> [PartitionId; 2] {
    for one in &both {
        one.core.context.do_chores().await;
        one.abandon().await;
    }
    forget_records(deps).await;
    both.map(|one| one.core.id)
}

fn runs_of(partition: &Partition) -> Vec<ExtentId> {
    partition.core.snapshot().sources.runs.iter().flatten().map(|run| run.extent()).collect()
}

/// An older store of two partitions.
struct Older {
    world: World,
    deps: Dependencies,
    ids: [PartitionId; 2],
    /// The runs that both partitions use.
    shared: Vec<ExtentId>,
}

async fn older_with_shared_runs() -> Older {
    let world = World::new().await;
    let deps = world.deps();
    let both = shared_by_two(&world, &deps).await;
    let shared = runs_of(&both[0]);
    let ids = become_older(&deps, both).await;
    Older { world, deps, ids, shared }
}

#[tokio::test]
async fn an_older_store_is_recorded_at_its_first_start() {
    let Older { world, deps, ids, shared } = older_with_shared_runs().await;
    let orphan = ExtentId::new(1_000_000);
    world.capacity.create(orphan, ExtentKind::Run, Epoch::new(1)).await.unwrap();
    upgrade(&world, &deps).await;
    let recorded = deps.coordinator.range(b"").await.unwrap();
    upgrade(&world, &deps).await;
    assert_eq!(deps.coordinator.range(b"").await.unwrap(), recorded, "once is enough");

    let process = process(&world, &deps);
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
async fn older_with_a_damaged_half(
    world: &World,
    deps: &Dependencies,
) -> ([PartitionId; 2], ExtentId) {
    let both = shared_by_two(world, deps).await;
    let ids = become_older(deps, both).await;
    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    let log = |id| map.partitions().iter().find(|p| p.id == id).unwrap().log.clone();
    let damaged = *log(ids[1]).last().unwrap();
    world.capacity.flip(damaged, 0, 33);
    (ids, damaged)
}

pub(super) async fn upgrade(world: &World, deps: &Dependencies) {
    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    engine::upgrade(deps.coordinator.as_ref(), world.capacity.as_ref(), &map).await.unwrap();
}

/// Its first start created a log and was cut short before the descriptor named it.
#[tokio::test]
async fn log_of_an_older_store_that_was_never_used_is_removed() {
    let world = World::new().await;
    let deps = world.deps();
    let log = ExtentId::new(1_000_000);
    world.capacity.create(log, ExtentKind::Log, Epoch::new(1)).await.unwrap();
    upgrade(&world, &deps).await;
    let process = process(&world, &deps);
    let partition = Partition::open(&process, PARTITION).await.unwrap();
    partition.apply(put("a", "goes on")).await.unwrap();
    process.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(!there.contains(&log), "{log} of {there:?}");
}

/// As above, when the disk that has it is missing at the first start of the newer release.
#[tokio::test]
async fn log_on_a_missing_disk_that_an_older_store_never_used_is_removed_when_it_is_back() {
    let world = World::new().await;
    let deps = world.deps();
    let unnamed = ExtentId::new(1_000_000);
    world.capacity.create(unnamed, ExtentKind::Log, Epoch::new(1)).await.unwrap();
    world.capacity.set_away(&[unnamed]);
    let serve = async || {
        upgrade(&world, &deps).await;
        let process = process(&world, &deps);
        let partition = Partition::open(&process, PARTITION).await.unwrap();
        partition.apply(put("a", "goes on")).await.unwrap();
        partition.close().await;
        process.do_chores().await;
    };
    serve().await;
    let mark = deps.coordinator.get(b"unrecorded-extents").await.unwrap();
    assert!(mark.is_some(), "there may be more than was found");
    world.capacity.set_away(&[]);
    assert!(world.capacity.extents_of_index().contains(&unnamed));
    serve().await;
    assert!(!world.capacity.extents_of_index().contains(&unnamed));
    assert!(deps.coordinator.get(b"unrecorded-extents").await.unwrap().is_none());
}

/// A run that is away, as on a missing disk, is named by the half that can be read only.
#[tokio::test]
async fn a_run_that_is_away_is_shared_with_a_partition_that_cannot_be_read() {
    let world = World::new().await;
    let deps = world.deps();
    let (ids, _) = older_with_a_damaged_half(&world, &deps).await;
    let infos = world.capacity.extents().await;
    let run = infos.iter().find(|info| info.kind == ExtentKind::Run).unwrap().extent;
    world.capacity.remove(run).await.unwrap();
    upgrade(&world, &deps).await;
    let records = ExtentRecord::load_all(deps.coordinator.as_ref()).await.unwrap().read;
    for id in ids {
        assert!(records[&id].shared.contains_key(&run), "{run} of {id}: {records:?}");
    }
}

/// What only a partition names that cannot be read, on a disk that is missing at the first start,
/// is recorded when it is there again, and so are extents that no record names.
#[tokio::test]
async fn runs_on_a_disk_that_was_missing_at_the_first_start_are_recorded_when_it_is_back() {
    let world = World::new().await;
    let deps = world.deps();
    let both = shared_by_two(&world, &deps).await;
    separate(&both[1]).await;
    let used = runs_of(&both[1]);
    let ids = become_older(&deps, both).await;
    let map = PartitionMap::load(deps.coordinator.as_ref()).await.unwrap();
    let log = map.partitions().iter().find(|p| p.id == ids[1]).unwrap().log.clone();
    let orphan = ExtentId::new(1_000_000);
    world.capacity.create(orphan, ExtentKind::Run, Epoch::new(1)).await.unwrap();
    world.capacity.set_away(&[&used[..], &log[1..], &[orphan]].concat());
    upgrade(&world, &deps).await;
    let left = Partition::open(&process(&world, &deps), ids[0]).await.unwrap();
    left.apply(put("a", "goes on")).await.unwrap();
    left.close().await;
    world.capacity.set_away(&[]);
    // Cut short once.
    world.store.inject_after(0, coordinator::Fault::Unavailable);
    let again = engine::upgrade(deps.coordinator.as_ref(), world.capacity.as_ref(), &map);
    again.await.unwrap_err();
    for _ in 0..2 {
        upgrade(&world, &deps).await;
    }
    assert!(deps.coordinator.get(b"unrecorded-extents").await.unwrap().is_none());
    let records = ExtentRecord::load_all(deps.coordinator.as_ref()).await.unwrap().read;
    let recorded: BTreeSet<ExtentId> = records[&ids[1]].all().collect();
    assert!(used.iter().all(|run| recorded.contains(run)), "{used:?} of {recorded:?}");
    check_after_a_crash(&world, &BTreeMap::new(), "all is back").await;
}

/// A program without records served the store in between: the record is there, and what that
/// program created is not in it.
#[tokio::test]
async fn what_an_older_release_created_beside_a_record_is_recorded_and_removed_in_the_end() {
    let world = World::new().await;
    let deps = world.deps();
    let partition = Partition::open(&process(&world, &deps), PARTITION).await.unwrap();
    partition.apply(put("a", "in a run")).await.unwrap();
    partition.flush().await.unwrap();
    partition.core.context.do_chores().await;
    let before = deps.coordinator.get(&ExtentRecord::key(PARTITION)).await.unwrap().unwrap();
    partition.close().await;
    let partition = Partition::open(&process(&world, &deps), PARTITION).await.unwrap();
    partition.apply(put("b", "in a run of the older release")).await.unwrap();
    partition.flush().await.unwrap();
    partition.apply(put("c", "in its log")).await.unwrap();
    partition.core.context.do_chores().await;
    let used = partition.core.uses();
    partition.abandon().await;
    let orphan = ExtentId::new(1_000_000);
    world.capacity.create(orphan, ExtentKind::Run, Epoch::new(1)).await.unwrap();
    let found = ExtentRecord::load(deps.coordinator.as_ref(), PARTITION).await;
    let mut record = found.unwrap().unwrap().record;
    let known = ExtentRecord::decode(&before.value).unwrap();
    record.own.retain(|extent| known.has(*extent));
    assert!(used.iter().any(|extent| !record.has(*extent)));
    let put_back = Op::Put(ExtentRecord::key(PARTITION), record.encode());
    deps.coordinator.txn(&[], &[put_back]).await.unwrap();

    upgrade(&world, &deps).await;
    let recorded = deps.coordinator.range(b"").await.unwrap();
    upgrade(&world, &deps).await;
    assert_eq!(deps.coordinator.range(b"").await.unwrap(), recorded, "once is enough");
    let found = ExtentRecord::load(deps.coordinator.as_ref(), PARTITION).await;
    let record = found.unwrap().unwrap().record;
    assert!(used.iter().all(|extent| record.own.contains(extent)), "{used:?} of {record:?}");
    check_after_a_crash(&world, &BTreeMap::new(), "an older release in between").await;
}

/// It split the partition that used a run alone, and left its record behind.
#[tokio::test]
async fn a_run_that_an_older_release_shared_is_on_a_list_whatever_a_record_left_behind_says() {
    let Older { world, deps, ids, shared } = older_with_shared_runs().await;
    let own = shared.iter().copied().collect();
    let record = ExtentRecord { own, shared: BTreeMap::new() };
    let put_back = Op::Put(ExtentRecord::key(PARTITION), record.encode());
    deps.coordinator.txn(&[], &[put_back]).await.unwrap();
    upgrade(&world, &deps).await;
    let records = ExtentRecord::load_all(deps.coordinator.as_ref()).await.unwrap().read;
    for (id, run) in ids.iter().flat_map(|id| shared.iter().map(move |run| (id, run))) {
        assert!(records[id].shared.contains_key(run), "{run} of {id}: {records:?}");
    }
    let process = process(&world, &deps);
    let [left, right] = ids.map(|id| Partition::open(&process, id));
    let (left, right) = (left.await.unwrap(), right.await.unwrap());
    separate(&left).await;
    process.do_chores().await;
    assert!(shared.iter().all(|run| world.capacity.extents_of_index().contains(run)));
    separate(&right).await;
    process.do_chores().await;
    assert!(!shared.iter().any(|run| world.capacity.extents_of_index().contains(run)));
}

/// An extent that no record names may be in use: it is not removed.
#[tokio::test]
async fn runs_that_the_record_lacks_are_not_removed() {
    let world = World::new().await;
    let deps = world.deps();
    let partition = Partition::open(&process(&world, &deps), PARTITION).await.unwrap();
    partition.apply(put("a", "in a run")).await.unwrap();
    partition.flush().await.unwrap();
    partition.close().await;
    let record = ExtentRecord::default();
    let key = ExtentRecord::key(PARTITION);
    deps.coordinator.txn(&[], &[Op::Put(key, record.encode())]).await.unwrap();
    let before = world.capacity.extents_of_index();
    let partition = Partition::open(&process(&world, &deps), PARTITION).await.unwrap();
    for _ in 0..2 {
        partition.apply(put("a", "in another")).await.unwrap();
        partition.flush().await.unwrap();
    }
    let sources = partition.core.published().sources;
    let families = Family::ALL.into_iter();
    let family = families.max_by_key(|family| sources.runs(*family).len()).unwrap();
    assert_eq!(sources.runs(family).len(), 3);
    partition.merge_runs(family, sources.runs(family), true).await.unwrap();
    drop(sources);
    partition.core.context.do_chores().await;
    let there = world.capacity.extents_of_index();
    assert!(before.iter().all(|id| there.contains(id)), "{before:?} of {there:?}");
}

/// What it uses cannot be known: until it is repaired, nothing is removed.
#[tokio::test]
async fn a_partition_of_an_older_store_that_cannot_be_read_shares_everything() {
    let world = World::new().await;
    let deps = world.deps();
    let (ids, damaged) = older_with_a_damaged_half(&world, &deps).await;
    upgrade(&world, &deps).await;
    let before = world.capacity.extents_of_index();
    let process = process(&world, &deps);
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
