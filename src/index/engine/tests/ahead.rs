//! Writes that are evaluated ahead of the committer: short work in it, one change, nothing lost
//! when overtaken.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{join, join_all};
use futures_util::poll;

use crate::index::api::Deleted;
use crate::index::api::*;
use crate::index::engine::Dependencies;
use crate::index::engine::commit::ROWS_IN_TURN;
use crate::index::engine::config::Config;
use crate::index::engine::context::AHEAD_MAX;
use crate::index::engine::context::HostContext;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{PARTITION, World};
use crate::index::objects::Objects;
use crate::index::rows::{Family, Machine, RowBatch, Rows};
use crate::types::Revision;
use crate::types::*;

pub(super) fn key(name: &str) -> BlobKey {
    BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(7),
        collation: Collation::Utf16,
        name: BlobName::new(name).unwrap(),
    }
}

async fn partition() -> Partition {
    partition_of(&World::new().await, Arc::new(Objects)).await
}

async fn partition_of(world: &World, machine: Arc<dyn Machine>) -> Partition {
    let deps = Dependencies { machine, ..world.deps() };
    let config = Config { memtable_bytes_max: 256 << 20, queue_ops: 20_000, ..world.config };
    let context = Arc::new(HostContext::new(deps, config, HostId::new(0), Arc::default()));
    Partition::open(&context, PARTITION).await.unwrap()
}

fn location(number: u64) -> Location {
    Location {
        extent: ExtentId::new(1),
        offset: ExtentOffset::new(number),
        len: ByteLen::new(1),
        crc: Crc32c::new(7),
    }
}

fn put(name: &str, number: u64) -> Write {
    Write::PutBlob(PutBlob {
        key: key(name),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        kind: NewKind::Block,
        tags: Tags::default(),
        content: NewContent::Stored(vec![location(number)]),
        crc64: Crc64::of(b"1"),
        tier: None,
        fields: NewBlobFields::default(),
    })
}

pub(super) fn id(number: u64) -> BlockId {
    BlockId::from_bytes(format!("{number:08}").as_bytes()).unwrap()
}

pub(super) fn stage(name: &str, number: u64) -> Write {
    Write::StageBlock(StageBlock {
        key: key(name),
        guard: Guard::default(),
        id: id(number),
        content: NewContent::Stored(vec![location(number)]),
        crc64: Crc64::of(b"1"),
    })
}

fn commit(name: &str, blocks: std::ops::Range<u64>) -> Write {
    let entry = |number| BlockListEntry { source: BlockSource::Latest, id: id(number) };
    Write::CommitBlocks(CommitBlocks {
        key: key(name),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        list: blocks.map(entry).collect(),
        tier: None,
    })
}

async fn rows(partition: &Partition, family: Family) -> Vec<Bytes> {
    let view = partition.core.snapshot();
    let rows = view.scan_all(family, (&[], None), usize::MAX).await.unwrap();
    rows.into_iter().map(|row| row.key).collect()
}

async fn references(partition: &Partition) -> Vec<Location> {
    let (mut all, mut from) = (Vec::new(), Some(ReferencePlace::default()));
    while let Some(from_here) = from {
        let read = Read::References(ListReferences { from: from_here, ..ListReferences::all() });
        let reply = partition.read(partition.core.epoch, &read).await.unwrap();
        let ReadReply::References(page) = reply else { panic!("not references") };
        all.extend(page.locations);
        from = page.next;
    }
    all
}

const SNAPSHOTS: u64 = 3_000;

#[tokio::test(start_paused = true)]
async fn delete_of_thousands_of_snapshots_is_short_in_the_committer_and_one_change() {
    let partition = partition().await;
    partition.apply(put("a", 1)).await.unwrap();
    let snapshot = || {
        let (key, guard) = (key("a"), Guard::default());
        partition.apply(Write::SnapshotBlob(SnapshotBlob { key, guard, metadata: None }))
    };
    assert!(join_all((0..SNAPSHOTS).map(|_| snapshot())).await.iter().all(Result::is_ok));
    assert_eq!(rows(&partition, Family::Versions).await.len(), 3_000);
    partition.core.longest_turn.store(0, Ordering::Relaxed);
    let scope = DeleteScope::BlobAndSnapshots;
    let delete = Write::DeleteBlob(DeleteBlob { key: key("a"), guard: Guard::default(), scope });
    let others = join_all((0..200).map(|n| partition.apply(put(&format!("b{n}"), 1_000 + n))));
    let (deleted, others) = join(partition.apply(delete), others).await;
    deleted.unwrap();
    assert!(others.iter().all(Result::is_ok));
    assert_eq!(rows(&partition, Family::Versions).await, Vec::<Bytes>::new());
    assert_eq!(rows(&partition, Family::Main).await.len(), 200);
    let longest = partition.core.longest_turn.load(Ordering::Relaxed);
    // The step that goes beyond the limit is the last.
    assert!(longest <= 3 * ROWS_IN_TURN, "{longest} rows in one turn of the committer");
}

