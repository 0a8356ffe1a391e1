use std::ops::Range;

use uuid::Uuid;

use super::*;
use crate::env::identified;
use crate::frontend::write::InMemory;
use crate::frontend::write::Stored;
use crate::frontend::write::WriteConfig;
use crate::frontend::write::tests::Rig;
use crate::frontend::write::tests::bytes;
use crate::frontend::write::tests::rig;
use crate::frontend::write::tests::stream;
use crate::index::NewContent;
use crate::index::record::BlobFields;
use crate::telemetry::CapturedLog;
use crate::types::AUTHENTICATED_CHUNK_BYTES;
use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::ByteLen;
use crate::types::CHUNK_BYTES;
use crate::types::ChecksumAlgorithm;
use crate::types::ContainerName;
use crate::types::Crc32c;
use crate::types::Encryption;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::Md5;
use crate::types::PAGE_WINDOW_BYTES;
use crate::types::Revision;
use crate::types::Timestamp;
use crate::types::request;

fn encrypted(at: u64, piece: Piece) -> Piece {
    let nonce = KeyedNonce { bytes: [1; 16], key_sha256: [2; 32] };
    Piece::Encrypted { nonce, at, piece: Box::new(piece) }
}

#[test]
fn first_part_of_a_piece_ends_at_a_step() {
    let location = Location {
        extent: ExtentId::new(1),
        offset: ExtentOffset::START,
        len: ByteLen::new(100),
        crc: Crc32c::EMPTY,
    };
    let stored = |range| Piece::Stored { location, range };
    let Split { first, rest } = split_at_step(encrypted(1005, stored(5..95)), 10);
    assert_eq!(first, encrypted(1005, stored(5..10)));
    assert_eq!(rest, Some(encrypted(1010, stored(10..95))));
    let Split { first, rest } = split_at_step(stored(90..95), 10);
    assert_eq!((first, rest), (stored(90..95), None));
    let inline = encrypted(0, Piece::Inline("abc".into()));
    let Split { first, rest } = split_at_step(inline.clone(), 1);
    assert_eq!((first, rest), (inline, None));
}

fn key(first: char) -> CustomerKey {
    CustomerKey::from_base64(&format!("{first}AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
        .unwrap()
}

fn decrypting(first: char) -> Decrypting {
    let path = BlobPath {
        container: ContainerName::new("photos").unwrap(),
        blob: BlobName::new("a b").unwrap(),
        revision: Revision::Current,
    };
    let account = AccountName::new("devstore").unwrap();
    Decrypting::new(&key(first), &account, &path, Counter::default())
}

fn encrypting(rig: &Rig) -> Encrypting {
    Encrypting::new(&rig.env, Some(&key('A'))).unwrap()
}

fn chunks(encrypting: &Encrypting, content: &[u8]) -> Vec<u8> {
    let mut writer = encrypting.begin(content.len() as u64);
    let mut chunks = writer.push(content);
    chunks.extend(writer.finish());
    chunks.concat()
}

fn location(stored: &Stored) -> Location {
    let NewContent::Stored(locations) = stored.content() else { panic!("it is in an extent") };
    let [location] = locations.as_slice() else { panic!("it is in one piece") };
    *location
}

/// Bytes `range` of encrypted content of `len` bytes in one location.
fn piece(nonce: KeyedNonce, len: u64, location: Location, range: Range<u64>) -> Piece {
    let within = authenticated_range(&range, location.len.get());
    let piece = Box::new(Piece::Stored { location, range: within });
    Piece::Authenticated { nonce, len, range, piece }
}

/// Reads a piece in steps, as a response does.
async fn read(rig: &Rig, mut piece: Piece, step: u64) -> Result<Vec<u8>, PieceError> {
    let (mut out, decrypting) = (Vec::new(), decrypting('A'));
    loop {
        let Split { first, rest } = split_at_step(piece, step);
        let bytes = fetch(&*rig.node, Some(&decrypting), &first).await?.concat();
        assert_eq!(bytes.len() as u64, length(&first));
        assert!(bytes.len() as u64 <= step.max(CHUNK_BYTES));
        out.extend(bytes);
        let Some(rest) = rest else { return Ok(out) };
        piece = rest;
    }
}

#[tokio::test(start_paused = true)]
async fn every_range_of_encrypted_content_is_read_in_steps() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let (content, encrypting) = (bytes(2_500_000, 3), encrypting(&rig));
    let stored = stream(&rig, &chunks(&encrypting, &content).into(), 60_000).await;
    let (location, len) = (location(&stored), content.len() as u64);
    let (across, last) = (CHUNK_BYTES - 1..CHUNK_BYTES + 1, len - 1..len);
    for range in [0..len, 5..6, across, 1_040_000..2_200_001, last] {
        let index = |at: u64| usize::try_from(at).unwrap();
        let wanted = &content[index(range.start)..index(range.end)];
        for step in [16 << 10, 100_000, 1 << 20] {
            let piece = piece(encrypting.nonce(), len, location, range.clone());
            assert_eq!(read(&rig, piece, step).await.unwrap(), wanted, "{range:?} by {step}");
        }
    }
}

/// The frames of changed content have right checksums: it was changed before they were taken.
#[tokio::test(start_paused = true)]
async fn changed_content_with_right_checksums_is_not_served() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let (content, encrypting) = (bytes(300_000, 3), encrypting(&rig));
    let len = content.len() as u64;
    let good = chunks(&encrypting, &content);
    let chunk = usize::try_from(AUTHENTICATED_CHUNK_BYTES).unwrap();
    let other = chunks(&self::encrypting(&rig), &content);
    let mut flipped = good.clone();
    flipped[3 * chunk + 77] ^= 1;
    let mut swapped = good.clone();
    swapped[3 * chunk..5 * chunk].rotate_left(chunk);
    let moved = [&good[..3 * chunk], &other[3 * chunk..4 * chunk], &good[4 * chunk..]].concat();
    for (what, forged) in [("flipped", flipped), ("swapped", swapped), ("moved", moved)] {
        let stored = stream(&rig, &forged.into(), 60_000).await;
        let at = |range| piece(encrypting.nonce(), len, location(&stored), range);
        let before = read(&rig, at(0..3 * CHUNK_BYTES), 1 << 20).await.unwrap();
        assert_eq!(before, content[..before.len()], "{what}: the chunks before");
        for range in [0..len, 3 * CHUNK_BYTES..3 * CHUNK_BYTES + 1] {
            let found = read(&rig, at(range), 1 << 20).await;
            assert!(matches!(found, Err(PieceError::NotAuthentic(Some(_)))), "{what}: {found:?}");
        }
    }
    // Cut to whole chunks, with a row that says so.
    let stored = stream(&rig, &good[..4 * chunk].to_vec().into(), 60_000).await;
    let cut = piece(encrypting.nonce(), 4 * CHUNK_BYTES, location(&stored), 0..10);
    let found = read(&rig, cut, 1 << 20).await;
    assert!(matches!(found, Err(PieceError::NotAuthentic(_))), "truncated: {found:?}");
}

