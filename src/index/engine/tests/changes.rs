//! What a partition does while, and after, a change of the map takes its range away.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::capacity::ExtentKind;
use crate::coordinator::Fault;
use crate::index::api::Error;
use crate::index::engine::change::NotChanged;
use crate::index::engine::context::HostContext;
use crate::index::engine::failed::Failed;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{World, put, put_if_absent};
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::RoutingKey;

pub(super) fn halves(at: &'static [u8]) -> Vec<(PartitionId, PartitionKeys)> {
    let border = RoutingKey::from_bytes(at.into());
    let low = KeyRange::new(RoutingKey::min(), Some(border.clone()));
    let high = KeyRange::new(border, None);
    vec![(PartitionId::new(2), low.into()), (PartitionId::new(3), high.into())]
}

/// The children share the parent's memtable: what waited for the parent while it was held must not
/// be tried there.
#[tokio::test]
async fn writes_that_wait_for_a_parent_leave_no_trace_in_its_children() {
    let world = World::new().await;
    let parent = Arc::new(world.open().await.unwrap());
    for key in ["n", "o", "p"] {
        parent.apply(put(key, "in a run")).await.unwrap();
    }
    parent.flush().await.unwrap();
    parent.apply(put("a", "in memory")).await.unwrap();

    let stalled = world.capacity.stall().await;
    let tasks = &parent.core.context.deps.env.tasks;
    let split = tasks.spawn("split", {
        let parent = Arc::clone(&parent);
        async move { parent.split(halves(b"m")).await.unwrap() }
    });
    // The parent is held as soon as its children write their manifests.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let wait = |write| {
        let parent = Arc::clone(&parent);
        tasks.spawn("write", async move { parent.apply(write).await })
    };
    let (put_waits, create_waits) = (wait(put("c", "waits")), wait(put_if_absent("o", "waits")));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // A task that reads a run now has to wait in the middle of its work.
    let unread = world.capacity.stall_reads().await;
    drop(stalled);
    let children = split.await.unwrap().children;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    parent.core.lose();
    children[0].apply(put("b", "of the child")).await.unwrap();
    let seen = children[0].core.snapshot().get(Family::Main, b"c").await.unwrap();
    assert_eq!(seen, None, "no caller was told that it is there");
    drop(unread);
    parent.abandon().await;
    assert_eq!(put_waits.await.unwrap(), Err(Error::WrongPartition));
    assert_eq!(create_waits.await.unwrap(), Err(Error::WrongPartition));
    let keys: Vec<_> = children[0].rows().await.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a", "b"]);
    for child in &children {
        child.close().await;
    }
}

/// A flush may be under way when the range goes to others, and a compaction may begin just then.
#[tokio::test]
async fn runs_that_come_too_late_for_a_partition_go() {
    for ended in [false, true] {
        let world = World::new().await;
        let partition = Arc::new(world.open().await.unwrap());
        partition.apply(put("a", "1")).await.unwrap();
        let stalled = world.capacity.stall().await;
        let flush = partition.core.context.deps.env.tasks.spawn("flush", {
            let partition = Arc::clone(&partition);
            async move { partition.flush().await }
        });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.capacity.count(ExtentKind::Run), 1, "one is being written");
        if ended {
            partition.abandon().await;
        } else {
            partition.hold().await.unwrap().gone();
        }
        drop(stalled);
        assert!(flush.await.unwrap().is_err());
        partition.core.lose();
        assert_eq!(partition.compact().await, Ok(false), "it has nothing any more");
        partition.core.context.do_chores().await;
        assert_eq!(world.capacity.count(ExtentKind::Run), 0, "ended: {ended}");
    }
}

/// All children replay the log of their parent. Each would keep the whole log in memory, uncounted,
/// if it did not copy its own rows.
#[tokio::test]
async fn a_replayed_row_keeps_no_rows_of_others_in_memory() {
    let world = World::new().await;
    let parent = world.open().await.unwrap();
    let both = [parent.apply(put("a", "1")), parent.apply(put("z", "2"))];
    assert_eq!(join_all(both).await, [Ok(()), Ok(())], "in one record");
    parent.apply(put("b", "3")).await.unwrap();
    let children = parent.split(halves(b"m")).await.unwrap().children;
    parent.abandon().await;
    drop((parent, children));
    world.capacity.crash();
    let context = HostContext::new(world.deps(), world.config, HostId::new(0), Arc::default());
    let child = Partition::open(&Arc::new(context), PartitionId::new(2)).await.unwrap();
    let rows = child.rows().await;
    let held: Vec<_> = rows.iter().map(|(_, value)| world.capacity.shares(value)).collect();
    assert_eq!(held, [false, true], "the record of b has no rows of others: no copy is needed");
}

/// Others that use the same extents, split shortly before, change the lists of sharers meanwhile.
#[tokio::test(start_paused = true)]
async fn split_that_others_outrun_is_tried_until_it_is_its_turn() {
    let world = World::new().await;
    let parent = world.open().await.unwrap();
    parent.apply(put("a", "of the parent")).await.unwrap();
    for _ in 0..8 {
        world.store.inject(Fault::Outrun);
    }
    let children = parent.split(halves(b"m")).await.unwrap().children;
    assert_eq!(children.len(), 2);
    parent.core.lose();
    parent.abandon().await;
    for child in &children {
        child.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn split_that_others_outrun_for_ever_is_busy_and_changes_nothing() {
    let world = World::new().await;
    let parent = world.open().await.unwrap();
    parent.apply(put("a", "of the parent")).await.unwrap();
    for _ in 0..100 {
        world.store.inject(Fault::Outrun);
    }
    let refused = parent.split(halves(b"m")).await;
    assert!(matches!(refused, Err(NotChanged::Busy(_))), "{:?}", refused.err());
    parent.apply(put("b", "as before")).await.unwrap();
    parent.close().await;
}

/// Writes wait meanwhile: a coordinator that does not answer is not asked as often as one that
/// does.
#[tokio::test(start_paused = true)]
async fn split_of_unknown_outcome_is_tried_four_times() {
    for answers in [3, 4] {
        let world = World::new().await;
        let parent = world.open().await.unwrap();
        parent.apply(put("a", "of the parent")).await.unwrap();
        for _ in 0..answers {
            world.store.inject(Fault::AmbiguousLost);
        }
        let done = parent.split(halves(b"m")).await;
        let is_unknown = matches!(done, Err(NotChanged::Failed(Failed::Other(_))));
        assert_eq!((done.is_ok(), is_unknown), (answers == 3, answers == 4), "{answers}");
        parent.core.lose();
        parent.abandon().await;
        for child in done.map(|split| split.children).unwrap_or_default() {
            child.close().await;
        }
    }
}

/// No try follows the last pause of one that was outrun: it would keep writes waiting for nothing.
#[tokio::test(start_paused = true)]
async fn split_that_others_outrun_pauses_before_tries_only() {
    let world = World::new().await;
    let parent = world.open().await.unwrap();
    parent.apply(put("a", "of the parent")).await.unwrap();
    for _ in 0..11 {
        world.store.inject(Fault::Outrun);
    }
    let clock = &parent.core.context.deps.env.clock;
    let begun = clock.monotonic();
    let children = parent.split(halves(b"m")).await.unwrap().children;
    let paused = clock.monotonic() - begun;
    assert_eq!(paused, std::time::Duration::from_millis(500), "the last try is worth all pauses");
    parent.core.lose();
    parent.abandon().await;
    for child in &children {
        child.close().await;
    }
}
