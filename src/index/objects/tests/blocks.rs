//! Put Block, Put Block List, Get Block List.

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::rows::Family;
use crate::types::*;

fn names(blocks: &[BlockView]) -> Vec<String> {
    blocks.iter().map(|b| String::from_utf8(b.id.as_bytes().to_vec()).unwrap()).collect()
}

fn loc(n: u64) -> Location {
    location(1, n * 100, n + 1)
}

/// Locations of a blob's content in order.
fn content(p: &Partition, key: &BlobKey) -> Vec<Location> {
    let mut all = Vec::new();
    let mut read = read(key);
    loop {
        let view = p.blob(&read).unwrap();
        for piece in view.pieces {
            let Piece::Stored { location, range } = piece else { panic!("inline piece") };
            assert_eq!(range, 0..location.len.get());
            all.push(location);
        }
        if view.pieces_end == view.range.end {
            return all;
        }
        read.range = ByteRange::new(view.pieces_end, None);
    }
}

#[test]
fn blob_with_staged_blocks_only_does_not_exist() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "x", stored(&[loc(1)])));
    assert_eq!(p.blob(&read(&a)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    assert_eq!(p.write(&delete(&a)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    let list = p.block_list(&a).unwrap();
    assert!(list.record.is_none());
    assert_eq!(names(&list.uncommitted), ["x"]);
    assert_eq!(p.block_list(&key("b")).unwrap_err(), Error::Refused(Refused::BlobNotFound));
}

#[test]
fn commit_takes_blocks_from_where_the_list_says() {
    let mut p = partition();
    let a = key("a");
    for (n, id) in (1..).zip(["x", "y", "z"]) {
        p.must(&stage(&a, id, stored(&[loc(n)])));
    }
    p.must(&Write::CommitBlocks(commit(&a, &["+z", "x", "+z"])));
    assert_eq!(content(&p, &a), [loc(3), loc(1), loc(3)]);
    assert_eq!(p.garbage(), [loc(2)]);
    assert_eq!(names(&p.block_list(&a).unwrap().committed), ["z", "x", "z"]);

    p.must(&stage(&a, "x", stored(&[loc(4)])));
    let both = p.block_list(&a).unwrap();
    assert_eq!((names(&both.committed).len(), names(&both.uncommitted)), (3, vec!["x".to_owned()]));
    let unknown = Write::CommitBlocks(commit(&a, &["+z"]));
    assert_eq!(p.write(&unknown).unwrap_err(), Error::Refused(Refused::UnknownBlock));
    let unknown = Write::CommitBlocks(commit(&a, &["=y"]));
    assert_eq!(p.write(&unknown).unwrap_err(), Error::Refused(Refused::UnknownBlock));
    p.must(&Write::CommitBlocks(commit(&a, &["=x", "x", "z"])));
    assert_eq!(content(&p, &a), [loc(1), loc(4), loc(3)]);
    assert_eq!(p.garbage(), [loc(2)]);

    // Two committed blocks of one id: the first of them is meant.
    p.must(&Write::CommitBlocks(commit(&a, &["=z", "=x"])));
    assert_eq!(content(&p, &a), [loc(3), loc(1)]);
    assert_eq!(p.garbage(), [loc(2), loc(4)]);

    p.must(&Write::CommitBlocks(commit(&a, &["=z"])));
    assert_eq!(content(&p, &a), [loc(3)]);
    assert_eq!(p.garbage(), [loc(1), loc(2), loc(4)]);
    p.must(&Write::CommitBlocks(commit(&a, &[])));
    let view = p.blob(&read(&a)).unwrap();
    assert_eq!((view.record.len, view.record.crc64), (0, Crc64::EMPTY));
    assert_eq!(p.garbage(), [loc(1), loc(2), loc(3), loc(4)]);
}

#[test]
fn commit_combines_checksums_and_replaces_properties() {
    let mut p = partition();
    let a = key("a");
    let md5 = Md5::of(b"whatever the client says");
    let mut first = put(&a, inline(b"old"));
    first.properties.content_md5 = Some(md5).into();
    first.metadata = Metadata::new(vec![("k".to_owned(), "v".to_owned())]).unwrap();
    p.must(&Write::PutBlob(first));
    let created = p.now;
    p.must(&stage(&a, "1", inline(b"hello ")));
    p.must(&stage(&a, "2", inline(b"world")));
    p.must(&Write::CommitBlocks(commit(&a, &["1", "2"])));
    let record = p.blob(&read(&a)).unwrap().record;
    assert_eq!((record.len, record.crc64), (11, Crc64::of(b"hello world")));
    assert_eq!((record.properties, record.metadata), Default::default());
    assert_eq!(record.created, created);
}

#[test]
fn restaged_block_replaces_the_first() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "x", stored(&[loc(1)])));
    p.must(&stage(&a, "x", stored(&[loc(2)])));
    assert_eq!(p.garbage(), [loc(1)]);
    p.must(&Write::CommitBlocks(commit(&a, &["x"])));
    assert_eq!(content(&p, &a), [loc(2)]);
}

