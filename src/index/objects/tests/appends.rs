//! Append Block, Append Blob Seal.

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::rows::Family;
use crate::types::*;

fn made(p: &mut Partition, name: &str) -> BlobKey {
    let key = key(name);
    p.must(&make(&key, NewKind::Append));
    key
}

/// The bytes of a blob of inline blocks.
fn content(p: &Partition, key: &BlobKey, from: u64, last: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut read = ReadBlob { range: ByteRange::new(from, last), ..read(key) };
    loop {
        let view = p.blob(&read).unwrap();
        for piece in view.pieces {
            let Piece::Inline(part) = piece else { panic!("not inline") };
            bytes.extend(part);
        }
        if view.pieces_end == view.range.end {
            return bytes;
        }
        read.range = ByteRange::new(view.pieces_end, last);
    }
}

#[test]
fn append_answers_where_it_went_and_changes_the_tag() {
    let mut p = partition();
    let a = made(&mut p, "a");
    let before = p.blob(&read(&a)).unwrap().record;
    assert_eq!((before.len, before.kind), (0, BlobKind::Append { blocks: 0, sealed: false }));
    for (n, word) in [(1, "one "), (2, "two "), (3, "three")] {
        let reply = p.must(&Write::AppendBlock(append(&a, inline(word.as_bytes()))));
        let WriteReply::Appended(block) = reply else { panic!("{reply:?}") };
        let AppendedBlock { written, offset, blocks } = block;
        assert_eq!((offset, blocks), (u64::from(n - 1) * 4, n));
        let record = p.blob(&read(&a)).unwrap().record;
        assert_eq!((record.etag, record.last_modified), (written.etag, written.last_modified));
        assert_ne!(record.etag, before.etag);
    }
    let record = p.blob(&read(&a)).unwrap().record;
    assert_eq!((record.len, record.crc64), (13, Crc64::of(b"one two three")));
    assert_eq!(record.created, before.created);
    assert_eq!(content(&p, &a, 2, Some(9)), b"e two th");
}

#[test]
fn append_holds_to_position_and_size() {
    let mut p = partition();
    let a = made(&mut p, "a");
    let at = |position, len_max| AppendBlock { position, len_max, ..append(&a, inline(b"12345")) };
    assert_eq!(
        p.write(&Write::AppendBlock(at(Some(1), None))).unwrap_err(),
        Error::Refused(Refused::AppendPosition { len: 0 })
    );
    p.must(&Write::AppendBlock(at(Some(0), Some(5))));
    assert_eq!(
        p.write(&Write::AppendBlock(at(Some(5), Some(9)))).unwrap_err(),
        Error::Refused(Refused::LongerThanAllowed)
    );
    p.must(&Write::AppendBlock(at(Some(5), Some(10))));
    assert_eq!(p.blob(&read(&a)).unwrap().record.len, 10);
}

#[test]
fn sealed_blob_takes_no_more_and_sealing_again_changes_nothing() {
    let mut p = partition();
    let a = made(&mut p, "a");
    p.must(&Write::AppendBlock(append(&a, inline(b"x"))));
    let wrong = SealBlob { position: Some(0), ..seal(&a) };
    assert_eq!(
        p.write(&Write::SealBlob(wrong)).unwrap_err(),
        Error::Refused(Refused::AppendPosition { len: 1 })
    );
    let first = p.must(&Write::SealBlob(seal(&a)));
    assert_eq!(p.must(&Write::SealBlob(seal(&a))), first);
    let refused = p.write(&Write::AppendBlock(append(&a, inline(b"y"))));
    assert_eq!(refused.unwrap_err(), Error::Refused(Refused::Sealed));
    let kind = BlobKind::Append { blocks: 1, sealed: true };
    assert_eq!(p.blob(&read(&a)).unwrap().record.kind, kind);
    // Made anew it is open again.
    p.must(&make(&a, NewKind::Append));
    p.must(&Write::AppendBlock(append(&a, inline(b"z"))));
    assert_eq!(content(&p, &a, 0, None), b"z");
}

