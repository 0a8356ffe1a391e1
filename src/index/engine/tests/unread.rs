//! Records and lists in the coordinator that cannot be read: what they may name is kept, the rest
//! goes on.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use bytes::Bytes;

use super::extents::{check_after_a_crash, process, separate, shared_by_two};
use super::upgrade::{become_older, upgrade};
use crate::capacity;
use crate::capacity::ExtentKind;
use crate::coordinator::Op;
use crate::index::ExtentRecord;
use crate::index::api::Damage;
use crate::index::api::Error;
use crate::index::engine::context::Dependencies;
use crate::index::engine::extents::Sharers;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{Fault, PARTITION, When, World, put};
use crate::telemetry::CapturedLog;
use crate::types::ExtentId;
use crate::types::PartitionId;

const GARBAGE: &[u8] = &[1, 0xFF, 0xFF];

/// Replaces a value, and returns the old one.
async fn replace(deps: &Dependencies, key: &Bytes, value: impl Into<Bytes>) -> Bytes {
    let before = deps.coordinator.get(key).await.unwrap().unwrap().value;
    deps.coordinator.txn(&[], &[Op::Put(key.clone(), value.into())]).await.unwrap();
    before
}

/// Two closed partitions that share runs, and the runs.
async fn two_closed(world: &World, deps: &Dependencies) -> ([PartitionId; 2], Vec<ExtentId>) {
    let both = shared_by_two(world, deps).await;
    let runs = both[0].core.snapshot().sources.extents().collect();
    for one in &both {
        one.core.context.do_chores().await;
        one.abandon().await;
    }
    (both.map(|one| one.core.id), runs)
}

fn there(world: &World) -> BTreeSet<ExtentId> {
    world.capacity.extents_of_index().into_iter().collect()
}

