//! Failing, lying and full capacity at every call.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::capacity;
use crate::capacity::ExtentKind;
use crate::coordinator::Op;
use crate::index::api::Damage;
use crate::index::api::{Error, Full};
use crate::index::engine::failed::Failed;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{Fault, PARTITION, When, World, put, put_if_absent, remove};
use crate::index::engine::tests::refusals::check_owned;
use crate::index::map::PartitionDescriptor;
use crate::types::ExtentId;

const POISONED: capacity::Error = capacity::Error::Poisoned { disk: 0 };

/// What must be there, and what may or may not be.
#[derive(Default)]
struct Known {
    sure: BTreeMap<Bytes, Bytes>,
    unsure: Vec<(Bytes, Option<Bytes>)>,
}

impl Known {
    async fn put(&mut self, partition: &Partition, number: usize) {
        let (key, value) = (format!("key{:03}", number % 40), format!("{number}").repeat(40));
        let result = partition.apply(put(&key, &value)).await;
        self.note(key, Some(value), result);
    }

    async fn remove(&mut self, partition: &Partition, number: usize) {
        let key = format!("key{:03}", number % 40);
        let result = partition.apply(remove(&key)).await;
        self.note(key, None, result);
    }

    fn note(&mut self, key: String, value: Option<String>, result: Result<(), Error>) {
        let (key, value) = (Bytes::from(key), value.map(Bytes::from));
        match (result, value) {
            (Ok(()), Some(value)) => drop(self.sure.insert(key, value)),
            (Ok(()), None) => drop(self.sure.remove(&key)),
            (Err(Error::Full(_)), _) => {}
            (Err(Error::Unavailable(_)), value) => self.unsure.push((key, value)),
            (Err(error), _) => panic!("unexpected {error}"),
        }
    }

    fn check(&self, rows: &[(Bytes, Bytes)], what: &str) {
        let rows: BTreeMap<_, _> = rows.iter().cloned().collect();
        let keys = rows.keys().chain(self.sure.keys());
        for key in keys {
            let found = rows.get(key);
            let expected = found == self.sure.get(key)
                || self.unsure.iter().any(|(other, value)| other == key && value.as_ref() == found);
            assert!(expected, "{what}: key {key:?} is {found:?}, not {:?}", self.sure.get(key));
        }
    }
}

/// Runs a fixed load in which one call of capacity goes wrong; returns how many calls there were.
async fn run(fault: Option<(When, Fault)>) -> usize {
    let what = format!("{fault:?}");
    let mut world = World::new().await;
    world.config.log_extent_bytes = 6000;
    let mut known = Known::default();
    let partition = world.open().await.unwrap();
    for number in 0..20 {
        known.put(&partition, number).await;
    }
    world.capacity.fail(
        fault.clone().map_or(When::Once(usize::MAX), |f| f.0),
        fault.map_or(Fault::Refused(POISONED), |f| f.1),
    );
    for number in 20..60 {
        known.put(&partition, number).await;
        known.remove(&partition, number + 7).await;
        if number % 6 == 0 {
            drop(partition.flush().await);
        }
        if number % 12 == 0 {
            drop(partition.compact().await);
        }
        partition.core.context.do_chores().await;
    }
    known.check(&partition.rows().await, &what);
    partition.close().await;
    let calls = world.capacity.calls();
    drop(partition);

    // Opened twice without a write between: replay gives the same again (I14).
    let first = world.open().await.expect(&what).rows().await;
    known.check(&first, &what);
    let again = world.open().await.expect(&what);
    assert_eq!(again.rows().await, first, "{what}");
    again.apply(put("after", "fault")).await.expect(&what);
    calls
}

#[tokio::test]
async fn partition_loses_nothing_when_any_call_fails() {
    let calls = run(None).await;
    assert!(calls > 100, "the load makes {calls} calls");
    for number in 0..calls {
        run(Some((When::Once(number), Fault::Refused(POISONED)))).await;
        run(Some((When::Once(number), Fault::Lied(POISONED)))).await;
        run(Some((When::Once(number), Fault::Torn(POISONED)))).await;
        run(Some((When::Once(number), Fault::Refused(capacity::Error::Full)))).await;
    }
    for number in (0..calls).step_by(7) {
        run(Some((When::From(number), Fault::Refused(POISONED)))).await;
        run(Some((When::From(number), Fault::Lied(POISONED)))).await;
        run(Some((When::From(number), Fault::Refused(capacity::Error::Full)))).await;
    }
}

