use super::*;
use crate::index::engine::testing::{PARTITION, World, put};
use crate::types::Epoch;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;
use crate::types::Stripe;
use crate::types::Timestamp;

fn keys(low: &'static str, high: Option<&'static str>) -> PartitionKeys {
    let key = |key: &'static str| RoutingKey::from_bytes(key.into());
    KeyRange::new(key(low), high.map(key)).into()
}

fn stripes(low: &'static str, high: &'static str, of: u8) -> Vec<PartitionKeys> {
    let range = keys(low, Some(high)).range().clone();
    Stripe::all(of).map(|stripe| PartitionKeys::striped(range.clone(), stripe)).collect()
}

fn is(checked: Result<(), Violation>, invariant: Invariant) -> bool {
    checked.is_err_and(|violation| violation.invariant == invariant)
}

#[test]
fn parts_that_do_not_tile_are_found() {
    let whole = keys("a", Some("z"));
    let mixed = |mut stripes: Vec<PartitionKeys>| {
        stripes.insert(0, keys("a", Some("c")));
        stripes.push(keys("k", Some("z")));
        stripes
    };
    let good = [
        vec![whole.clone()],
        vec![keys("a", Some("m")), keys("m", Some("z"))],
        stripes("a", "z", 3),
        mixed(stripes("c", "k", 2)),
    ];
    for parts in &good {
        assert_eq!(check_tiles(&whole, parts), Ok(()), "{parts:?}");
    }
    let bad = [
        vec![],
        vec![keys("a", Some("m"))],
        vec![keys("a", Some("m")), keys("n", Some("z"))],
        vec![keys("a", Some("n")), keys("m", Some("z"))],
        vec![keys("a", Some("m")), keys("m", None)],
        stripes("a", "z", 3).split_off(1),
        mixed(stripes("c", "k", 3).split_off(1)),
    ];
    for parts in &bad {
        assert!(is(check_tiles(&whole, parts), Invariant::Tiling), "{parts:?}");
    }
}

#[tokio::test]
async fn a_split_that_does_not_tile_is_refused_and_the_partition_goes_on() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    let id = PartitionId::new;
    let parts = vec![(id(2), keys("", Some("m"))), (id(3), keys("n", None))];
    let health = partition.core.context.deps.env.tasks.health();
    health.expect_violation("I5");
    let refused = partition.split(parts).await.err().map(|refused| format!("{refused:?}"));
    assert!(refused.as_ref().is_some_and(|why| why.contains("invariant I5")), "{refused:?}");
    assert_eq!(health.violations().len(), 1);
    partition.apply(put("b", "2")).await.unwrap();
    assert_eq!(partition.rows().await.len(), 2);
}

#[tokio::test]
async fn replacements_that_are_not_new_are_found() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    let held = partition.hold().await.unwrap();
    let old = [Old { log: &held.log, extents: &held.core.extents }];
    let of = |id, epoch: Epoch| {
        let id = PartitionId::new(id);
        let descriptor = PartitionDescriptor { id, epoch, ..held.log.descriptor.clone() };
        let uses = [].into();
        New { descriptor, heir: crate::index::engine::extents::Heir { id, uses } }
    };
    let next = held.core.epoch.next();
    assert_eq!(check_replacement(&old, &[of(7, next)]), Ok(()));
    for (id, epoch) in [(PARTITION.get(), next), (7, held.core.epoch)] {
        assert!(is(check_replacement(&old, &[of(id, epoch)]), Invariant::AtomicChange));
    }
    let twice = [of(7, next), of(8, next)];
    assert!(is(check_replacement(&old, &twice), Invariant::Tiling), "two of the same range");
    let before = &held.log.descriptor;
    let moved = PartitionDescriptor { epoch: next, host: HostId::new(9), ..before.clone() };
    assert_eq!(check_move(before, &moved), Ok(()));
    for other in [
        PartitionDescriptor { id: PartitionId::new(7), ..moved.clone() },
        PartitionDescriptor { log: Vec::new(), ..moved.clone() },
        PartitionDescriptor { epoch: before.epoch, ..moved.clone() },
        PartitionDescriptor { keys: keys("a", None), ..moved },
    ] {
        assert!(is(check_move(before, &other), Invariant::AtomicChange), "{other:?}");
    }
    held.resume();
}

#[tokio::test]
async fn partitions_that_begin_before_the_end_of_others_are_found() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    let held = [partition.hold().await.unwrap()];
    let [old] = &held;
    let begin = Begin { partition: PartitionId::new(7), sequence: old.sequence, time: old.time };
    assert_eq!(check_goes_on(begin, &held), Ok(()));
    let early = Begin { time: Timestamp::from_ticks(old.time.ticks() - 1), ..begin };
    assert!(is(check_goes_on(early, &held), Invariant::Seamless));
    let fewer = Begin { sequence: Sequence::new(old.sequence.get() - 1), ..begin };
    assert!(is(check_goes_on(fewer, &held), Invariant::Seamless));
    held.into_iter().for_each(Held::resume);
}
