//! Content under customer-provided keys, and blobs under scopes.

use super::golden::unhex;
use super::support::*;
use crate::index::api::*;
use crate::index::objects::contents::Ciphertext;
use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::objects::values::Content;
use crate::index::objects::values::StagedBlock;
use crate::index::rows::Family;
use crate::types::*;

const NONCE: KeyedNonce = KeyedNonce { bytes: [0x11; 16], key_sha256: [0x22; 32] };

fn under_key((content, crc64): (NewContent, Crc64)) -> (NewContent, Crc64) {
    (NewContent::Encrypted(NONCE, Box::new(content)), crc64)
}

fn key_claim(n: u8) -> Guard {
    let encryption = EncryptionClaim::Given(Some(Encryption::Customer([n; 32])));
    Guard { encryption, ..Guard::default() }
}

fn no_key() -> Guard {
    Guard { encryption: EncryptionClaim::Given(None), ..Guard::default() }
}

fn fault(fault: EncryptionFault) -> Error {
    Error::Refused(Refused::Encryption(fault))
}

fn encrypted(at: u64, piece: Piece) -> Piece {
    Piece::Encrypted { nonce: NONCE, at, piece: Box::new(piece) }
}

#[test]
fn a_blob_under_a_key_is_read_with_that_key() {
    let mut p = partition();
    let locations = [location(1, 0, 10), location(2, 0, 20)];
    let mut new = put(&key("a"), under_key(stored(&locations)));
    new.guard = key_claim(0x22);
    p.must(&Write::PutBlob(new));
    let with = |guard: Guard| ReadBlob { guard, ..read(&key("a")) };
    assert_eq!(p.blob(&with(no_key())).unwrap_err(), fault(EncryptionFault::KeyMissing));
    assert_eq!(p.blob(&with(key_claim(1))).unwrap_err(), fault(EncryptionFault::Mismatch));
    let mut middle = with(key_claim(0x22));
    middle.range = ByteRange::new(5, Some(14));
    let view = p.blob(&middle).unwrap();
    assert_eq!(view.record.encryption, Some(Encryption::Customer([0x22; 32])));
    let piece = |location, range| Piece::Stored { location, range };
    let expected =
        [encrypted(5, piece(locations[0], 5..10)), encrypted(10, piece(locations[1], 0..5))];
    assert_eq!(view.pieces, expected);
    p.must(&delete(&key("a")));
    let garbage = p.memory.rows.keys().filter(|(family, _)| *family == Family::Garbage).count();
    assert_eq!(garbage, 1, "encrypted bytes are freed like others");
}

#[test]
fn metadata_of_a_blob_under_a_key_changes_with_the_key_and_the_blob_is_replaced_without() {
    let mut p = partition();
    let mut new = put(&key("a"), under_key(inline(b"secret")));
    new.guard = key_claim(0x22);
    p.must(&Write::PutBlob(new));
    let change = |guard: Guard| {
        let change = BlobChange::Metadata(Metadata::default());
        Write::UpdateBlob(UpdateBlob { key: key("a"), revision: Revision::Current, guard, change })
    };
    assert_eq!(p.write(&change(no_key())).unwrap_err(), fault(EncryptionFault::KeyMissing));
    p.must(&change(key_claim(0x22)));
    // Without a claim, as in Set Blob Properties, nothing is checked.
    p.must(&change(Guard::default()));
    let mut plain = put(&key("a"), inline(b"plain"));
    plain.guard = no_key();
    p.must(&Write::PutBlob(plain));
    let found = p.blob(&read(&key("a"))).unwrap();
    assert_eq!(
        (found.record.encryption, found.pieces),
        (None, vec![Piece::Inline("plain".into())])
    );
}

fn keyed_scope(name: &str, n: u8) -> Guard {
    let under = Encryption::KeyedScope { name: name.to_owned(), key_sha256: [n; 32] };
    Guard { encryption: EncryptionClaim::Given(Some(under)), ..Guard::default() }
}