#[tokio::test]
async fn partition_refuses_when_full_and_goes_on_when_space_returns() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    world.capacity.set_full(true);
    for _ in 0..3 {
        assert_eq!(partition.apply(put("b", "2")).await, Err(Error::Full(Full::Disks)));
    }
    assert_eq!(partition.rows().await.len(), 1, "refused rows are not there");
    // Evaluated against what is there, not against what was refused.
    assert_eq!(partition.apply(put_if_absent("b", "3")).await, Err(Error::Full(Full::Disks)));
    world.capacity.set_full(false);
    partition.apply(put_if_absent("b", "4")).await.unwrap();
    let rows = partition.rows().await;
    assert_eq!(rows.len(), 2);
    drop(partition);
    assert_eq!(world.open().await.unwrap().rows().await, rows);
}

#[tokio::test]
async fn partition_opens_and_reads_while_the_disk_is_full() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    drop(partition);
    world.capacity.set_full(true);
    let partition = world.open().await.unwrap();
    assert_eq!(partition.rows().await.len(), 1);
    assert_eq!(partition.apply(put("b", "2")).await, Err(Error::Full(Full::Disks)));
}

#[tokio::test]
async fn partition_is_lost_to_a_second_owner() {
    let world = World::new().await;
    let first = world.open().await.unwrap();
    first.apply(put("a", "1")).await.unwrap();
    let second = world.open().await.unwrap();
    assert_eq!(first.apply(put("b", "2")).await, Err(Error::WrongPartition));
    assert_eq!(first.core.may_read(), Err(Error::WrongPartition));
    second.apply(put("c", "3")).await.unwrap();
    assert_eq!(second.rows().await.len(), 2);
}

#[tokio::test]
async fn write_of_unknown_outcome_is_not_said_to_be_undone_when_the_partition_is_lost() {
    let world = World::new().await;
    let first = world.open().await.unwrap();
    first.apply(put("a", "1")).await.unwrap();
    // Durable, but answered with an error; before the second try another owner takes the partition.
    world.capacity.fail(When::Once(0), Fault::Lied(POISONED));
    let coordinator = &first.core.context.deps.coordinator;
    let key = PartitionDescriptor::coordinator_key(PARTITION);
    let found = coordinator.get(&key).await.unwrap().unwrap();
    let mut descriptor = PartitionDescriptor::decode(&found.value).unwrap();
    descriptor.epoch = descriptor.epoch.next();
    coordinator.txn(&[], &[Op::Put(key, descriptor.encode())]).await.unwrap();
    let stale = first.apply(put("b", "2")).await;
    assert!(matches!(stale, Err(Error::Unavailable(_))), "{stale:?}");
    assert_eq!(first.apply(put("c", "3")).await, Err(Error::WrongPartition));
    assert_eq!(world.open().await.unwrap().rows().await.len(), 2);
}

#[tokio::test]
async fn recovery_cuts_a_torn_tail_and_refuses_damage_before_it() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..5 {
        partition.apply(put(&format!("key{number}"), &"x".repeat(600))).await.unwrap();
    }
    drop(partition);
    let log: ExtentId = world.descriptor().await.log[0];

    // The last record spans several frames; without the last of them it was never acknowledged.
    world.capacity.cut(log, 1);
    let partition = world.open().await.unwrap();
    assert_eq!(partition.rows().await.len(), 4);
    // The next owner writes behind the cut; the torn record stays cut.
    partition.apply(put("key9", "x")).await.unwrap();
    drop(partition);
    assert_eq!(world.open().await.unwrap().rows().await.len(), 5);

    for frame in 0..world.capacity.frames(log) - 2 {
        world.capacity.flip(log, frame, 33);
        let refused = world.open().await.map(|_| ());
        assert!(
            matches!(refused, Err(Error::Corrupt(Damage::Rows(_)))),
            "frame {frame}: {refused:?}"
        );
        world.capacity.flip(log, frame, 33);
    }
    assert_eq!(world.open().await.unwrap().rows().await.len(), 5);
}

