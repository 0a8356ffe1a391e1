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
    assert_eq!(p.blob(&read(&a)).unwrap_err(), Error::BlobNotFound);
    assert_eq!(p.write(&delete(&a)).unwrap_err(), Error::BlobNotFound);
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