#[test]
fn a_blob_under_a_scope_with_a_key_is_read_by_all_and_changed_under_that_key() {
    let mut p = partition();
    let mut new = put(&key("a"), under_key(inline(b"secret")));
    new.guard = keyed_scope("s", 0x22);
    p.must(&Write::PutBlob(new));
    let with = |guard: Guard| ReadBlob { guard, ..read(&key("a")) };
    let named = EncryptionClaim::Given(Some(Encryption::Scope("s".to_owned())));
    let named = Guard { encryption: named, ..Guard::default() };
    for guard in [no_key(), named.clone(), keyed_scope("s", 0x22)] {
        let record = p.blob(&with(guard)).unwrap().record;
        let under = Encryption::KeyedScope { name: "s".to_owned(), key_sha256: [0x22; 32] };
        assert_eq!(record.under(), Some(under));
        assert_eq!(record.encryption, Some(Encryption::Scope("s".to_owned())), "as rows have it");
        assert!(record.is_under_key() && record.content_crc64().is_none());
    }
    assert_eq!(p.blob(&with(key_claim(0x22))).unwrap_err(), fault(EncryptionFault::NotEncrypted));
    let change = |guard: Guard| {
        let change = BlobChange::Metadata(Metadata::default());
        Write::UpdateBlob(UpdateBlob { key: key("a"), revision: Revision::Current, guard, change })
    };
    assert_eq!(p.write(&change(no_key())).unwrap_err(), fault(EncryptionFault::KeyMissing));
    for other in [named, keyed_scope("s", 0x23), keyed_scope("t", 0x22)] {
        assert_eq!(p.write(&change(other)).unwrap_err(), fault(EncryptionFault::Mismatch));
    }
    p.must(&change(keyed_scope("s", 0x22)));
    let mut plain = put(&key("a"), inline(b"plain"));
    plain.guard = no_key();
    p.must(&Write::PutBlob(plain));
    assert_eq!(p.blob(&read(&key("a"))).unwrap().record.under(), None);
}

#[test]
fn a_block_list_takes_blocks_under_its_own_key_only() {
    let mut p = partition();
    p.must(&stage(&key("a"), "x", under_key(inline(b"one"))));
    p.must(&stage(&key("a"), "y", inline(b"two")));
    let mut commit_with = |ids: &[&str], guard: Guard| {
        let mut list = commit(&key("a"), ids);
        list.guard = guard;
        p.write(&Write::CommitBlocks(list))
    };
    let missing = fault(EncryptionFault::KeyMissing);
    assert_eq!(commit_with(&["x"], no_key()).unwrap_err(), missing);
    assert_eq!(commit_with(&["x"], Guard::default()).unwrap_err(), missing);
    let mixed = fault(EncryptionFault::NotEncrypted);
    assert_eq!(commit_with(&["x", "y"], key_claim(0x22)).unwrap_err(), mixed);
    let other = fault(EncryptionFault::Mismatch);
    assert_eq!(commit_with(&["x"], key_claim(1)).unwrap_err(), other);
    commit_with(&["x"], key_claim(0x22)).unwrap();
    let mut with = read(&key("a"));
    with.guard = key_claim(0x22);
    assert_eq!(p.blob(&with).unwrap().pieces, [encrypted(0, Piece::Inline("one".into()))]);
}

#[test]
fn a_scope_is_named_by_changes_and_not_by_reads() {
    let mut p = partition();
    let scope = Encryption::Scope("s-1".to_owned());
    let claim = EncryptionClaim::Given(Some(scope.clone()));
    let named = || Guard { encryption: claim.clone(), ..Guard::default() };
    let mut new = put(&key("a"), inline(b"x"));
    new.guard = named();
    p.must(&Write::PutBlob(new));
    let found = p.blob(&ReadBlob { guard: no_key(), ..read(&key("a")) }).unwrap();
    assert_eq!(found.record.encryption, Some(scope));
    p.must(&stage(&key("a"), "x", inline(b"one")));
    let metadata = |guard| {
        let change = BlobChange::Metadata(Metadata::default());
        Write::UpdateBlob(UpdateBlob { key: key("a"), revision: Revision::Current, guard, change })
    };
    let snapshot =
        |guard| Write::SnapshotBlob(SnapshotBlob { key: key("a"), guard, metadata: None });
    let list = |guard| Write::CommitBlocks(CommitBlocks { guard, ..commit(&key("a"), &["x"]) });
    for change in [&metadata as &dyn Fn(Guard) -> Write, &snapshot, &list] {
        assert_eq!(p.write(&change(no_key())).unwrap_err(), fault(EncryptionFault::KeyMissing));
        p.must(&change(named()));
    }
}

