//! Snapshots: what they share, when they go, how they are listed.

use super::support::*;
use crate::index::api::History;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::BlobRecord;
use crate::types::Revision;
use crate::types::*;

fn take(p: &mut Partition, key: &BlobKey) -> Timestamp {
    let snapshot = SnapshotBlob { key: key.clone(), guard: Guard::default(), metadata: None };
    let WriteReply::Snapshotted(taken) = p.must(&Write::SnapshotBlob(snapshot)) else {
        panic!("not a snapshot")
    };
    assert_eq!(taken.snapshot, p.now);
    taken.snapshot
}

fn of(key: &BlobKey, taken: Timestamp) -> ReadBlob {
    ReadBlob { revision: Revision::Snapshot(taken), ..read(key) }
}

#[test]
fn snapshot_keeps_content_that_the_blob_loses() {
    let mut p = partition();
    let (a, old, new) = (key("a"), location(1, 0, 10), location(2, 0, 5));
    p.must(&Write::PutBlob(put(&a, stored(&[old]))));
    let before = p.blob(&read(&a)).unwrap();
    let taken = take(&mut p, &a);
    assert_eq!(p.blob(&read(&a)).unwrap().record.etag, before.record.etag);
    p.must(&Write::PutBlob(put(&a, stored(&[new]))));
    assert_eq!(p.garbage(), [], "shared bytes are the audit's");
    assert_eq!(references(&p), [old, new]);
    let kept = p.blob(&of(&a, taken)).unwrap();
    assert_eq!(kept.pieces, before.pieces);
    assert_eq!(kept.record, BlobRecord { snapshots: 0, ..before.record });
    assert_eq!(p.blob(&read(&a)).unwrap().record.snapshots, 1);
    assert_eq!(p.blob(&of(&a, taken.next())).unwrap_err(), Error::Refused(Refused::BlobNotFound));
}

#[test]
fn snapshot_with_metadata_has_its_own_tag() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    let metadata = Metadata::new(vec![("k".to_owned(), "v".to_owned())]).unwrap();
    let guard = Guard::default();
    let snapshot = SnapshotBlob { key: a.clone(), guard, metadata: Some(metadata.clone()) };
    let WriteReply::Snapshotted(taken) = p.must(&Write::SnapshotBlob(snapshot)) else { panic!() };
    let (blob, kept) = (p.blob(&read(&a)).unwrap(), p.blob(&of(&a, taken.snapshot)).unwrap());
    assert_eq!(kept.record.metadata, metadata);
    assert!(blob.record.metadata.is_empty());
    assert_eq!((kept.record.etag, kept.record.last_modified), (taken.written.etag, p.now));
    assert!(kept.record.etag > blob.record.etag);
}