#[tokio::test(start_paused = true)]
async fn content_that_is_not_authentic_is_counted_and_logged_with_blob_and_request() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let (content, encrypting, decrypting) = (bytes(40_000, 3), encrypting(&rig), decrypting('A'));
    let mut forged = chunks(&encrypting, &content);
    forged[20_000] ^= 1;
    let stored = stream(&rig, &forged.into(), 60_000).await;
    let at = |range| piece(encrypting.nonce(), content.len() as u64, location(&stored), range);
    let log = CapturedLog::default();
    let _kept = log.begin();
    let id = Uuid::from_u128(17);
    let logged = |count: u64| {
        let extent = format!("extent {}", location(&stored).extent);
        let parts = ["ERROR", &format!("request={id}"), "devstore", "photos", "a b", &extent];
        assert_eq!(
            (decrypting.not_authentic.get(), log.lines_with(&parts)),
            (count, usize::try_from(count).unwrap())
        );
    };
    for (count, range) in [(0, 0..10), (1, 0..40_000), (2, 17_000..17_001)] {
        let piece = at(range);
        let read = fetch(&*rig.node, Some(&decrypting), &piece);
        let read = identified(Some(id), read).await;
        assert_eq!(matches!(read, Err(PieceError::NotAuthentic(Some(_)))), count > 0, "{read:?}");
        logged(count);
    }
    // A wrong key is the client's fault.
    let other = self::decrypting('B');
    let read = fetch(&*rig.node, Some(&other), &at(0..10)).await;
    assert!(matches!(read, Err(PieceError::Locked)), "{read:?}");
    assert_eq!(other.not_authentic.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_md5_that_is_not_authentic_is_counted_and_logged_with_blob_and_request() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let content_md5 = ContentMd5::Plain(Md5::of(b"content"));
    let mut properties = BlobProperties { content_md5, ..BlobProperties::default() };
    let plain = properties.clone();
    encrypt_md5(&rig.env, Some(&key('A')), &mut properties);
    let mut decrypted = properties.clone();
    let (good, bad, log) = (decrypting('A'), decrypting('B'), CapturedLog::default());
    let _kept = log.begin();
    decrypt_md5(Some(&good), &mut decrypted).unwrap();
    assert_eq!((decrypted, good.not_authentic.get()), (plain, 0));
    // Another key finds what it finds when the row was changed.
    let id = Uuid::from_u128(17);
    let entered = request::enter(Some(id));
    let refused = decrypt_md5(Some(&bad), &mut properties).unwrap_err();
    drop(entered);
    assert_eq!(refused.reason, Reason::InternalError);
    let parts = ["ERROR", &format!("request={id}"), "devstore", "photos", "a b", "Content-MD5"];
    assert_eq!((bad.not_authentic.get(), log.lines_with(&parts)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_put_page_are_decrypted_by_themselves() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let (content, encrypting) = (bytes(200 * 512, 3), encrypting(&rig));
    let start = PAGE_WINDOW_BYTES - 1_024;
    let body = InMemory::uncounted(vec![content.clone()]);
    let stored = rig.pool.store_pages_under(body, start, Some(&encrypting));
    let stored = stored.await.unwrap();
    let NewContent::Stored(locations) = stored.content() else { panic!("it is in extents") };
    let lens = [1_024, PAGE_WINDOW_BYTES, content.len() as u64 - PAGE_WINDOW_BYTES - 1_024];
    let mut at = 0;
    for (number, (location, len)) in (0u64..).zip(locations.iter().zip(lens)) {
        let part = piece(encrypting.nonce().part(number), len, *location, 512..len);
        let end = at + usize::try_from(len).unwrap();
        assert_eq!(read(&rig, part, 1 << 20).await.unwrap(), content[at + 512..end]);
        let wrong = piece(encrypting.nonce().part(number + 1), len, *location, 512..len);
        let found = read(&rig, wrong, 1 << 20).await;
        assert!(matches!(found, Err(PieceError::NotAuthentic(_))), "in another place: {found:?}");
        at = end;
    }
    assert_eq!((at, locations.len()), (content.len(), 3));
}

#[tokio::test(start_paused = true)]
async fn content_of_earlier_releases_is_still_read() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let nonce = key('A').keyed_nonce([7; 16]);
    let encrypted = key('A').cipher(&nonce).unwrap().apply(0, b"written before");
    let inner = Box::new(Piece::Inline(encrypted.slice(3..)));
    let piece = Piece::Encrypted { nonce, at: 3, piece: inner };
    assert_eq!(read(&rig, piece, 1 << 20).await.unwrap(), b"tten before");
}

#[tokio::test(start_paused = true)]
async fn another_key_decrypts_nothing() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let encrypting = encrypting(&rig);
    let inner = Box::new(Piece::Inline(chunks(&encrypting, b"abc").into()));
    let piece =
        Piece::Authenticated { nonce: encrypting.nonce(), len: 3, range: 0..3, piece: inner };
    for wrong in [None, Some(&decrypting('B'))] {
        let found = fetch(&*rig.node, wrong, &piece).await;
        assert!(matches!(found, Err(PieceError::Locked)), "{found:?}");
    }
    assert_eq!(read(&rig, piece, 1).await.unwrap(), b"abc");
}