#[tokio::test]
async fn extents_left_behind_are_removed() {
    let mut world = World::new().await;
    world.config.log_extent_bytes = 4000;
    let partition = world.open().await.unwrap();
    for number in 0..600 {
        partition.apply(put(&format!("key{:03}", number % 50), &"x".repeat(100))).await.unwrap();
        if number % 20 == 0 {
            partition.flush().await.unwrap();
            partition.compact().await.unwrap();
        }
    }
    partition.close().await;
    partition.core.context.do_chores().await;
    assert_eq!(world.capacity.count(ExtentKind::Log), world.descriptor().await.log.len());
    assert!(world.capacity.count(ExtentKind::Log) <= 2);
    let runs = partition.core.snapshot().sources.runs.iter().map(Vec::len).sum::<usize>();
    assert_eq!(world.capacity.count(ExtentKind::Run), runs);
    let uses = partition.core.uses();
    assert_eq!(uses.len(), runs + world.descriptor().await.log.len());
    assert_eq!(partition.core.extents.unused(&uses), []);
}

#[tokio::test]
async fn extent_that_cannot_be_removed_is_tried_again() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for _ in 0..4 {
        partition.apply(put("key", "value")).await.unwrap();
        partition.flush().await.unwrap();
    }
    let context = Arc::clone(&partition.core.context);
    context.do_chores().await;
    while partition.compact().await.unwrap() {}
    let before = world.capacity.extents_of_index();
    world.capacity.fail(When::From(0), Fault::Refused(capacity::Error::Full));
    context.do_chores().await;
    world.capacity.fail(When::Once(usize::MAX), Fault::Refused(capacity::Error::Full));
    assert_eq!(world.capacity.extents_of_index(), before, "a removal that fails removes nothing");
    let (logs, runs) = check_owned(&partition).await;
    assert!(logs + runs < before.len(), "nothing was to be removed");
    assert_eq!(world.capacity.extents_of_index().len(), logs + runs);
}

/// A partition that stopped is opened again until that succeeds: no try that fails may use anything
/// for ever.
#[tokio::test]
async fn opening_that_fails_leaves_no_use_behind() {
    let mut failed = 0;
    for call in 0..6 {
        let mut world = World::new().await;
        // Recovery writes runs too.
        world.config.replay_bytes_max = 4000;
        world.config.parallel_opens = 1;
        let old = world.open().await.unwrap();
        for number in 0..20 {
            old.apply(put(&format!("flushed{number}"), &"x".repeat(300))).await.unwrap();
        }
        old.flush().await.unwrap();
        for number in 0..40 {
            old.apply(put(&format!("key{number}"), &"x".repeat(300))).await.unwrap();
        }
        let context = Arc::clone(&old.core.context);
        for reads in [false, true] {
            world.capacity.fail_reads(reads);
            for fault in [POISONED, capacity::Error::Full] {
                world.capacity.fail(When::From(call), Fault::Refused(fault.clone()));
                failed += usize::from(Partition::open(&context, PARTITION).await.is_err());
                world.capacity.fail(When::Once(usize::MAX), Fault::Refused(fault));
            }
        }
        world.capacity.fail_reads(false);
        let new = Partition::open(&context, PARTITION).await.unwrap();
        old.abandon().await;
        assert_eq!(new.rows().await.len(), 60);
        drop(old);
        check_owned(&new).await;
    }
    assert!(failed > 12, "{failed} failed");
}

#[tokio::test]
async fn refused_writes_give_their_memory_back() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    let used = partition.core.context.budget.used();
    world.capacity.set_full(true);
    for number in 0..100 {
        let write = put(&format!("key{number}"), &"x".repeat(1000));
        assert_eq!(partition.apply(write).await, Err(Error::Full(Full::Disks)));
    }
    assert_eq!(partition.core.context.budget.used(), used);
}

