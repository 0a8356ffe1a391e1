//! What the coordinator refuses, or does not answer, changes nothing: the partition goes on with
//! the log it has.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::capacity;
use crate::capacity::ExtentKind;
use crate::coordinator;
use crate::index::api::Error;
use crate::index::engine::core::Status;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{Fault, When, World, is_no_room, put};
use crate::index::rows::Family;
use crate::index::rows::Rows;

/// Longer than any pause between two tries.
const LONG: Duration = Duration::from_secs(60);

impl World {
    /// Whether the coordinator answers from now on.
    fn coordinator_is_away(&self, away: bool) {
        let unavailable_per_mille = if away { 1000 } else { 0 };
        let faults = coordinator::Faults { unavailable_per_mille, ..Default::default() };
        self.store.set_faults(faults);
    }

    fn poison_once(&self) {
        self.capacity.fail(When::Once(0), Fault::Refused(capacity::Error::Poisoned { disk: 0 }));
    }
}

async fn fill(partition: &Partition, count: usize) {
    for number in 0..count {
        let write = put(&format!("key{:03}", number % 50), &"x".repeat(100));
        partition.apply(write).await.unwrap();
    }
}

async fn sleep(partition: &Partition, duration: Duration) {
    partition.core.context.deps.env.clock.sleep(duration).await;
}

/// Nothing but what the partition uses is left.
async fn check_extents(world: &World, partition: &Partition) {
    let (logs, runs) = check_owned(partition).await;
    assert_eq!(world.capacity.count(ExtentKind::Log), logs);
    assert_eq!(world.capacity.count(ExtentKind::Run), runs);
}

/// Nothing is recorded but what is used, and ids under which nothing was created.
pub(super) async fn check_owned(partition: &Partition) -> (usize, usize) {
    partition.core.context.do_chores().await;
    let logs = partition.core.log_extents();
    let runs = partition.core.snapshot().sources.runs.iter().map(Vec::len).sum::<usize>();
    let uses = partition.core.uses();
    assert_eq!(partition.core.extents.unused(&uses), [], "all else is released");
    assert_eq!(uses.len(), runs + logs);
    (logs, runs)
}

#[tokio::test(start_paused = true)]
async fn log_that_cannot_roll_goes_on_where_it_is() {
    let mut world = World::new().await;
    world.config.log_extent_bytes = 4000;
    let partition = world.open().await.unwrap();
    fill(&partition, 1).await;
    world.coordinator_is_away(true);
    fill(&partition, 100).await;
    assert_eq!(partition.core.log_extents(), 1);
    world.coordinator_is_away(false);
    sleep(&partition, LONG).await;
    fill(&partition, 100).await;
    assert!(partition.core.log_extents() > 1, "it is tried again");
    check_extents(&world, &partition).await;
    let rows = partition.rows().await;
    drop(partition);
    assert_eq!(world.open().await.unwrap().rows().await, rows);
}

#[tokio::test(start_paused = true)]
async fn flush_needs_no_coordinator() {
    flush_without(|world, is_without| world.coordinator_is_away(is_without)).await;
    flush_without(|world, is_without| world.store.set_full(is_without)).await;
}

async fn flush_without(coordinator_is: impl Fn(&World, bool)) {
    let mut world = World::new().await;
    world.config.log_extent_bytes = 4000;
    let partition = world.open().await.unwrap();
    // Several log extents, so that a flush has something to trim.
    fill(&partition, 60).await;
    assert!(partition.core.log_extents() > 1);
    // More than a flush leaves in a log it does not roll.
    partition.apply(put("large", &"x".repeat(1 << 20))).await.unwrap();
    for round in 0..3 {
        coordinator_is(&world, true);
        partition.apply(put("round", &round.to_string())).await.unwrap();
        partition.flush().await.unwrap();
        assert_eq!(partition.core.status(), Status::Serving);
        assert_eq!(partition.core.table_bytes(), 0);
        assert!(partition.core.log_extents() > 1, "nothing was trimmed");
        partition.apply(put("again", &round.to_string())).await.unwrap();
    }
    coordinator_is(&world, false);
    partition.flush().await.unwrap();
    assert_eq!(partition.core.log_extents(), 1, "the trim is tried again");
    while partition.compact().await.unwrap() {}
    check_extents(&world, &partition).await;
    let rows = partition.rows().await;
    drop(partition);
    assert_eq!(world.open().await.unwrap().rows().await, rows);
}