#[test]
fn ids_of_staged_blocks_have_one_length() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "xx", inline(b"1")));
    assert_eq!(
        p.write(&stage(&a, "y", inline(b"1"))).unwrap_err(),
        Error::Refused(Refused::BlockIdLength)
    );
    p.must(&Write::CommitBlocks(commit(&a, &["xx"])));
    p.must(&stage(&a, "y", inline(b"2")));
    assert_eq!(
        p.write(&stage(&a, "zz", inline(b"1"))).unwrap_err(),
        Error::Refused(Refused::BlockIdLength)
    );
    assert_eq!(
        p.write(&Write::CommitBlocks(commit(&a, &["xx", "y"]))).unwrap_err(),
        Error::Refused(Refused::BlockIdLength),
        "one list does not mix lengths"
    );
    p.must(&Write::CommitBlocks(commit(&a, &["y"])));
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    p.must(&stage(&a, "zzz", inline(b"1")));
}

#[test]
fn too_many_staged_blocks_are_refused() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "000000", inline(b"1")));
    let summary = super::super::keys::staged_summary(&RoutingKey::blob(&a));
    let full =
        super::super::values::StagedSummary { count: 100_000, id_len: 6, last_staged: p.now };
    p.memory.rows.insert((Family::Staged, summary), super::super::values::encode(&full));
    assert_eq!(
        p.write(&stage(&a, "000001", inline(b"1"))).unwrap_err(),
        Error::Refused(Refused::TooManyBlocks)
    );
    p.must(&stage(&a, "000000", inline(b"2")));
}

#[test]
fn long_list_is_read_in_steps_of_two_segments() {
    let mut p = partition();
    let a = key("a");
    let ids: Vec<String> = (0..5_500).map(|n| format!("{n:05}")).collect();
    for (n, id) in (0..).zip(&ids) {
        p.must(&stage(&a, id, stored(&[location(n % 7, n * 10, 10)])));
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    p.must(&Write::CommitBlocks(commit(&a, &ids)));
    assert_eq!(p.memory.rows.len(), 1 + 6);
    let view = p.blob(&read(&a)).unwrap();
    assert_eq!((view.record.len, view.pieces.len(), view.pieces_end), (55_000, 2_000, 20_000));
    assert_eq!(content(&p, &a).len(), 5_500);
    let mut middle = read(&a);
    middle.range = ByteRange::new(29_995, Some(30_004));
    let view = p.blob(&middle).unwrap();
    let at = |n: u64| location(n % 7, n * 10, 10);
    let piece = |location, range| Piece::Stored { location, range };
    assert_eq!(view.pieces, [piece(at(2_999), 5..10), piece(at(3_000), 0..5)]);
    assert_eq!(view.pieces_end, 30_005);
    assert_eq!(p.block_list(&a).unwrap().committed.len(), 5_500);

    let reversed: Vec<&str> = ids.iter().rev().skip(500).copied().collect();
    p.must(&Write::CommitBlocks(commit(&a, &reversed)));
    assert_eq!(p.garbage().len(), 500);
    assert_eq!(content(&p, &a).first(), Some(&at(4_999)));
    p.must(&delete(&a));
    assert_eq!(p.garbage().len(), 5_500);
    assert!(p.memory.rows.keys().all(|(family, _)| *family == Family::Garbage));
}

#[test]
fn heavy_blocks_cut_segments_early() {
    let mut p = partition();
    let a = key("a");
    let ids: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    for id in &ids {
        p.must(&stage(&a, id, inline(&[7; 60_000])));
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    p.must(&Write::CommitBlocks(commit(&a, &ids)));
    assert_eq!(p.memory.rows.len(), 1 + 3);
    assert_eq!(p.blob(&read(&a)).unwrap().pieces_end, 8 * 60_000);
}
