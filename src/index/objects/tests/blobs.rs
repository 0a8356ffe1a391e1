//! Put, read, change, delete.

use super::support::*;
use crate::index::api::*;
use crate::types::*;

#[test]
fn blob_put_reads_back_until_deleted() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"hello"))));
    let view = p.blob(&read(&a)).unwrap();
    assert_eq!(view.record.len, 5);
    assert_eq!(view.record.crc64, Crc64::of(b"hello"));
    assert_eq!(view.pieces, [Piece::Inline("hello".into())]);
    assert_eq!(p.list_all(&list()), ["a"]);
    p.must(&delete(&a));
    assert_eq!(p.blob(&read(&a)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    assert_eq!(p.write(&delete(&a)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    assert!(p.memory.rows.is_empty());
}

#[test]
fn blob_overwritten_leaves_old_bytes_as_garbage() {
    let mut p = partition();
    let a = key("a");
    let (old, new) = (location(1, 0, 10), location(1, 20, 10));
    p.must(&Write::PutBlob(put(&a, stored(&[old]))));
    let created = p.blob(&read(&a)).unwrap().record.created;
    p.must(&Write::PutBlob(put(&a, stored(&[new]))));
    assert_eq!(p.garbage(), [old]);
    let view = p.blob(&read(&a)).unwrap();
    assert_eq!(view.record.created, created);
    assert_eq!(view.pieces, [Piece::Stored { location: new, range: 0..10 }]);
    p.must(&delete(&a));
    assert_eq!(p.garbage(), [old, new]);
}

#[test]
fn put_block_twice_with_the_same_bytes_keeps_them() {
    let mut p = partition();
    let (a, bytes) = (key("a"), location(2, 0, 10));
    p.must(&stage(&a, "x", stored(&[bytes])));
    p.must(&stage(&a, "x", stored(&[bytes])));
    assert_eq!(p.garbage(), []);
    assert_eq!(p.block_list(&a).unwrap().uncommitted.len(), 1);
    p.must(&Write::CommitBlocks(commit(&a, &["+x"])));
    p.must(&Write::PutBlob(put(&a, stored(&[bytes]))));
    assert_eq!(p.garbage(), []);
    assert_eq!(p.blob(&read(&a)).unwrap().pieces.len(), 1);
}

#[test]
fn put_over_a_blob_with_staged_blocks_discards_them() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "x", stored(&[location(1, 0, 4)])));
    p.must(&stage(&a, "y", stored(&[location(1, 8, 4)])));
    p.must(&Write::PutBlob(put(&a, inline(b"z"))));
    assert_eq!(p.garbage(), [location(1, 0, 4), location(1, 8, 4)]);
    let list = p.block_list(&a).unwrap();
    assert!(list.uncommitted.is_empty() && list.committed.is_empty());
    assert_eq!(list.record.unwrap().len, 1);
}

#[test]
fn range_read_cuts_pieces_at_both_ends() {
    let mut p = partition();
    let a = key("a");
    let parts = [location(1, 0, 10), location(2, 0, 10), location(3, 0, 10)];
    p.must(&Write::PutBlob(put(&a, stored(&parts))));
    let mut read = read(&a);
    read.range = ByteRange::new(5, Some(24));
    let view = p.blob(&read).unwrap();
    assert_eq!((view.range, view.pieces_end), (5..25, 25));
    let piece = |location, range| Piece::Stored { location, range };
    assert_eq!(
        view.pieces,
        [piece(parts[0], 5..10), piece(parts[1], 0..10), piece(parts[2], 0..5)]
    );
    read.range = ByteRange::new(10, Some(19));
    assert_eq!(p.blob(&read).unwrap().pieces, [piece(parts[1], 0..10)]);
    read.range = ByteRange::new(30, None);
    assert_eq!(p.blob(&read).unwrap_err(), Error::Refused(Refused::InvalidRange { len: 30 }));
    read.range = ByteRange::new(29, Some(u64::MAX));
    assert_eq!(p.blob(&read).unwrap().range, 29..30);
    read.pieces = false;
    assert_eq!(p.blob(&read).unwrap().pieces, []);
}

#[test]
fn empty_blob_reads_without_a_range_only() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b""))));
    let mut read = read(&a);
    let view = p.blob(&read).unwrap();
    assert_eq!((view.range, view.pieces.len(), view.pieces_end), (0..0, 0, 0));
    read.range = ByteRange::new(0, None);
    assert_eq!(p.blob(&read).unwrap_err(), Error::Refused(Refused::InvalidRange { len: 0 }));
}

