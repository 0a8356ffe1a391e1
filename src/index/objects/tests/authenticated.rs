//! Content in authenticated chunks under customer-provided keys (ADR 0025).

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::rows::Family;
use crate::types::*;

const NONCE: KeyedNonce = KeyedNonce { bytes: [0x11; 16], key_sha256: [0x22; 32] };

fn encrypted((content, _): (NewContent, Crc64)) -> (NewContent, Crc64) {
    (NewContent::Authenticated(NONCE, Box::new(content)), Crc64::EMPTY)
}

fn key_claim() -> Guard {
    let encryption = EncryptionClaim::Given(Some(Encryption::Customer([0x22; 32])));
    Guard { encryption, ..Guard::default() }
}

fn read_with(p: &Partition, range: std::ops::Range<u64>) -> Result<Vec<Piece>, Error> {
    let range = ByteRange::new(range.start, Some(range.end - 1));
    p.blob(&ReadBlob { guard: key_claim(), range, ..read(&key("a")) }).map(|view| view.pieces)
}

fn piece(nonce: KeyedNonce, len: u64, range: std::ops::Range<u64>, piece: Piece) -> Piece {
    Piece::Authenticated { nonce, len, range, piece: Box::new(piece) }
}

fn in_chunks(location: Location, chunks: std::ops::Range<u64>) -> Piece {
    let at = |chunk: u64| (chunk * AUTHENTICATED_CHUNK_BYTES).min(location.len.get());
    Piece::Stored { location, range: at(chunks.start)..at(chunks.end) }
}

#[test]
fn a_range_names_the_chunks_that_cover_it() {
    let mut p = partition();
    let len = 64 * CHUNK_BYTES + 2 * CHUNK_BYTES + 10;
    let locations =
        [location(1, 0, 1 << 20), location(2, 0, authenticated_len(2 * CHUNK_BYTES + 10))];
    let mut new = put(&key("a"), encrypted(stored(&locations)));
    new.guard = key_claim();
    p.must(&Write::PutBlob(new));
    let view = p.blob(&ReadBlob { guard: key_claim(), ..read(&key("a")) }).unwrap();
    assert_eq!((view.record.len, view.pieces_end), (len, len));
    let second = 64 * CHUNK_BYTES;
    assert_eq!(
        view.pieces,
        [
            piece(NONCE, len, 0..second, in_chunks(locations[0], 0..64)),
            piece(NONCE, len, second..len, in_chunks(locations[1], 0..3)),
        ]
    );
    let one = piece(NONCE, len, 5..6, in_chunks(locations[0], 0..1));
    assert_eq!(read_with(&p, 5..6).unwrap(), [one]);
    let across = second - 1..second + CHUNK_BYTES + 1;
    assert_eq!(
        read_with(&p, across.clone()).unwrap(),
        [
            piece(NONCE, len, across.start..second, in_chunks(locations[0], 63..64)),
            piece(NONCE, len, second..across.end, in_chunks(locations[1], 0..2)),
        ]
    );
    p.must(&delete(&key("a")));
    assert_eq!(p.garbage(), locations, "encrypted bytes are freed like others");
}

#[test]
fn a_location_that_begins_inside_a_chunk_is_damage() {
    let mut p = partition();
    let mut new = put(&key("a"), encrypted(stored(&[location(1, 0, 100), location(2, 0, 100)])));
    new.guard = key_claim();
    p.must(&Write::PutBlob(new));
    assert!(matches!(read_with(&p, 0..168), Err(Error::Corrupt(Damage::Rows(_)))));
}

#[test]
fn blocks_appends_and_snapshots_have_the_length_of_the_plain_text() {
    let mut p = partition();
    let bytes = vec![7; 116];
    p.must(&stage(&key("a"), "x", encrypted(inline(&bytes))));
    p.must(&stage(&key("a"), "y", encrypted(stored(&[location(1, 0, 1_016)]))));
    let mut list = commit(&key("a"), &["x", "y", "x"]);
    list.guard = key_claim();
    p.must(&Write::CommitBlocks(list));
    let view = p.blob(&ReadBlob { guard: key_claim(), ..read(&key("a")) }).unwrap();
    assert_eq!((view.record.len, view.record.crc64), (1_200, Crc64::EMPTY));
    let row = |range| piece(NONCE, 100, range, Piece::Inline(bytes.clone().into()));
    let block = piece(NONCE, 1_000, 0..1_000, in_chunks(location(1, 0, 1_016), 0..1));
    assert_eq!(view.pieces, [row(0..100), block, row(0..100)]);
    assert_eq!(read_with(&p, 1_150..1_160).unwrap(), [row(50..60)]);
}

fn write_pages(range: std::ops::Range<u64>, content: Option<NewContent>) -> Write {
    Write::WritePages(WritePages {
        key: key("a"),
        guard: key_claim(),
        sequence: SequenceBounds::default(),
        range: range.start * PAGE_BYTES..range.end * PAGE_BYTES,
        content,
    })
}

