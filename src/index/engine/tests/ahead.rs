//! Writes that are evaluated ahead of the committer: short work in it, one change, nothing lost when overtaken.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{join, join_all};

use crate::index::api::*;
use crate::index::engine::Parts;
use crate::index::engine::ahead::ROWS_IN_TURN;
use crate::index::engine::config::Config;
use crate::index::engine::partition::Partition;
use crate::index::engine::shared::Shared;
use crate::index::engine::testing::{PARTITION, World};
use crate::index::objects::Objects;
use crate::index::rows::{Family, Rows};
use crate::types::*;

fn key(name: &str) -> BlobKey {
    BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(7),
        collation: Collation::Utf16,
        name: BlobName::new(name).unwrap(),
    }
}

async fn partition() -> Partition {
    let world = World::new().await;
    let parts = Parts { machine: Arc::new(Objects), ..world.parts() };
    let config = Config { memtable_bytes_max: 256 << 20, queue_ops: 20_000, ..world.config };
    let shared = Arc::new(Shared::new(parts, config, (HostId::new(0), Arc::default())));
    Partition::open(&shared, PARTITION).await.unwrap()
}

fn location(number: u64) -> Location {
    Location { extent: ExtentId::new(1), offset: number, len: 1, crc: 7 }
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
    })
}

fn id(number: u64) -> BlockId {
    BlockId::from_bytes(format!("{number:08}").as_bytes()).unwrap()
}

fn stage(name: &str, number: u64) -> Write {
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
    let (mut all, mut from) = (Vec::new(), Some(Bytes::new()));
    while let Some(start) = from {
        let read = Read::References { from: start, limit: usize::MAX };
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
    partition.core.longest_turn.store(0, std::sync::atomic::Ordering::Relaxed);
    let scope = DeleteScope::BlobAndSnapshots;
    let delete = Write::DeleteBlob(DeleteBlob { key: key("a"), guard: Guard::default(), scope });
    let others = join_all((0..200).map(|n| partition.apply(put(&format!("b{n}"), 1_000 + n))));
    let (deleted, others) = join(partition.apply(delete), others).await;
    deleted.unwrap();
    assert!(others.iter().all(Result::is_ok));
    assert_eq!(rows(&partition, Family::Versions).await, Vec::<Bytes>::new());
    assert_eq!(rows(&partition, Family::Main).await.len(), 200);
    let longest = partition.core.longest_turn.load(std::sync::atomic::Ordering::Relaxed);
    // The step that goes beyond the limit is the last.
    assert!(longest <= 3 * ROWS_IN_TURN, "{longest} rows in one turn of the committer");
}

/// Blocks keep coming while a long list is committed: each ends up in the blob, staged, or as garbage, once.
#[tokio::test(start_paused = true)]
async fn list_that_is_overtaken_by_new_blocks_comes_through_and_loses_none() {
    const LISTED: u64 = 4_000;
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
    let read = Read::BlockList(key("a"), None, Guard::default());
    let reply = partition.read(partition.core.epoch, &read).await.unwrap();
    let ReadReply::BlockList(list) = reply else { panic!("not a block list") };
    assert_eq!(list.committed.len() as u64, LISTED);
    let named = references(&partition).await;
    let once: BTreeSet<u64> = named.iter().map(|location| location.offset).collect();
    let count = LISTED + LATER;
    assert_eq!((named.len() as u64, once.len() as u64), (count, count));
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
    let refused = [&first, &second].into_iter().filter(|done| **done == Err(Error::UnknownBlock));
    assert_eq!(refused.count(), 1, "{first:?} {second:?}");
    assert!(first.is_ok() || second.is_ok(), "{first:?} {second:?}");
}
