//! Long scans: other tasks of the thread have their turn between a bounded number of rows, and one
//! answer ends.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::index::api::*;
use crate::index::engine::pace::{ANSWER_ROWS_MAX, Pace};
use crate::index::engine::sources::Sources;
use crate::index::engine::table::Tables;
use crate::index::engine::view::Snapshot;
use crate::index::objects::Objects;
use crate::index::objects::fake::Partition;
use crate::index::rows::{Family, Machine, Rows};
use crate::types::*;

const ACCOUNT: AccountId = AccountId::new(1);
const CONTAINER: ContainerId = ContainerId::new(77);
/// Rows between two turns: what is read of all sources at once comes on top.
const TURN_ROWS_MAX: usize = 2_048;

fn snapshot(fill: impl FnOnce(&Tables)) -> Snapshot {
    let active = Arc::new(Tables::new(Arc::default()));
    fill(&active);
    let sources = Arc::new(Sources { active, frozen: None, runs: Default::default() });
    let keys = Arc::new(KeyRange::all().into());
    Snapshot {
        sources,
        sequence: Sequence::new(1_000_000),
        keys,
        pace: Pace::default(),
        violation: Default::default(),
    }
}

fn name(number: usize) -> Bytes {
    let name = BlobName::new(&format!("{number:07}")).unwrap();
    let (account, container, collation) = (ACCOUNT, CONTAINER, Collation::Utf16);
    RoutingKey::blob(&BlobKey { account, container, collation, name }).as_bytes().clone()
}

fn removed(count: usize) -> impl FnOnce(&Tables) {
    move |tables| {
        for n in 0..count {
            tables.insert(Family::Main, name(n), Sequence::new(1), None);
        }
    }
}

/// The result, and how often it yielded to other tasks.
fn turns<T>(work: impl Future<Output = T>) -> (T, usize) {
    let mut work = pin!(work);
    let mut turns = 0;
    loop {
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => return (done, turns),
            Poll::Pending => turns += 1,
        }
    }
}

#[test]
fn scan_over_removed_rows_ends_after_a_step_and_goes_on() {
    let view = snapshot(removed(50_000));
    let (mut from, mut steps) = (Bytes::new(), 0);
    loop {
        let before = view.seen();
        let (found, _) = turns(view.scan(Family::Main, &from, None, 16));
        let found = found.unwrap();
        assert!(found.rows.is_empty());
        let seen = view.seen() - before;
        assert!(seen <= 5_000, "{seen} rows in one step");
        steps += 1;
        match found.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert!(steps >= 10, "{steps} steps");
}

#[test]
fn list_over_removed_names_takes_turns_and_answers_an_empty_page_with_a_marker() {
    let view = snapshot(removed(200_000));
    let mut list = ListBlobs::first_page(ACCOUNT, CONTAINER, Collation::Utf16, 5_000);
    let (range, mut pages) = (KeyRange::all(), 0);
    loop {
        let view = Snapshot {
            sources: Arc::clone(&view.sources),
            sequence: view.sequence,
            keys: Arc::clone(&view.keys),
            pace: Pace::default(),
            violation: Default::default(),
        };
        let read = Read::Blobs(list.clone());
        let (page, turns) = turns(Objects.answer(&view, &range, &read, Timestamp::ZERO));
        let ReadReply::Blobs(page) = page.unwrap() else { panic!("not a page") };
        assert!(page.entries.is_empty());
        assert!(page.seen <= ANSWER_ROWS_MAX + 5_000, "{} rows for one page", page.seen);
        assert!(turns * TURN_ROWS_MAX >= page.seen - TURN_ROWS_MAX.min(page.seen), "{turns} turns");
        pages += 1;
        list.from = page.next;
        if list.from.is_none() {
            break;
        }
    }
    assert_eq!(pages, 200_000_usize.div_ceil(ANSWER_ROWS_MAX));
}

#[test]
fn versions_of_one_key_are_sought_past() {
    let view = snapshot(|tables| {
        for n in 0..100_000 {
            // Half of them later than the view.
            let value = Some(Bytes::from_static(b"v"));
            tables.insert(Family::Main, name(1), Sequence::new(950_000 + n), value.clone());
            tables.insert(Family::Main, name(2 + usize::from(n > 50_000)), Sequence::new(n), value);
        }
    });
    let (rows, _) = turns(view.scan_all(Family::Main, (&[], None), 10));
    let found: Vec<Bytes> = rows.unwrap().into_iter().map(|row| row.key).collect();
    assert_eq!(found, [name(1), name(2), name(3)]);
    assert!(view.seen() < 2_000, "{} versions looked at", view.seen());
}

/// The rows of a blob with a segment of 1,000 blocks, and of its snapshots.
fn with_snapshots(count: usize) -> Snapshot {
    let mut partition = Partition::new(KeyRange::all());
    let name = BlobName::new("a").unwrap();
    let (account, container, collation) = (ACCOUNT, CONTAINER, Collation::Utf16);
    let key = BlobKey { account, container, collation, name };
    let ids: Vec<BlockId> =
        (0..1_000).map(|n| BlockId::from_bytes(format!("{n:04}").as_bytes()).unwrap()).collect();
    for (offset, id) in (0..).zip(&ids) {
        let location = Location {
            extent: ExtentId::new(1),
            offset: ExtentOffset::new(offset),
            len: ByteLen::new(1),
            crc: Crc32c::EMPTY,
        };
        let content = NewContent::Stored(vec![location]);
        let (key, guard, id) = (key.clone(), Guard::default(), *id);
        let stage = StageBlock { key, guard, id, content, crc64: Crc64::EMPTY };
        partition.write(&Write::StageBlock(stage)).unwrap();
    }
    let entry = |id| BlockListEntry { source: BlockSource::Latest, id };
    let commit = CommitBlocks {
        key: key.clone(),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        list: ids.into_iter().map(entry).collect(),
        tier: None,
    };
    partition.write(&Write::CommitBlocks(commit)).unwrap();
    for _ in 0..count {
        let (key, guard) = (key.clone(), Guard::default());
        let snapshot = SnapshotBlob { key, guard, metadata: None };
        partition.write(&Write::SnapshotBlob(snapshot)).unwrap();
    }
    snapshot(|tables| {
        for ((family, key), value) in partition.memory.rows {
            tables.insert(family, key, Sequence::new(1), Some(value));
        }
    })
}

#[test]
fn references_of_one_blob_take_turns() {
    const SNAPSHOTS: usize = 60;
    /// The most references examined between two yields.
    const IN_TURN_MAX: usize = 6_000;
    let view = with_snapshots(SNAPSHOTS);
    let read = Read::References(ListReferences { locations: 100, ..ListReferences::all() });
    let answer = Objects.answer(&view, view.keys.range(), &read, Timestamp::ZERO);
    let (page, turns) = turns(answer);
    let ReadReply::References(page) = page.unwrap() else { panic!("not references") };
    assert_eq!(page.locations.len(), 100);
    let looked_at = (SNAPSHOTS + 1) * 1_000;
    assert!(turns * IN_TURN_MAX >= looked_at, "{turns} turns for {looked_at} references");
}