#[tokio::test]
async fn a_record_of_a_newer_release_is_reported_as_such() {
    let world = World::new().await;
    let deps = world.deps();
    let key = ExtentRecord::key(PARTITION);
    deps.coordinator.txn(&[], &[Op::Put(key, Bytes::from_static(&[7, 1, 2, 3]))]).await.unwrap();
    let one = ExtentRecord::load(deps.coordinator.as_ref(), PARTITION).await.unwrap_err();
    let all = ExtentRecord::load_all(deps.coordinator.as_ref()).await.unwrap().whole();
    for refused in [one, all.unwrap_err()] {
        let Error::Corrupt(Damage::Rows(text)) = &refused else { panic!("{refused:?}") };
        let parts = ["`extents/0000000000000001`", "version 7", "run that release"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[tokio::test]
async fn a_malformed_record_keeps_what_its_partition_may_use_and_nothing_else() {
    let log = CapturedLog::default();
    let _log = log.begin();
    let world = World::new().await;
    let deps = world.deps();
    let (ids, shared) = two_closed(&world, &deps).await;
    let key = ExtentRecord::key(ids[1]);
    let before = replace(&deps, &key, GARBAGE).await;
    let of_right: BTreeSet<ExtentId> = ExtentRecord::decode(&before).unwrap().all().collect();
    upgrade(&world, &deps).await;
    let text = String::from_utf8(key.to_vec()).unwrap();
    assert_eq!(log.lines_with(&["ERROR", &text, "malformed"]), 1);

    let process = process(&world, &deps);
    let refused = Partition::open(&process, ids[1]).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Corrupt(Damage::Rows(why)) if why.contains(&text)),
        "{refused:?}"
    );
    let left = Partition::open(&process, ids[0]).await.unwrap();
    process.do_chores().await;
    for _ in 0..5 {
        left.apply(put("a", "in a run of its own")).await.unwrap();
        separate(&left).await;
        while left.compact().await.unwrap() {}
        process.do_chores().await;
    }
    assert!(shared.iter().all(|run| there(&world).contains(run)), "{shared:?}");
    let may_be: BTreeSet<ExtentId> = left.core.uses().union(&of_right).copied().collect();
    assert!(there(&world).is_subset(&may_be), "{:?} of {may_be:?}", there(&world));

    replace(&deps, &key, before).await;
    let right = Partition::open(&process, ids[1]).await.unwrap();
    separate(&right).await;
    process.do_chores().await;
    assert!(!shared.iter().any(|run| there(&world).contains(run)), "{shared:?}");
}

/// The others are of an older release: what that did not record is not given to any of them alone.
#[tokio::test]
async fn a_malformed_record_beside_an_older_partition_shares_everything() {
    let world = World::new().await;
    let deps = world.deps();
    let both = shared_by_two(&world, &deps).await;
    separate(&both[1]).await;
    let used = both[1].core.uses();
    let ids = become_older(&deps, both).await;
    let key = ExtentRecord::key(ids[1]);
    let garbage = Op::Put(key.clone(), Bytes::from_static(GARBAGE));
    deps.coordinator.txn(&[], &[garbage]).await.unwrap();
    upgrade(&world, &deps).await;
    assert_eq!(deps.coordinator.get(&key).await.unwrap().unwrap().value, GARBAGE);
    let first = process(&world, &deps);
    let left = Partition::open(&first, ids[0]).await.unwrap();
    separate(&left).await;
    first.do_chores().await;
    assert!(used.is_subset(&there(&world)), "{used:?} of {:?}", there(&world));
    left.close().await;

    deps.coordinator.txn(&[], &[Op::Delete(key)]).await.unwrap();
    upgrade(&world, &deps).await;
    assert!(deps.coordinator.get(b"unrecorded-extents").await.unwrap().is_none());
    check_after_a_crash(&world, &BTreeMap::new(), "repaired").await;
}

#[tokio::test]
async fn a_malformed_list_keeps_its_extent_and_is_logged_once_by_each_partition() {
    let log = CapturedLog::default();
    let world = World::new().await;
    let deps = world.deps();
    let (ids, shared) = two_closed(&world, &deps).await;
    let (kept, others) = shared.split_first().unwrap();
    assert!(!others.is_empty());
    let key = Sharers::key(*kept);
    let before = replace(&deps, &key, GARBAGE).await;
    upgrade(&world, &deps).await;
    let _log = log.begin();
    let first = process(&world, &deps);
    for id in ids {
        let one = Partition::open(&first, id).await.unwrap();
        separate(&one).await;
        for _ in 0..3 {
            first.do_chores().await;
        }
        one.close().await;
    }
    let text = String::from_utf8(key.to_vec()).unwrap();
    assert_eq!(
        log.lines_with(&["ERROR", &text, "malformed"]),
        2,
        "once for each of two partitions"
    );
    assert!(there(&world).contains(kept));
    assert!(!others.iter().any(|run| there(&world).contains(run)), "{others:?}");

    replace(&deps, &key, before).await;
    check_after_a_crash(&world, &BTreeMap::new(), "repaired").await;
}

#[tokio::test]
async fn a_release_that_fails_for_long_is_logged_once() {
    let log = CapturedLog::default();
    let _log = log.begin();
    let world = World::new().await;
    let context = process(&world, &world.deps());
    let partition = Partition::open(&context, PARTITION).await.unwrap();
    partition.reserve(1).await.unwrap();
    context.do_chores().await;
    let owner = partition.core.owner();
    let extent = context.create(ExtentKind::Run, owner).await.unwrap().extent;
    context.release(owner.extents, extent);
    world.capacity.fail(When::From(0), Fault::Refused(capacity::Error::Full));
    let warnings = || log.lines_with(&["WARN", "a log or run could not be released"]);
    for tries in 1..=29 {
        context.do_chores().await;
        assert_eq!(context.deps.metrics.release_failures(), tries);
    }
    assert_eq!(warnings(), 0);
    for _ in 0..40 {
        context.do_chores().await;
    }
    assert_eq!(warnings(), 1);
    world.capacity.crash();
    context.do_chores().await;
    assert!(!there(&world).contains(&extent));
    context.do_chores().await;
    assert_eq!(context.deps.metrics.release_failures(), 69);
}