/// It reads and writes up to the damage, perhaps gigabytes: once for each change of the runs, not
/// once a second.
#[tokio::test]
async fn compaction_of_a_damaged_run_is_not_tried_all_the_time() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..4 {
        partition.apply(put(&format!("key{number}"), "value")).await.unwrap();
        partition.flush().await.unwrap();
    }
    let run = partition.core.snapshot().sources.runs[0][0].extent();
    world.capacity.flip(run, 0, 33);
    assert!(partition.core.may_compact());
    assert!(matches!(partition.compact().await, Err(Failed::Other(_))));
    assert!(!partition.core.may_compact(), "it would fail again");
    partition.apply(put("more", "value")).await.unwrap();
    partition.flush().await.unwrap();
    assert!(partition.core.may_compact());
    world.capacity.flip(run, 0, 33);
    world.capacity.set_full(true);
    assert_eq!(partition.compact().await, Err(Failed::Full(Full::Disks)));
    assert!(partition.core.may_compact(), "room may come at any time");
    world.capacity.set_full(false);
    assert_eq!(partition.compact().await, Ok(true));
}

/// A merge or move flushes the partition first, and may be tried often.
#[tokio::test(start_paused = true)]
async fn partition_on_a_disk_that_takes_no_writes_leaves_no_extent_and_goes_on_on_another() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    world.capacity.fail(When::From(0), Fault::Refused(POISONED));
    assert!(partition.apply(put("b", "2")).await.is_err());
    let before = world.capacity.extents_of_index();
    for _ in 0..3 {
        assert!(matches!(partition.flush().await, Err(Failed::Refused(_))));
        partition.core.context.do_chores().await;
        assert_eq!(world.capacity.extents_of_index(), before);
    }
    assert_eq!(partition.rows().await.len(), 1);
    // Another disk takes writes.
    world.capacity.fail(When::Once(usize::MAX), Fault::Refused(POISONED));
    partition.core.context.deps.env.clock.sleep(std::time::Duration::from_secs(10)).await;
    partition.apply(put("c", "3")).await.unwrap();
    partition.flush().await.unwrap();
    assert_eq!(partition.rows().await.len(), 2);
    assert_eq!(world.open().await.unwrap().rows().await.len(), 2);
}

/// A flush that fails at one family leaves nothing of the families before it.
#[tokio::test]
async fn flush_that_fails_half_way_leaves_no_extent() {
    let calls = {
        let world = World::new().await;
        let partition = world.open().await.unwrap();
        partition.apply(put("a", "1")).await.unwrap();
        world.capacity.fail(When::Once(usize::MAX), Fault::Refused(POISONED));
        partition.flush().await.unwrap();
        world.capacity.calls()
    };
    let mut failed = 0;
    for call in 0..calls {
        let world = World::new().await;
        let partition = world.open().await.unwrap();
        partition.apply(put("a", "1")).await.unwrap();
        world.capacity.fail(When::Once(call), Fault::Refused(POISONED));
        if partition.flush().await.is_err() && partition.core.may_write_log() {
            partition.core.context.do_chores().await;
            assert_eq!(world.capacity.count(ExtentKind::Run), 0, "call {call}");
            failed += 1;
        }
    }
    assert!(failed > 2, "{failed} of {calls}");
}

#[tokio::test]
async fn flush_on_a_full_disk_is_tried_again_and_leaves_no_extent() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..300 {
        let write = put(&format!("key{number:05}"), &"x".repeat(100));
        partition.apply(write).await.unwrap();
    }
    world.capacity.set_full(true);
    for _ in 0..3 {
        assert_eq!(partition.flush().await, Err(Failed::Full(Full::Disks)));
        partition.core.context.do_chores().await;
    }
    assert_eq!(world.capacity.count(ExtentKind::Run), 0);
    assert_eq!(partition.rows().await.len(), 300);
    world.capacity.set_full(false);
    partition.apply(put("key99999", "x")).await.unwrap();
    partition.flush().await.unwrap();
    assert_eq!(partition.rows().await.len(), 301);
    assert_eq!(world.open().await.unwrap().rows().await.len(), 301);
}
