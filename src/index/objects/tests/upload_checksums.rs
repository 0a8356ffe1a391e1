//! Checksums of uploads and of their parts: kept, compared, combined.

use bytes::Bytes;

use super::support::*;
use super::uploads::*;
use crate::index::api::*;
use crate::types::*;

#[test]
fn checksums_are_kept_compared_and_made() {
    let mut p = partition();
    let a = key("a");
    let sha = |bytes: u8| ContentChecksum {
        algorithm: ChecksumAlgorithm::Sha256,
        kind: ChecksumKind::FullObject,
        digest: Bytes::from(vec![bytes; 32]),
    };
    let begin = |upload, checksum| {
        Write::StartUpload(Box::new(StartUpload { checksum, ..start_of(&a, upload) }))
    };
    let composite = UploadChecksum::new(ChecksumAlgorithm::Sha256, None);
    p.must(&begin(id(1), composite));
    for n in 1..=2_u8 {
        let mut part = part(&a, id(1), u32::from(n), loc(u64::from(n)));
        part.checksums.push(sha(n));
        let WriteReply::PartStaged(view) = p.must(&Write::StagePart(part)) else {
            panic!("no part")
        };
        assert_eq!(view.checksum, Some(sha(n)));
    }
    let name = |n: u8, checksum| NamedPart { checksum, ..named(u32::from(n), loc(u64::from(n))) };
    let unnamed = complete(&a, id(1), &[name(1, Some(sha(1))), name(2, None)]);
    assert_eq!(refused(&mut p, &unnamed), UploadRefusal::NoPartChecksum(2));
    let wrong = complete(&a, id(1), &[name(1, Some(sha(1))), name(2, Some(sha(1)))]);
    assert_eq!(refused(&mut p, &wrong), UploadRefusal::UnknownPart(2));
    let list = [name(1, Some(sha(1))), name(2, Some(sha(2)))];
    let full =
        CompleteUpload { coverage: Some(Coverage::FullObject), ..complete_of(&a, id(1), &list) };
    let full = Write::CompleteUpload(Box::new(full));
    assert_eq!(refused(&mut p, &full), UploadRefusal::ChecksumKind);
    let other = ContentChecksum { kind: ChecksumKind::Composite(2), ..sha(9) };
    let other = CompleteUpload { checksum: Some(other), ..complete_of(&a, id(1), &list) };
    let other = Write::CompleteUpload(Box::new(other));
    assert_eq!(refused(&mut p, &other), UploadRefusal::Checksum);
    let reply = completed(p.must(&complete(&a, id(1), &list)));
    let both = [sha(1).digest, sha(2).digest].concat();
    let expected = ChecksumValue::compute(ChecksumAlgorithm::Sha256, &both).of_whole();
    let expected = ContentChecksum { kind: ChecksumKind::Composite(2), ..expected };
    assert_eq!(reply.checksums, std::slice::from_ref(&expected));
    let record = p.blob(&read(&a)).unwrap().record;
    assert_eq!(record.fields.unwrap().checksums, [expected]);
}

#[test]
fn crcs_of_parts_are_combined_to_that_of_the_whole() {
    let (mut p, a) = (partition(), key("a"));
    let kept = UploadChecksum::new(ChecksumAlgorithm::Crc32, Some(Coverage::FullObject));
    p.must(&Write::StartUpload(Box::new(StartUpload { checksum: kept, ..start_of(&a, id(1)) })));
    let pieces: [&[u8]; 3] = [b"one", b"", b"three"];
    let mut names = Vec::new();
    for (n, bytes) in (1..).zip(pieces) {
        let crc = ChecksumValue::compute(ChecksumAlgorithm::Crc32, bytes).of_whole();
        let (content, crc64) = inline(bytes);
        let checksums = vec![md5_of(bytes), crc];
        let part = StagePart { content, crc64, checksums, ..part(&a, id(1), n, loc(1)) };
        let WriteReply::PartStaged(view) = p.must(&Write::StagePart(part)) else {
            panic!("no part")
        };
        names.push(NamedPart { number: number(n), tag: view.tag, checksum: None });
    }
    let whole = ChecksumValue::compute(ChecksumAlgorithm::Crc32, b"onethree").of_whole();
    let done = CompleteUpload {
        part_len_min: 0,
        checksum: Some(whole.clone()),
        coverage: Some(Coverage::FullObject),
        ..complete_of(&a, id(1), &names)
    };
    let reply = completed(p.must(&Write::CompleteUpload(Box::new(done))));
    assert_eq!(reply.checksums, [whole]);
}

#[test]
fn without_a_checksum_of_its_own_an_upload_has_the_crc64() {
    let mut p = partition();
    let a = key("a");
    p.must(&start(&a, id(1)));
    p.must(&Write::StagePart(part(&a, id(1), 1, loc(1))));
    let crc = |crc: Crc64| ChecksumValue::from(crc).of_whole();
    let (_, crc64) = stored(&[]);
    let of = |given| {
        let complete =
            CompleteUpload { checksum: Some(given), ..complete_of(&a, id(1), &[named(1, loc(1))]) };
        Write::CompleteUpload(Box::new(complete))
    };
    assert_eq!(refused(&mut p, &of(crc(Crc64::of(b"other")))), UploadRefusal::Checksum);
    let sha = ChecksumValue::compute(ChecksumAlgorithm::Sha1, b"").of_whole();
    assert_eq!(refused(&mut p, &of(sha)), UploadRefusal::ChecksumKind);
    let reply = completed(p.must(&of(crc(crc64))));
    assert_eq!(reply.checksums, [crc(crc64)]);
    let record = p.blob(&read(&a)).unwrap().record;
    assert_eq!((record.crc64, record.fields.unwrap().checksums), (crc64, Vec::new()));
}