/// The torn end of a log must be cut off by a roll before anything follows it: until then writes
/// are refused.
#[tokio::test(start_paused = true)]
async fn torn_log_takes_writes_again_once_it_has_rolled() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    fill(&partition, 10).await;
    let before = partition.rows().await;
    world.coordinator_is_away(true);
    world.poison_once();
    for number in 0..100 {
        let refused = partition.apply(put(&format!("new{number}"), "x")).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    }
    assert!(partition.flush().await.is_err());
    assert_eq!(partition.rows().await, before);
    partition.core.context.do_chores().await;
    assert!(world.capacity.count(ExtentKind::Log) <= 2, "refused rolls leave nothing behind");
    world.coordinator_is_away(false);
    sleep(&partition, LONG).await;
    partition.apply(put("after", "x")).await.unwrap();
    partition.flush().await.unwrap();
    check_extents(&world, &partition).await;
    let rows = partition.rows().await;
    assert_eq!(rows.len(), before.len() + 1);
    drop(partition);
    assert_eq!(world.open().await.unwrap().rows().await, rows);
}

/// The failed append has reached the log nevertheless. Its write was refused, so it must not
/// appear: the record that follows says where the extent before it ended.
#[tokio::test(start_paused = true)]
async fn record_of_a_failed_append_stays_cut_off_once_the_log_has_rolled() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("before", "1")).await.unwrap();
    world.coordinator_is_away(true);
    world.capacity.fail(When::Once(0), Fault::Lied(capacity::Error::Poisoned { disk: 0 }));
    let refused = partition.apply(put("refused", "2")).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    world.coordinator_is_away(false);
    sleep(&partition, LONG).await;
    partition.apply(put("after", "3")).await.unwrap();
    let rows = partition.rows().await;
    let keys: Vec<_> = rows.iter().map(|(key, _)| key.as_ref()).collect();
    assert_eq!(keys, [b"after".as_slice(), b"before"]);
    drop(partition);
    assert_eq!(world.descriptor().await.log.len(), 2, "the log has rolled and was not flushed");
    assert_eq!(world.open().await.unwrap().rows().await, rows);
}

/// A manifest that may or may not be durable names runs that must stay until a roll has cut it off,
/// and no longer.
#[tokio::test(start_paused = true)]
async fn runs_of_a_doubtful_manifest_go_once_the_log_has_rolled() {
    for fault in [
        Fault::Refused(capacity::Error::Poisoned { disk: 0 }),
        Fault::Lied(capacity::Error::Poisoned { disk: 0 }),
    ] {
        let mut doubtful = 0;
        for call in 0..30 {
            for crash in [true, false] {
                let world = World::new().await;
                let partition = world.open().await.unwrap();
                fill(&partition, 10).await;
                let rows = partition.rows().await;
                world.coordinator_is_away(true);
                world.capacity.fail(When::Once(call), fault.clone());
                let failed = partition.flush().await.is_err();
                partition.core.context.do_chores().await;
                doubtful += usize::from(failed && world.capacity.count(ExtentKind::Run) > 0);
                world.coordinator_is_away(false);
                if crash {
                    drop(partition);
                    assert_eq!(world.open().await.unwrap().rows().await, rows, "call {call}");
                    continue;
                }
                sleep(&partition, LONG).await;
                partition.flush().await.unwrap();
                // An extent that was made although its making failed is left to the audit.
                check_owned(&partition).await;
                assert_eq!(partition.rows().await, rows);
                drop(partition);
                assert_eq!(world.open().await.unwrap().rows().await, rows, "call {call}");
            }
        }
        assert!(doubtful > 1, "{doubtful}");
    }
}

#[tokio::test(start_paused = true)]
async fn compaction_that_was_refused_is_tried_again() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for _ in 0..4 {
        fill(&partition, 10).await;
        partition.flush().await.unwrap();
    }
    // No ids are left for a new run, and none are to be had.
    for _ in 0..coordinator::counter::BATCH {
        let left =
            partition.core.context.deps.extent_ids.next_extent(ExtentKind::Log).await.unwrap();
        if left.get() % coordinator::counter::BATCH == 0 {
            break;
        }
    }
    while partition.core.extents.take(&partition.core.context.pins).is_some() {}
    world.coordinator_is_away(true);
    assert!(partition.compact().await.is_err());
    assert!(partition.core.may_compact());
    world.coordinator_is_away(false);
    sleep(&partition, LONG).await;
    assert_eq!(partition.compact().await, Ok(true));
}

/// Every transaction of a fixed load goes wrong once, in every way: nothing acknowledged is lost,
/// nothing refused appears.
#[tokio::test(start_paused = true)]
async fn partition_loses_nothing_when_any_transaction_fails() {
    use coordinator::Fault;
    let faults = [Fault::Unavailable, Fault::AmbiguousApplied, Fault::AmbiguousLost];
    for fault in faults {
        for at in 0..30 {
            let mut world = World::new().await;
            world.config.log_extent_bytes = 3000;
            let partition = world.open().await.unwrap();
            let mut sure = BTreeMap::new();
            for number in 0..60 {
                if number == at {
                    world.store.inject(fault);
                }
                let (key, value) =
                    (format!("key{:03}", number % 20), number.to_string().repeat(60));
                // The first write needs a new extent. If that is refused, the write has not
                // happened.
                while let Err(refused) = partition.apply(put(&key, &value)).await {
                    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
                    assert_eq!(partition.rows().await.len(), sure.len());
                    sleep(&partition, Duration::from_secs(1)).await;
                }
                sure.insert(Bytes::from(key), Bytes::from(value));
                if number % 9 == 0 {
                    partition.flush().await.unwrap();
                    while partition.compact().await.unwrap() {}
                }
                sleep(&partition, Duration::from_secs(1)).await;
            }
            let expected: Vec<_> = sure.into_iter().collect();
            assert_eq!(partition.rows().await, expected, "{fault:?} at {at}");
            partition.flush().await.unwrap();
            check_extents(&world, &partition).await;
            drop(partition);
            assert_eq!(world.open().await.unwrap().rows().await, expected, "{fault:?} at {at}");
        }
    }
}

