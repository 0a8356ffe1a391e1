//! One partition over capacity in memory.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::capacity;
use crate::capacity::ExtentKind;
use crate::env::Rand;
use crate::env::rand::SeededRand;
use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::engine::decode_untrusted;
use crate::index::engine::offline::open_offline;
use crate::index::engine::testing::{Fault, When, World, put, put_if_absent, remove};
use crate::index::rows::Family;
use crate::index::rows::Rows;

#[tokio::test]
async fn partition_keeps_rows_over_a_crash() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    partition.apply(put("b", &"2".repeat(1000))).await.unwrap();
    partition.apply(put("a", "3")).await.unwrap();
    partition.apply(put("c", "4")).await.unwrap();
    partition.apply(remove("c")).await.unwrap();
    assert_eq!(
        partition.apply(put_if_absent("a", "5")).await,
        Err(Error::Refused(Refused::ContainerExists))
    );
    let before = partition.rows().await;
    assert_eq!(before.len(), 2);

    let partition = world.open().await.unwrap();
    assert_eq!(partition.rows().await, before);
    partition.apply(put("d", "5")).await.unwrap();
    let partition = world.open().await.unwrap();
    assert_eq!(partition.rows().await.len(), 3);
}

#[tokio::test]
async fn partition_keeps_rows_over_flush_and_close() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..500 {
        partition.apply(put(&format!("key{number:05}"), "value")).await.unwrap();
    }
    partition.flush().await.unwrap();
    for number in (0..500).step_by(2) {
        partition.apply(remove(&format!("key{number:05}"))).await.unwrap();
    }
    let before = partition.rows().await;
    assert_eq!(before.len(), 250);
    let reopened = world.open().await.unwrap();
    assert_eq!(reopened.rows().await, before);
    reopened.close().await;
    let again = world.open().await.unwrap();
    assert_eq!(again.rows().await, before);
}

#[tokio::test]
async fn absent_keys_cost_no_read() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..2000 {
        partition.apply(put(&format!("key{:05}", number * 2), "value")).await.unwrap();
    }
    partition.flush().await.unwrap();
    let snapshot = partition.core.snapshot();
    let before = world.capacity.reads();
    for number in 0..2000 {
        let key = format!("key{:05}", number * 2 + 1);
        assert_eq!(snapshot.get(Family::Main, key.as_bytes()).await, Ok(None));
    }
    let reads = world.capacity.reads() - before;
    assert!(reads <= 40, "{reads} blocks read: the filter lets about 1 % through");
    for number in 0..2000 {
        let key = format!("key{:05}", number * 2);
        assert!(snapshot.get(Family::Main, key.as_bytes()).await.unwrap().is_some());
    }
    let blocks = world.capacity.reads() - before;
    assert!(blocks <= 40, "{blocks} reads: each block is read once");
}

#[tokio::test]
async fn runs_stay_until_their_last_view_is_gone() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for round in 0..5 {
        for number in 0..100 {
            let value = format!("{round}").repeat(500);
            partition.apply(put(&format!("key{number:05}"), &value)).await.unwrap();
        }
        partition.flush().await.unwrap();
    }
    let snapshot = partition.core.snapshot();
    let before = snapshot.scan_all(Family::Main, (&[], None), 1000).await.unwrap();
    while partition.compact().await.unwrap() {}
    for number in 0..100 {
        partition.apply(remove(&format!("key{number:05}"))).await.unwrap();
    }
    partition.core.context.do_chores().await;
    assert!(world.capacity.count(ExtentKind::Run) > 2, "old runs are still there");
    assert_eq!(snapshot.scan_all(Family::Main, (&[], None), 1000).await.unwrap(), before);
    drop(snapshot);
    partition.core.context.do_chores().await;
    assert_eq!(world.capacity.count(ExtentKind::Run), 2, "one for each family in use");
    assert_eq!(partition.rows().await.len(), 0);
}