#[test]
fn operations_of_other_kinds_are_refused() {
    let mut p = partition();
    let a = made(&mut p, "a");
    let b = key("b");
    p.must(&Write::PutBlob(put(&b, inline(b"block"))));
    for write in [
        stage(&a, "1", inline(b"1")),
        Write::CommitBlocks(commit(&a, &[])),
        Write::AppendBlock(append(&b, inline(b"1"))),
        Write::SealBlob(seal(&b)),
    ] {
        assert_eq!(p.write(&write).unwrap_err(), Error::Refused(Refused::WrongKind), "{write:?}");
    }
    assert_eq!(p.block_list(&a).unwrap_err(), Error::Refused(Refused::WrongKind));
    let none = key("none");
    for write in [Write::AppendBlock(append(&none, inline(b"1"))), Write::SealBlob(seal(&none))] {
        assert_eq!(p.write(&write).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    }
}

#[test]
fn making_an_append_blob_drops_what_was_there() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(1, 0, 9)]))));
    p.must(&stage(&a, "1", stored(&[location(1, 100, 9)])));
    p.must(&make(&a, NewKind::Append));
    assert_eq!(p.garbage(), [location(1, 0, 9), location(1, 100, 9)]);
    p.must(&Write::AppendBlock(append(&a, stored(&[location(1, 200, 9)]))));
    p.must(&make(&a, NewKind::Append));
    assert_eq!(p.garbage().len(), 3);
    assert_eq!(p.memory.rows.iter().filter(|((f, _), _)| *f == Family::Main).count(), 1);
}

/// Appends until the limit; returns what the heaviest change of rows weighed and what all weighed
/// together.
fn fill(
    p: &mut Partition,
    key: &BlobKey,
    block: &dyn Fn(u64) -> (NewContent, Crc64),
) -> [usize; 2] {
    let mut weights = [0; 2];
    for n in 0..u64::from(APPENDS_MAX) {
        let write = Write::AppendBlock(append(key, block(n)));
        let (_, weight) = p.write_weighed(&write).unwrap();
        weights = [weights[0].max(weight), weights[1] + weight];
    }
    weights
}

#[test]
fn the_50_000th_append_is_the_last_and_costs_no_more_than_the_first_ones() {
    let mut p = partition();
    let a = made(&mut p, "a");
    let at = |n: u64| location(n % 5, n * 1_000, 10);
    let [most, all] = fill(&mut p, &a, &|n| stored(&[at(n)]));
    assert!(most < 80 * 1024, "{most} bytes of rows for one append");
    assert!(all / 50_000 < 4 * 1024, "{} bytes of rows for an append", all / 50_000);
    let refused = p.write(&Write::AppendBlock(append(&a, inline(b"x"))));
    assert_eq!(refused.unwrap_err(), Error::Refused(Refused::TooManyAppends));
    let record = p.blob(&read(&a)).unwrap().record;
    assert_eq!(
        (record.len, record.kind),
        (500_000, BlobKind::Append { blocks: 50_000, sealed: false })
    );
    let mut found = Vec::new();
    let mut read = read(&a);
    loop {
        let view = p.blob(&read).unwrap();
        for piece in view.pieces {
            let Piece::Stored { location, .. } = piece else { panic!("inline") };
            found.push(location);
        }
        if view.pieces_end == view.range.end {
            break;
        }
        read.range = ByteRange::new(view.pieces_end, None);
    }
    assert_eq!(found, (0..50_000).map(at).collect::<Vec<_>>());
    p.must(&delete(&a));
    assert_eq!(p.garbage().len(), 50_000);
    assert!(p.memory.rows.keys().all(|(family, _)| *family == Family::Garbage));
}

#[test]
fn inline_blocks_move_into_segments_too() {
    let mut p = partition();
    let a = made(&mut p, "a");
    let mut all = Vec::new();
    for n in 0..700u32 {
        let block = vec![u8::try_from(n % 251).unwrap(); 500];
        p.must(&Write::AppendBlock(append(&a, inline(&block))));
        all.extend(block);
    }
    assert!(p.memory.rows.len() > 4, "{} rows", p.memory.rows.len());
    assert_eq!(content(&p, &a, 0, None), all);
    for (from, last) in [(0, 0), (249_000, 251_000), (349_500, 349_999), (123_456, 345_678)] {
        let expected = &all[usize::try_from(from).unwrap()..=usize::try_from(last).unwrap()];
        assert_eq!(content(&p, &a, from, Some(last)), expected, "{from} to {last}");
    }
    let record = p.blob(&read(&a)).unwrap().record;
    assert_eq!(record.crc64, Crc64::of(&all));
}

#[test]
fn retried_range_goes_on_over_appends_but_not_over_another_blob() {
    let mut p = partition();
    let a = made(&mut p, "a");
    p.must(&Write::AppendBlock(append(&a, inline(b"1"))));
    let first = p.blob(&read(&a)).unwrap().generation;
    p.must(&Write::AppendBlock(append(&a, inline(b"2"))));
    assert_eq!(p.blob(&read(&a)).unwrap().generation, first);
    p.must(&make(&a, NewKind::Append));
    p.must(&Write::AppendBlock(append(&a, inline(b"3"))));
    assert_ne!(p.blob(&read(&a)).unwrap().generation, first);
}