/// What a stopped partition holds in memory is not what the others may write.
#[tokio::test(start_paused = true)]
async fn memtables_of_a_stopped_partition_do_not_count() {
    let mut world = World::new().await;
    world.config.log_extent_bytes = 3000;
    let partition = world.open().await.unwrap();
    fill(&partition, 5).await;
    let faults = coordinator::Faults { ambiguous_per_mille: 1000, ..Default::default() };
    world.store.set_faults(coordinator::Faults { unavailable_per_mille: 0, ..faults });
    while partition.core.status() == Status::Serving {
        // Every roll is applied or lost, and its outcome is not reported.
        drop(partition.apply(put("key", &"x".repeat(500))).await);
    }
    assert!(
        partition.core.snapshot().scan(Family::Main, &[], None, 99).await.is_ok(),
        "reads go on"
    );
    assert_eq!(partition.core.context.budget.used(), 0);
    drop(partition.apply(put("key", "more")).await);
    let context = std::sync::Arc::clone(&partition.core.context);
    assert_eq!(context.budget.used(), 0);
    drop(partition);
    assert_eq!(context.budget.used(), 0, "nothing is given back twice");
}

/// The log of a partition that was just opened must roll before the first write.
#[tokio::test(start_paused = true)]
async fn writes_for_which_the_log_must_roll_fail_because_the_coordinator_is_full() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    world.store.set_full(true);
    for number in 0..10 {
        let refused = partition.apply(put("a", "refused")).await.unwrap_err();
        assert!(is_no_room(&refused), "{number}: {refused:?}");
        sleep(&partition, Duration::from_secs(1)).await;
    }
    assert_eq!(partition.core.context.budget.used(), 0);
    world.store.set_full(false);
    sleep(&partition, LONG).await;
    partition.apply(put("a", "taken")).await.unwrap();
    assert_eq!(partition.rows().await.len(), 1);
    check_extents(&world, &partition).await;
}

/// Whatever became of the roll, the write for which it was tried has not happened: it waits for the
/// partition to be opened again, or fails because there is no room.
#[tokio::test(start_paused = true)]
async fn a_write_whose_roll_is_in_doubt_has_surely_not_happened() {
    let (mut waiting, mut refused) = (0, 0);
    // The ids, their record, and the descriptor.
    for after in 0..3 {
        let world = World::new().await;
        let partition = world.open().await.unwrap();
        world.store.inject_after(after, coordinator::Fault::LostThenFull);
        let failure = partition.apply(put("a", "1")).await.unwrap_err();
        if failure == Error::WrongPartition {
            assert!(matches!(partition.core.status(), Status::Stopped(_)));
            waiting += 1;
        } else {
            assert!(is_no_room(&failure), "{after}: {failure:?}");
            assert_eq!(partition.core.status(), Status::Serving);
            refused += 1;
        }
        world.store.set_full(false);
        drop(partition);
        assert_eq!(world.open().await.unwrap().rows().await, [], "{after}");
    }
    assert!(waiting > 0 && refused > 0, "{waiting}, {refused}");
}

#[tokio::test(start_paused = true)]
async fn full_memtables_that_wait_for_the_coordinators_room_are_reported() {
    let mut world = World::new().await;
    world.config.memtable_bytes_max = 100_000;
    let partition = world.open().await.unwrap();
    partition.apply(put("first", "x")).await.unwrap();
    while partition.core.extents.take(&partition.core.context.pins).is_some() {}
    world.store.set_full(true);
    let mut number = 0;
    while partition.core.may_write().is_ok() {
        partition.apply(put(&format!("key{number}"), &"x".repeat(1_000))).await.unwrap();
        number += 1;
    }
    assert_eq!(partition.core.may_write(), Err(Error::Overloaded), "no flush was tried");
    partition.flush().await.unwrap_err();
    let refused = partition.apply(put("more", "x")).await.unwrap_err();
    assert!(is_no_room(&refused), "{refused:?}");
    world.store.set_full(false);
    sleep(&partition, LONG).await;
    partition.flush().await.unwrap();
    partition.apply(put("more", "x")).await.unwrap();
}