/// Applies a write while others come.
async fn among_others(partition: &Partition, write: Write) {
    let others = join_all((0..50).map(|n| partition.apply(put(&format!("b{n}"), 1_000_000 + n))));
    let (done, others) = join(partition.apply(write), others).await;
    done.unwrap();
    assert!(others.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn layout_of_50_000_blocks_is_written_in_short_turns_of_the_committer() {
    const BLOCKS: u64 = 50_000;
    let partition = partition().await;
    for first in (0..BLOCKS).step_by(10_000) {
        let staged = (first..first + 10_000).map(|n| partition.apply(stage("a", n)));
        assert!(join_all(staged).await.iter().all(Result::is_ok));
    }
    partition.core.longest_turn.store(0, Ordering::Relaxed);
    let check = |step: &str| {
        let longest = partition.core.longest_turn.load(Ordering::Relaxed);
        assert!(longest <= 3 * ROWS_IN_TURN, "{step}: {longest} rows in one turn of the committer");
    };
    among_others(&partition, commit("a", 0..BLOCKS)).await;
    check("the list");
    // All segments are written again, and once more for the snapshot.
    let (key, guard) = (key("a"), Guard::default());
    let snapshot = SnapshotBlob { key: key.clone(), guard: guard.clone(), metadata: None };
    among_others(&partition, Write::SnapshotBlob(snapshot)).await;
    check("its snapshot");
    partition.apply(stage("a", 7)).await.unwrap();
    among_others(&partition, commit("a", 0..BLOCKS)).await;
    check("the list with one new block");
    let read = Read::BlockList(key, Revision::Current, guard);
    let reply = partition.read(partition.core.epoch, &read).await.unwrap();
    let ReadReply::BlockList(list) = reply else { panic!("not a block list") };
    assert_eq!(list.committed.len() as u64, BLOCKS);
}

#[tokio::test(start_paused = true)]
async fn appends_to_a_long_blob_are_short_in_the_committer() {
    let partition = partition().await;
    let Write::PutBlob(made) = put("a", 1) else { panic!("a blob") };
    let content = NewContent::Inline(Bytes::new());
    let made = PutBlob { kind: NewKind::Append, content, crc64: Crc64::EMPTY, ..made };
    partition.apply(Write::PutBlob(made)).await.unwrap();
    let append = |n| {
        Write::AppendBlock(AppendBlock {
            key: key("a"),
            guard: Guard::default(),
            position: None,
            len_max: None,
            content: NewContent::Stored(vec![location(n)]),
            crc64: Crc64::of(b"1"),
        })
    };
    for n in 0..5_000 {
        partition.apply(append(n)).await.unwrap();
    }
    let longest = partition.core.longest_turn.load(Ordering::Relaxed);
    assert!(longest <= ROWS_IN_TURN, "{longest} rows in one turn of the committer");
}

/// Blocks keep coming while a long list is committed: each ends up in the blob, staged, or as
/// garbage, once.
#[tokio::test(start_paused = true)]
async fn list_that_is_overtaken_by_new_blocks_comes_through_and_loses_none() {
    const LISTED: u64 = 3_800;
    const LATER: u64 = 600;
    let partition = partition().await;
    assert!(
        join_all((0..LISTED).map(|n| partition.apply(stage("a", n))))
            .await
            .iter()
            .all(Result::is_ok)
    );
    let later = async {
        for n in LISTED..LISTED + LATER {
            partition.apply(stage("a", n)).await.unwrap();
        }
    };
    let (committed, ()) = join(partition.apply(commit("a", 0..LISTED)), later).await;
    committed.unwrap();
    let read = Read::BlockList(key("a"), Revision::Current, Guard::default());
    let reply = partition.read(partition.core.epoch, &read).await.unwrap();
    let ReadReply::BlockList(list) = reply else { panic!("not a block list") };
    assert_eq!(list.committed.len() as u64, LISTED);
    let named = references(&partition).await;
    let once: BTreeSet<u64> = named.iter().map(|location| location.offset.get()).collect();
    assert_eq!(once.len() as u64, LISTED + LATER);
    let read = Read::Garbage { from: Bytes::new(), limit: usize::MAX - 1 };
    let reply = partition.read(partition.core.epoch, &read).await.unwrap();
    let ReadReply::Garbage(GarbagePage { rows: garbage, next: None }) = reply else {
        panic!("not all garbage")
    };
    let garbage: usize = garbage.iter().map(|row| row.locations.len()).sum();
    let everywhere = list.committed.len() + list.uncommitted.len() + garbage;
    assert_eq!(everywhere as u64, LISTED + LATER, "none of them twice");
}

#[tokio::test(start_paused = true)]
async fn write_that_is_evaluated_ahead_is_refused_by_what_was_committed_meanwhile() {
    let partition = partition().await;
    assert!(
        join_all((0..3_000).map(|n| partition.apply(stage("a", n))))
            .await
            .iter()
            .all(Result::is_ok)
    );
    // The second finds the blocks of the first gone.
    let (first, second) =
        join(partition.apply(commit("a", 0..2_500)), partition.apply(commit("a", 2_000..3_000)))
            .await;
    let refused = [&first, &second]
        .into_iter()
        .filter(|done| **done == Err(Error::Refused(Refused::UnknownBlock)));
    assert_eq!(refused.count(), 1, "{first:?} {second:?}");
    assert!(first.is_ok() || second.is_ok(), "{first:?} {second:?}");
}

/// Key and time of the garbage rows that reclaim is shown.
async fn garbage(partition: &Partition) -> Vec<(Bytes, Timestamp)> {
    let read = Read::Garbage { from: Bytes::new(), limit: usize::MAX - 1 };
    let reply = partition.read(partition.core.epoch, &read).await.unwrap();
    let ReadReply::Garbage(GarbagePage { rows, next: None }) = reply else {
        panic!("not all garbage")
    };
    rows.into_iter().map(|row| (row.key, row.since)).collect()
}

/// Reclaim keeps one mark for all rows up to a time. A row that shows up later with an earlier time
/// would have a mark from before it was visible, and a read that found the bytes after that mark
/// would not be waited for.
#[tokio::test(start_paused = true)]
async fn garbage_is_shown_in_the_order_of_its_times_when_a_write_went_ahead() {
    let partition = partition().await;
    partition.apply(put("b", 1)).await.unwrap();
    partition.apply(put("c", 2)).await.unwrap();
    let snapshot = || {
        let (key, guard) = (key("b"), Guard::default());
        partition.apply(Write::SnapshotBlob(SnapshotBlob { key, guard, metadata: None }))
    };
    assert!(join_all((0..SNAPSHOTS).map(|_| snapshot())).await.iter().all(Result::is_ok));
    // What the snapshots share with the blob is left to the audit; this is its own.
    partition.apply(put("b", 3)).await.unwrap();
    let delete = |name| {
        let scope = DeleteScope::BlobAndSnapshots;
        Write::DeleteBlob(DeleteBlob { key: key(name), guard: Guard::default(), scope })
    };
    let clock = Arc::clone(&partition.core.context.deps.env.clock);
    let mut ahead =
        Box::pin(partition.write_ahead((delete("b").into(), None), Duration::ZERO, clock.as_ref()));
    assert!(poll!(ahead.as_mut()).is_pending(), "it has its time and is being evaluated");
    partition.apply(delete("c")).await.unwrap();
    let mut shown = garbage(&partition).await;
    let mut done = None;
    while done.is_none() {
        if let Poll::Ready(result) = poll!(ahead.as_mut()) {
            done = Some(result);
        }
        tokio::task::yield_now().await;
        let now = garbage(&partition).await;
        let latest = shown.iter().map(|row| row.1).max();
        let new = now.iter().filter(|row| !shown.contains(row));
        assert!(new.clone().all(|row| Some(row.1) > latest), "{latest:?} was shown before {now:?}");
        shown = now;
    }
    assert_eq!(done, Some(Ok(WriteReply::Deleted(Deleted::default()))));
    assert_eq!(shown.len(), 2, "both blobs left garbage");
}

/// Counts how often writes are evaluated.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Machine for Counting {
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Objects.evaluate(view, write, now, out).await
    }

    async fn answer(
        &self,
        view: &dyn Rows,
        range: &KeyRange,
        read: &Read,
        now: Timestamp,
    ) -> Result<ReadReply, Error> {
        Objects.answer(view, range, read, now).await
    }
}