#[test]
fn guards_are_checked_in_order() {
    let mut p = partition();
    let a = key("a");
    let lease = Guard { lease: Some(uuid::Uuid::nil()), ..Guard::default() };
    let none_match_any = Guard {
        conditions: Conditions { if_none_match: Some(EtagMatch::Any), ..Conditions::default() },
        ..Guard::default()
    };
    let mut leased = read(&a);
    leased.guard = lease.clone();
    assert_eq!(p.blob(&leased).unwrap_err(), Error::Refused(Refused::BlobNotFound));

    let mut create = put(&a, inline(b"1"));
    create.guard = none_match_any.clone();
    p.must(&Write::PutBlob(create.clone()));
    let exists = Error::Refused(Refused::Condition(Outcome::AlreadyExists));
    assert_eq!(p.write(&Write::PutBlob(create)).unwrap_err(), exists);
    let mut list = commit(&a, &[]);
    list.guard = none_match_any.clone();
    assert_eq!(p.write(&Write::CommitBlocks(list)).unwrap_err(), exists);

    assert_eq!(
        p.blob(&leased).unwrap_err(),
        Error::Refused(Refused::Lease(LeaseRefusal::NotPresent))
    );
    let failed = Error::Refused(Refused::Condition(Outcome::Failed));
    let remove = DeleteBlob { key: a.clone(), guard: none_match_any, scope: DeleteScope::Blob };
    assert_eq!(p.write(&Write::DeleteBlob(remove)).unwrap_err(), failed);
    let mut both = put(&a, inline(b"2"));
    both.guard = lease;
    both.guard.conditions.if_match = Some(EtagMatch::Tags(vec![None]));
    assert_eq!(
        p.write(&Write::PutBlob(both.clone())).unwrap_err(),
        Error::Refused(Refused::Lease(LeaseRefusal::NotPresent))
    );
    both.guard.lease = None;
    assert_eq!(p.write(&Write::PutBlob(both.clone())).unwrap_err(), failed);
    both.key = key("missing");
    let nothing = Error::Refused(Refused::Condition(Outcome::NothingToMatch));
    assert_eq!(p.write(&Write::PutBlob(both)).unwrap_err(), nothing);
}

#[test]
fn read_conditions_answer_not_modified() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    let etag = p.blob(&read(&a)).unwrap().record.etag;
    let mut read = read(&a);
    read.guard.conditions.if_none_match = Some(EtagMatch::Tags(vec![Some(etag)]));
    assert_eq!(
        p.blob(&read).unwrap_err(),
        Error::Refused(Refused::NotModified {
            content_etag: Some(ContentEtag::of_checksum(Crc64::of(b"1"), 1, 1))
        })
    );
}

#[test]
fn property_change_keeps_content_and_changes_the_tag() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "x", stored(&[location(1, 0, 4)])));
    p.must(&Write::CommitBlocks(commit(&a, &["x"])));
    let before = p.blob(&read(&a)).unwrap();
    let properties =
        BlobProperties { content_type: Some("text/plain".to_owned()), ..BlobProperties::default() };
    let change = |change| {
        Write::UpdateBlob(UpdateBlob {
            key: a.clone(),
            revision: Revision::Current,
            guard: Guard::default(),
            change,
        })
    };
    let reply = p.must(&change(BlobChange::Properties(properties.clone())));
    let after = p.blob(&read(&a)).unwrap();
    let WriteReply::Written(written) = reply else { panic!("not written") };
    assert_eq!((written.etag, written.last_modified), (after.record.etag, p.now));
    assert!(after.record.etag > before.record.etag);
    assert_eq!(after.record.properties, properties);
    assert_eq!((after.pieces, after.record.created), (before.pieces, before.record.created));
    let metadata = Metadata::new(vec![("k".to_owned(), "v".to_owned())]).unwrap();
    p.must(&change(BlobChange::Metadata(metadata.clone())));
    let last = p.blob(&read(&a)).unwrap().record;
    assert_eq!((last.metadata, last.properties), (metadata, properties));
    assert_eq!(p.block_list(&a).unwrap().committed.len(), 1);
    assert_eq!(p.garbage(), []);
}
