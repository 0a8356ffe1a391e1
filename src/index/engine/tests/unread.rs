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
use crate::index::engine::extents::Sharers;
use crate::index::engine::partition::Partition;
use crate::index::engine::shared::Parts;
use crate::index::engine::testing::{Fault, PARTITION, When, World, put};
use crate::telemetry::CapturedLog;
use crate::types::ExtentId;
use crate::types::PartitionId;

const GARBAGE: &[u8] = &[1, 0xFF, 0xFF];

/// Replaces a value; gives what it was.
async fn replace(parts: &Parts, key: &Bytes, value: impl Into<Bytes>) -> Bytes {
    let before = parts.coordinator.get(key).await.unwrap().unwrap().value;
    parts.coordinator.txn(&[], &[Op::Put(key.clone(), value.into())]).await.unwrap();
    before
}

/// Two partitions that share runs, served by nobody; and the runs.
async fn two_closed(world: &World, parts: &Parts) -> ([PartitionId; 2], Vec<ExtentId>) {
    let both = shared_by_two(world, parts).await;
    let runs = both[0].core.snapshot().sources.extents().collect();
    for one in &both {
        one.core.shared.do_chores().await;
        one.abandon().await;
    }
    (both.map(|one| one.core.id), runs)
}

fn there(world: &World) -> BTreeSet<ExtentId> {
    world.capacity.extents_of_index().into_iter().collect()
}

#[tokio::test]
async fn a_record_of_a_newer_release_is_told_as_that() {
    let world = World::new().await;
    let parts = world.parts();
    let key = ExtentRecord::key(PARTITION);
    parts.coordinator.txn(&[], &[Op::Put(key, Bytes::from_static(&[7, 1, 2, 3]))]).await.unwrap();
    let one = ExtentRecord::load(parts.coordinator.as_ref(), PARTITION).await.unwrap_err();
    let all = ExtentRecord::load_all(parts.coordinator.as_ref()).await.unwrap().whole();
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
    let parts = world.parts();
    let (ids, shared) = two_closed(&world, &parts).await;
    let key = ExtentRecord::key(ids[1]);
    let before = replace(&parts, &key, GARBAGE).await;
    let of_right: BTreeSet<ExtentId> = ExtentRecord::decode(&before).unwrap().all().collect();
    upgrade(&world, &parts).await;
    let text = String::from_utf8(key.to_vec()).unwrap();
    assert_eq!(log.lines_with(&["ERROR", &text, "malformed"]), 1);

    let process = process(&world, &parts);
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

    replace(&parts, &key, before).await;
    let right = Partition::open(&process, ids[1]).await.unwrap();
    separate(&right).await;
    process.do_chores().await;
    assert!(!shared.iter().any(|run| there(&world).contains(run)), "{shared:?}");
}

/// The others are of an older release: what that did not record is not given to any of them alone.
#[tokio::test]
async fn a_malformed_record_beside_an_older_partition_shares_everything() {
    let world = World::new().await;
    let parts = world.parts();
    let both = shared_by_two(&world, &parts).await;
    separate(&both[1]).await;
    let used = both[1].core.uses();
    let ids = become_older(&parts, both).await;
    let key = ExtentRecord::key(ids[1]);
    let garbage = Op::Put(key.clone(), Bytes::from_static(GARBAGE));
    parts.coordinator.txn(&[], &[garbage]).await.unwrap();
    upgrade(&world, &parts).await;
    assert_eq!(parts.coordinator.get(&key).await.unwrap().unwrap().value, GARBAGE);
    let first = process(&world, &parts);
    let left = Partition::open(&first, ids[0]).await.unwrap();
    separate(&left).await;
    first.do_chores().await;
    assert!(used.is_subset(&there(&world)), "{used:?} of {:?}", there(&world));
    left.close().await;

    parts.coordinator.txn(&[], &[Op::Delete(key)]).await.unwrap();
    upgrade(&world, &parts).await;
    assert!(parts.coordinator.get(b"unrecorded-extents").await.unwrap().is_none());
    check_after_a_crash(&world, &BTreeMap::new(), "repaired").await;
}

#[tokio::test]
async fn a_malformed_list_keeps_its_extent_and_is_told_once_by_each_partition() {
    let log = CapturedLog::default();
    let world = World::new().await;
    let parts = world.parts();
    let (ids, shared) = two_closed(&world, &parts).await;
    let (kept, others) = shared.split_first().unwrap();
    assert!(!others.is_empty());
    let key = Sharers::key(*kept);
    let before = replace(&parts, &key, GARBAGE).await;
    upgrade(&world, &parts).await;
    let _log = log.begin();
    let first = process(&world, &parts);
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

    replace(&parts, &key, before).await;
    check_after_a_crash(&world, &BTreeMap::new(), "repaired").await;
}

#[tokio::test]
async fn a_release_that_fails_for_long_is_told_once() {
    let log = CapturedLog::default();
    let _log = log.begin();
    let world = World::new().await;
    let shared = process(&world, &world.parts());
    let partition = Partition::open(&shared, PARTITION).await.unwrap();
    partition.reserve(1).await.unwrap();
    shared.do_chores().await;
    let owner = partition.core.owner();
    let extent = shared.create(ExtentKind::Run, owner).await.unwrap().extent;
    shared.release(owner.extents, extent);
    world.capacity.fail(When::From(0), Fault::Refused(capacity::Error::Full));
    let told = || log.lines_with(&["WARN", "a log or run could not be released"]);
    for tries in 1..=29 {
        shared.do_chores().await;
        assert_eq!(shared.parts.metrics.release_failures(), tries);
    }
    assert_eq!(told(), 0);
    for _ in 0..40 {
        shared.do_chores().await;
    }
    assert_eq!(told(), 1);
    world.capacity.crash();
    shared.do_chores().await;
    assert!(!there(&world).contains(&extent));
    shared.do_chores().await;
    assert_eq!(shared.parts.metrics.release_failures(), 69);
}