/// A purge is always evaluated ahead.
fn purge(container: u64) -> Write {
    let (account, container) = (AccountId::new(1), ContainerId::new(container));
    let from = RoutingKey::container_range(account, container).low().as_bytes().clone();
    Write::PurgeContainer { account, container, from, limit: 100 }
}

#[tokio::test(start_paused = true)]
async fn writes_that_wait_for_their_commit_keep_no_place_for_evaluation() {
    let world = World::new().await;
    let partition = partition_of(&world, Arc::new(Objects)).await;
    let count = AHEAD_MAX as u64 + 2;
    for container in 1..=count {
        let Write::PutBlob(mut made) = put("a", container) else { panic!("not a put") };
        made.key.container = ContainerId::new(container);
        partition.apply(Write::PutBlob(made)).await.unwrap();
    }
    let stalled = world.capacity.stall().await;
    let mut purges = Box::pin(join_all((1..=count).map(|one| partition.apply(purge(one)))));
    for _ in 0..1_000 {
        assert!(poll!(purges.as_mut()).is_pending(), "nothing is durable yet");
        tokio::task::yield_now().await;
    }
    assert_eq!(partition.core.context.ahead.available_permits(), AHEAD_MAX);
    assert_eq!(partition.core.watches.len() as u64, count, "all of them are evaluated");
    drop(stalled);
    assert!(purges.await.iter().all(Result::is_ok));
    assert_eq!(rows(&partition, Family::Main).await, Vec::<Bytes>::new());
}