#[test]
fn long_layouts_get_segments_of_their_own() {
    let mut p = partition();
    let a = key("a");
    let ids: Vec<String> = (0..150).map(|n| format!("{n:03}")).collect();
    for (n, id) in (0u64..).zip(&ids) {
        p.must(&stage(&a, id, stored(&[location(1, n * 10, 10)])));
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    p.must(&Write::CommitBlocks(commit(&a, &ids)));
    let all = references(&p);
    let taken = take(&mut p, &a);
    p.must(&Write::CommitBlocks(commit(&a, &[])));
    assert_eq!(p.garbage(), []);
    assert_eq!(references(&p), all);
    let kept = p.blob(&of(&a, taken)).unwrap();
    assert_eq!((kept.record.len, kept.pieces_end), (1_500, 1_500));
    let list = Read::BlockList(a.clone(), Revision::Snapshot(taken), Guard::default());
    let ReadReply::BlockList(list) = p.read(&list).unwrap() else { panic!("not a list") };
    assert_eq!((list.committed.len(), list.uncommitted.len()), (150, 0));
    p.must(&delete_of(&a, DeleteScope::Snapshot(taken)));
    assert_eq!(references(&p), []);
    assert_eq!(p.memory.rows.len(), 1, "only the blob's own row is left");
}

#[test]
fn delete_says_what_becomes_of_snapshots() {
    let mut p = partition();
    let a = key("a");
    let fresh = |p: &mut Partition| {
        p.must(&Write::PutBlob(put(&a, stored(&[location(1, p.now.ticks(), 1)]))));
        [take(p, &a), take(p, &a)]
    };
    let [first, second] = fresh(&mut p);
    assert_eq!(p.write(&delete(&a)).unwrap_err(), Error::Refused(Refused::SnapshotsPresent));
    p.must(&delete_of(&a, DeleteScope::Snapshot(first)));
    assert_eq!(p.blob(&of(&a, first)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    let gone = delete_of(&a, DeleteScope::Snapshot(first));
    assert_eq!(p.write(&gone).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    assert!(p.blob(&of(&a, second)).is_ok());
    p.must(&delete_of(&a, DeleteScope::Snapshots));
    assert_eq!(p.blob(&of(&a, second)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    p.must(&delete(&a));
    assert!(p.memory.rows.is_empty());
    fresh(&mut p);
    p.must(&delete_of(&a, DeleteScope::BlobAndSnapshots));
    assert!(p.memory.rows.is_empty(), "{:?}", p.memory.rows.keys());
}

#[test]
fn lease_holds_the_blob_and_not_its_snapshots() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    let id = uuid::Uuid::from_u128(7);
    let action = LeaseAction::Acquire { proposed: Some(id), duration: None };
    p.must(&Write::LeaseBlob(LeaseBlob { key: a.clone(), guard: Guard::default(), action }));
    let taken = take(&mut p, &a);
    let missing = Error::Refused(Refused::Lease(LeaseRefusal::Missing));
    for scope in [DeleteScope::Snapshots, DeleteScope::BlobAndSnapshots, DeleteScope::Blob] {
        assert_eq!(p.write(&delete_of(&a, scope)).unwrap_err(), missing, "{scope:?}");
    }
    assert_eq!(p.blob(&of(&a, taken)).unwrap().record.lease, None);
    let mut leased = of(&a, taken);
    leased.guard.lease = Some(id);
    assert_eq!(
        p.blob(&leased).unwrap_err(),
        Error::Refused(Refused::Lease(LeaseRefusal::NotPresent))
    );
    p.must(&delete_of(&a, DeleteScope::Snapshot(taken)));
    let mut again = put(&a, inline(b"2"));
    assert_eq!(p.write(&Write::PutBlob(again.clone())).unwrap_err(), missing);
    again.guard.lease = Some(id);
    p.must(&Write::PutBlob(again));
    assert_eq!(p.blob(&read(&a)).unwrap().record.lease.map(|lease| lease.id), Some(id));
}

#[test]
fn list_shows_snapshots_by_time_before_their_blob() {
    let mut p = partition();
    let mut expected = Vec::new();
    for (name, count) in [("a", 2), ("a/b", 0), ("a/c", 3), ("b", 1)] {
        p.must(&Write::PutBlob(put(&key(name), inline(b"1"))));
        for _ in 0..count {
            expected.push(format!("{name}@{}", take(&mut p, &key(name)).ticks()));
        }
        expected.push(name.to_owned());
    }
    for limit in [1, 2, 3, 100] {
        let flat = ListBlobs { history: History::Snapshots, limit, ..list() };
        assert_eq!(p.list_all(&flat), expected, "limit {limit}");
        let folded = ListBlobs { delimiter: Some("/".to_owned()), ..flat };
        let names = [&expected[..3], &["a/>".to_owned()], &expected[8..]].concat();
        assert_eq!(p.list_all(&folded), names, "limit {limit}");
        let plain = ListBlobs { limit, ..list() };
        assert_eq!(p.list_all(&plain), ["a", "a/b", "a/c", "b"]);
    }
}

#[test]
fn purge_takes_snapshots_too() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(1, 0, 1)]))));
    take(&mut p, &a);
    let from = RoutingKey::container_range(ACCOUNT, CONTAINER).low().as_bytes().clone();
    let (account, container) = (ACCOUNT, CONTAINER);
    p.must(&Write::PurgeContainer { account, container, from, limit: 10 });
    assert!(p.memory.rows.is_empty());
}