#[tokio::test(start_paused = true)]
async fn a_digest_is_encrypted_and_decrypted_with_the_key() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let md5 = Md5::of(b"x");
    let plain = BlobProperties { content_md5: Some(md5).into(), ..BlobProperties::default() };
    let mut encrypted = plain.clone();
    encrypt_md5(&rig.env, None, &mut encrypted);
    assert_eq!(encrypted, plain);
    encrypt_md5(&rig.env, Some(&key('A')), &mut encrypted);
    assert_eq!(encrypted.content_md5.plain(), None);
    let mut other = encrypted.clone();
    assert_eq!(
        decrypt_md5(Some(&decrypting('B')), &mut other).unwrap_err().reason,
        Reason::InternalError
    );
    decrypt_md5(Some(&decrypting('A')), &mut encrypted).unwrap();
    assert_eq!(encrypted, plain);
}

#[tokio::test(start_paused = true)]
async fn checksums_of_content_under_a_key_are_encrypted() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let (crc64, made) = (Crc64::of(b"x"), Timestamp::ZERO);
    let named = ChecksumValue::compute(ChecksumAlgorithm::Sha1, b"x");
    let of_crc64 = ChecksumValue::from(crc64);
    let kept = |key: Option<&CustomerKey>, named| kept_checksums(&rig.env, key, named, crc64);
    assert_eq!(kept(None, None), []);
    assert_eq!(kept(None, Some(of_crc64)), [], "each row has it");
    assert_eq!(kept(None, Some(named)), [named.of_whole()]);
    for (named, plain) in [(None, of_crc64), (Some(named), named)] {
        let key = key('A');
        let checksums = kept(Some(&key), named);
        assert_ne!(checksums, [plain.of_whole()]);
        let encryption = Some(Encryption::Customer([3; 32]));
        let fields = Some(Box::new(BlobFields { checksums, ..BlobFields::default() }));
        let record = BlobRecord { encryption, fields, ..BlobRecord::new(made, made, 1, crc64) };
        let (mut read, mut other) = (record.clone(), record);
        decrypt_checksums(Some(&decrypting('A')), &mut read).unwrap();
        assert_eq!(read.fields.unwrap().checksums, [plain.of_whole()]);
        let refused = decrypt_checksums(Some(&decrypting('B')), &mut other).unwrap_err();
        assert_eq!(refused.reason, Reason::InternalError);
    }
}