#[tokio::test]
async fn times_grow_with_every_commit_and_over_restarts() {
    let world = World::new().await;
    let mut last = 0;
    for _ in 0..3 {
        let partition = world.open().await.unwrap();
        for number in 0..5 {
            let key = format!("key{number}");
            partition.apply(put(&key, "value")).await.unwrap();
            let snapshot = partition.core.snapshot();
            let time = snapshot.get(Family::Garbage, key.as_bytes()).await.unwrap().unwrap();
            let time = u64::from_be_bytes(time.as_ref().try_into().unwrap());
            assert!(time > last);
            last = time;
        }
        partition.flush().await.unwrap();
    }
}

#[tokio::test]
async fn writes_beyond_the_queue_are_refused_at_once() {
    let mut world = World::new().await;
    world.config.queue_ops = 4;
    let partition = world.open().await.unwrap();
    let writes = (0..20).map(|number| partition.apply(put(&format!("key{number}"), "value")));
    let results = join_all(writes.collect::<Vec<_>>()).await;
    let refused = results.iter().filter(|r| **r == Err(Error::Overloaded)).count();
    assert_eq!(refused, 16);
    assert_eq!(partition.rows().await.len(), 4);
    partition.apply(put("after", "value")).await.unwrap();
}

#[tokio::test]
async fn queued_bytes_are_bounded_and_given_back() {
    let mut world = World::new().await;
    world.config.queue_bytes = 5000;
    let partition = world.open().await.unwrap();
    for _ in 0..3 {
        let writes = (0..20).map(|number| partition.apply(put(&format!("key{number}"), "value")));
        let results = join_all(writes.collect::<Vec<_>>()).await;
        let done = results.iter().filter(|r| r.is_ok()).count();
        assert!((1..=5).contains(&done), "{done} of about 1 KiB each");
    }
}

#[tokio::test]
async fn offline_view_shows_the_same_and_changes_nothing() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..100 {
        partition.apply(put(&format!("key{number:05}"), &"x".repeat(300))).await.unwrap();
    }
    partition.flush().await.unwrap();
    partition.apply(remove("key00007")).await.unwrap();
    let rows = partition.core.snapshot().scan_all(Family::Main, (&[], None), 1000).await.unwrap();
    drop(partition);
    let descriptor = world.descriptor().await;
    world.capacity.fail(When::From(0), Fault::Refused(capacity::Error::Full));
    let offline = open_offline(Arc::clone(&world.capacity) as _, &descriptor).await.unwrap();
    assert_eq!(offline.scan_all(Family::Main, (&[], None), 1000).await.unwrap(), rows);
    assert_eq!(offline.get(Family::Main, b"key00007").await, Ok(None));
    let mut extents = offline.extents().to_vec();
    extents.sort();
    assert_eq!(extents, world.capacity.extents_of_index());
    assert_eq!(world.capacity.calls(), 0);
    assert_eq!(world.descriptor().await, descriptor);
}

#[tokio::test]
async fn closed_partition_leaves_nothing_to_replay() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    for number in 0..5000 {
        partition.apply(put(&format!("key{number:05}"), &"x".repeat(300))).await.unwrap();
    }
    partition.close().await;
    assert_eq!(
        partition.apply(put("late", "value")).await,
        Err(Error::Unavailable("the partition is closed".into()))
    );
    let log = world.descriptor().await.log;
    assert_eq!(log.len(), 1);
    assert!(world.capacity.frames(log[0]) <= 2, "a manifest only");
    assert_eq!(world.open().await.unwrap().rows().await.len(), 5000);
}

#[test]
fn any_bytes_decode_or_do_not() {
    assert_eq!(decode_untrusted(&[]), 0);
    let rand = SeededRand::new(7);
    for _ in 0..20_000 {
        let len = rand.below(60);
        // Small values, so that lengths and counts are often plausible.
        let bytes: Vec<u8> = (0..len).map(|_| u8::try_from(rand.below(6)).unwrap()).collect();
        assert!(decode_untrusted(&bytes) < 9);
    }
}