#[tokio::test(start_paused = true)]
async fn write_that_waits_for_one_to_the_same_rows_is_evaluated_once() {
    const LISTED: u64 = 3_800;
    const TIMES: usize = 6;
    let counting = Arc::new(Counting::default());
    let partition = partition_of(&World::new().await, Arc::clone(&counting) as _).await;
    let staged = join_all((0..LISTED).map(|n| partition.apply(stage("a", n)))).await;
    assert!(staged.iter().all(Result::is_ok));
    counting.0.store(0, Ordering::Relaxed);
    let commits = join_all((0..TIMES).map(|_| partition.apply(commit("a", 0..LISTED)))).await;
    assert!(commits.iter().all(Result::is_ok), "{commits:?}");
    // Once by the committer, which gives it back, and once ahead.
    assert_eq!(counting.0.load(Ordering::Relaxed), 2 * TIMES);
}

/// What `work` comes to, and whether it was evaluated ahead meanwhile.
async fn ahead<T>(partition: &Partition, work: impl Future<Output = T>) -> (T, bool) {
    let (mut work, mut was) = (pin!(work), false);
    let answer = poll_fn(|cx| {
        let polled = work.as_mut().poll(cx);
        was |= partition.core.watches.len() > 0;
        polled
    });
    (answer.await, was)
}

async fn take_snapshots(partition: &Partition, name: &str, count: u64) {
    for _ in 0..count {
        let (key, guard) = (key(name), Guard::default());
        let snapshot = SnapshotBlob { key, guard, metadata: None };
        partition.apply(Write::SnapshotBlob(snapshot)).await.unwrap();
    }
}

/// Few rows may be long to read, such as those of snapshots with much metadata.
#[tokio::test(start_paused = true)]
async fn delete_of_snapshots_with_long_rows_is_evaluated_ahead() {
    let partition = partition().await;
    let Write::PutBlob(long) = put("a", 1) else { panic!("a blob") };
    let metadata = Metadata::new(vec![("name".to_owned(), "v".repeat(8_000))]).unwrap();
    partition.apply(Write::PutBlob(PutBlob { metadata, ..long })).await.unwrap();
    take_snapshots(&partition, "a", 500).await;
    let scope = DeleteScope::BlobAndSnapshots;
    let delete = Write::DeleteBlob(DeleteBlob { key: key("a"), guard: Guard::default(), scope });
    let (deleted, was_ahead) = ahead(&partition, partition.apply(delete)).await;
    deleted.unwrap();
    assert!(was_ahead, "the committer read all of it");
    assert_eq!(rows(&partition, Family::Versions).await, Vec::<Bytes>::new());
    let (_, was_ahead) = ahead(&partition, partition.apply(put("b", 1))).await;
    assert!(!was_ahead, "a short write is evaluated at once");
}

/// Whether a layer is dead, its blob and all snapshots say.
#[tokio::test(start_paused = true)]
async fn dead_layer_of_a_blob_with_thousands_of_snapshots_is_forgotten_ahead() {
    let partition = partition().await;
    partition.apply(put("a", 1)).await.unwrap();
    take_snapshots(&partition, "a", SNAPSHOTS).await;
    let blob = RoutingKey::blob(&key("a"));
    let content = NewContent::Stored(vec![Location { len: ByteLen::new(512), ..location(1_000) }]);
    let spans = vec![PageSpan { range: 0..512, skip: 0, content: Some(content) }];
    let fill = Write::FillLayer(FillLayer { blob: blob.clone(), layer: None, spans });
    partition.apply(fill).await.unwrap();
    let dead = rows(&partition, Family::Garbage).await;
    assert_eq!(dead.len(), 1);
    let (forgotten, was_ahead) =
        ahead(&partition, partition.apply(Write::ForgetGarbage { keys: dead.clone() })).await;
    forgotten.unwrap();
    assert!(was_ahead, "the committer read all snapshots");
    let left = rows(&partition, Family::Garbage).await;
    assert!(left.len() == 1 && left != dead, "the span is garbage now: {left:?}");
}