#[test]
fn pages_written_over_keep_the_chunks_they_are_in() {
    let mut p = partition();
    let mut new = put(&key("a"), inline(b""));
    (new.kind, new.guard) = (NewKind::Page { len: 300 * PAGE_BYTES, sequence: 0 }, key_claim());
    p.must(&Write::PutBlob(new));
    let (window, part) = (128 * PAGE_BYTES, 72 * PAGE_BYTES);
    let locations =
        [location(1, 0, authenticated_len(window)), location(1, 90_000, authenticated_len(part))];
    p.must(&write_pages(0..200, Some(encrypted(stored(&locations)).0)));
    let bytes = vec![9; 4 * 512 + 16];
    p.must(&write_pages(250..254, Some(encrypted(inline(&bytes)).0)));
    let wrong = write_pages(0..4, Some(encrypted(inline(&bytes[16..])).0));
    assert!(
        matches!(p.write(&wrong), Err(Error::Refused(Refused::InvalidPages { .. }))),
        "its length with tags"
    );
    p.must(&write_pages(10..130, None));
    p.must(&write_pages(251..252, None));
    let row = |from: u64, to: u64| {
        let range = from * PAGE_BYTES..to * PAGE_BYTES;
        piece(NONCE, 4 * PAGE_BYTES, range, Piece::Inline(bytes.clone().into()))
    };
    assert_eq!(
        read_with(&p, 9 * PAGE_BYTES..253 * PAGE_BYTES).unwrap(),
        [
            piece(NONCE, window, 9 * 512..10 * 512, in_chunks(locations[0], 0..1)),
            Piece::Zeros(120 * PAGE_BYTES),
            piece(NONCE.part(1), part, 2 * 512..part, in_chunks(locations[1], 0..3)),
            Piece::Zeros(50 * PAGE_BYTES),
            row(0, 1),
            Piece::Zeros(PAGE_BYTES),
            row(2, 3),
        ]
    );
    assert_eq!(p.garbage(), [], "a part of each location is shown");
    // The first goes with the last page of it.
    p.must(&write_pages(0..10, None));
    assert_eq!(p.garbage(), locations[..1]);
    p.must(&write_pages(0..300, None));
    assert_eq!(p.garbage(), locations);
}

#[test]
fn a_plain_digest_of_a_blob_under_a_key_needs_the_key() {
    let mut p = partition();
    let mut new = put(&key("a"), encrypted(inline(&[0; 20])));
    new.guard = key_claim();
    p.must(&Write::PutBlob(new));
    let change = |content_md5: ContentMd5| {
        let change = BlobChange::Properties(BlobProperties { content_md5, ..Default::default() });
        let guard = Guard::default();
        Write::UpdateBlob(UpdateBlob { key: key("a"), revision: Revision::Current, guard, change })
    };
    let refused = p.write(&change(Some(Md5::of(b"x")).into())).unwrap_err();
    assert_eq!(refused, Error::Refused(Refused::Encryption(EncryptionFault::KeyMissing)));
    p.must(&change(ContentMd5::Absent));
}

/// Golden bytes of `api-spec/encryption.md`.
#[test]
fn authenticated_content_has_the_documented_bytes() {
    let hex = |content: NewContent| {
        let span = values::Span { len: 1, skip: 2, content: Some(Content::from(&content)) };
        let row = values::encode(&span);
        assert_eq!(values::decode::<values::Span>(Family::Layout, b"", &row), Ok(span));
        row.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let (nonce, key) = ("11".repeat(16), "22".repeat(32));
    let begin = format!("010102010401{nonce}{key}");
    assert_eq!(hex(encrypted(inline(b"hi")).0), format!("{begin}00026869"));
    assert_eq!(hex(encrypted(stored(&[location(1, 2, 3)])).0), format!("{begin}010101020307"));
    let row = format!("010102010402{nonce}{key}00026869");
    let row: Vec<u8> = (0..row.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&row[at..at + 2], 16).unwrap())
        .collect();
    let other = values::decode::<values::Span>(Family::Layout, b"", &row);
    assert!(matches!(other, Err(Error::Corrupt(Damage::Rows(_)))), "another format: {other:?}");
}

#[test]
fn content_is_shared_with_whoever_brings_its_key() {
    let mut p = partition();
    let at = [location(1, 0, 1 << 20), location(2, 0, authenticated_len(10))];
    let mut new = put(&key("a"), encrypted(stored(&at)));
    new.guard = key_claim();
    p.must(&Write::PutBlob(new));
    let share = |guard: Guard| {
        let share = Share { key: key("a"), revision: Revision::Current, guard, range: None };
        Write::Share(Box::new(share))
    };
    let given = |key| Guard { encryption: EncryptionClaim::Given(key), ..Guard::default() };
    for other in [given(None), given(Some(Encryption::Customer([1; 32])))] {
        assert!(p.write(&share(other)).is_err());
    }
    let shared_of = |reply: WriteReply| {
        let WriteReply::Shared(shared) = reply else { panic!("{reply:?}") };
        *shared
    };
    assert_eq!(shared_of(p.must(&share(Guard::default()))).content, None, "no key, no content");
    let shared = shared_of(p.must(&share(key_claim())));
    let expected = NewContent::Authenticated(NONCE, Box::new(NewContent::Shared(at.to_vec())));
    assert_eq!(shared.content, Some(CopiedContent::Whole(expected)));
    let Write::PutCopy(mut copy) = copied(shared, "b") else { panic!("no copy") };
    copy.guard = key_claim();
    p.must(&Write::PutCopy(copy));
    p.must(&delete(&key("a")));
    assert!(p.garbage().is_empty(), "the copy names the bytes");
    assert_eq!(references(&p), at);
    let view = p.blob(&ReadBlob { guard: key_claim(), ..read(&key("b")) }).unwrap();
    assert_eq!(view.record.encryption, Some(Encryption::Customer(NONCE.key_sha256)));
    assert_eq!(view.pieces.len(), 2);
}