#[test]
fn encrypted_content_has_the_documented_bytes() {
    let mut p = partition();
    p.must(&stage(&key("a"), "x", under_key(inline(b"hi"))));
    p.must(&stage(&key("a"), "y", under_key(stored(&[location(1, 2, 3)]))));
    let value = |id: &str| {
        let row = keys::staged_block(&RoutingKey::blob(&key("a")), &block_id(id));
        let value = p.memory.rows[&(Family::Staged, row.clone())].clone();
        let block: StagedBlock = values::decode_record(Family::Staged, &row, &value).unwrap();
        assert!(
            matches!(block.content, Content::Encrypted(_)) && block.content.nonce() == Some(NONCE)
        );
        value.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let nonce = format!("03{}{}", "11".repeat(16), "22".repeat(32));
    assert!(value("x").ends_with(&format!("{nonce}00026869")), "{}", value("x"));
    assert!(value("y").ends_with(&format!("{nonce}010101020307")), "{}", value("y"));
}

fn pages_under(n: u8, range: std::ops::Range<u64>, content: Option<NewContent>) -> Write {
    Write::WritePages(WritePages {
        key: key("a"),
        guard: if n == 0 { no_key() } else { key_claim(n) },
        sequence: SequenceBounds::default(),
        range: range.start * PAGE_BYTES..range.end * PAGE_BYTES,
        content,
    })
}

#[test]
fn pages_written_over_keep_their_place_in_the_keystream() {
    let mut p = partition();
    let mut new = put(&key("a"), inline(b""));
    (new.kind, new.guard) = (NewKind::Page { len: 300 * PAGE_BYTES, sequence: 0 }, key_claim(0x22));
    p.must(&Write::PutBlob(new));
    let locations = [location(1, 0, 128 * PAGE_BYTES), location(1, 70_000, 72 * PAGE_BYTES)];
    let stored = under_key(stored(&locations)).0;
    p.must(&pages_under(0x22, 0..200, Some(stored)));
    let bytes = vec![9; 4 * 512];
    p.must(&pages_under(0x22, 250..254, Some(under_key(inline(&bytes)).0)));
    let missing = fault(EncryptionFault::KeyMissing);
    assert_eq!(p.write(&pages_under(0, 3..4, None)).unwrap_err(), missing);
    assert_eq!(p.write(&pages_under(1, 3..4, None)).unwrap_err(), fault(EncryptionFault::Mismatch));
    p.must(&pages_under(0x22, 10..130, None));
    p.must(&pages_under(0x22, 251..252, None));
    let mut all = read(&key("a"));
    all.guard = key_claim(0x22);
    all.range = ByteRange::new(9 * PAGE_BYTES, Some(253 * PAGE_BYTES + 6));
    let piece = |nonce, at, piece| Piece::Encrypted { nonce, at, piece: Box::new(piece) };
    let part = |location, from: u64, to: u64| Piece::Stored {
        location,
        range: from * PAGE_BYTES..to * PAGE_BYTES,
    };
    let row = |len: usize| Piece::Inline(bytes[..len].to_vec().into());
    assert_eq!(
        p.blob(&all).unwrap().pieces,
        [
            piece(NONCE, 9 * PAGE_BYTES, part(locations[0], 9, 10)),
            Piece::Zeros(120 * PAGE_BYTES),
            piece(NONCE.after(128 * PAGE_BYTES), 2 * PAGE_BYTES, part(locations[1], 2, 72)),
            Piece::Zeros(50 * PAGE_BYTES),
            piece(NONCE, 0, row(512)),
            Piece::Zeros(PAGE_BYTES),
            piece(NONCE.after(2 * PAGE_BYTES), 0, row(512 + 7)),
        ]
    );
    // A reader may begin inside a block of the cipher.
    all.range = ByteRange::new(252 * PAGE_BYTES + 5, Some(252 * PAGE_BYTES + 6));
    assert_eq!(p.blob(&all).unwrap().pieces, [piece(NONCE.after(2 * PAGE_BYTES), 5, row(2))]);
    p.must(&pages_under(0x22, 0..300, None));
    assert_eq!(p.garbage(), locations, "encrypted bytes are freed like others");
}

#[test]
fn an_encrypted_span_is_written_as_specified() {
    let content = Content::from(&under_key(stored(&[location(7, 512, 1024)])).0);
    let span = values::Span { len: 512, skip: 512, content: Some(content) };
    let row = values::encode(&span);
    let hex: String = row.iter().map(|byte| format!("{byte:02x}")).collect();
    let (nonce, key) = ("11".repeat(16), "22".repeat(32));
    assert_eq!(hex, format!("01800480040103{nonce}{key}0101078004800807"));
    assert_eq!(values::decode::<values::Span>(Family::Layout, b"", &row), Ok(span));
}

/// The ciphertext is of another program (`api-spec/encryption.md`).
#[test]
fn content_of_an_earlier_release_is_read() {
    let text = "content of an earlier release";
    let key = CustomerKey::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let nonce = key.keyed_nonce(*b"nonce of 16 byte");
    let row = unhex(concat!(
        "011d000103",
        "6e6f6e6365206f662031362062797465",
        "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd",
        "001d",
        "392a5b7a1031ad5870a4b0a312697ab122219d570b618e5856a4bdc526",
    ));
    let span: values::Span = values::decode(Family::Layout, b"", &row).unwrap();
    let content = span.content.expect("content");
    assert_eq!((span.len, content.nonce()), (text.len() as u64, Some(nonce)));
    let Content::Encrypted(encrypted) = content else { panic!("{content:?}") };
    let Ciphertext::Inline(bytes) = encrypted.bytes else { panic!("{encrypted:?}") };
    assert_eq!(key.cipher(&nonce).unwrap().apply(0, &bytes), text);
}
