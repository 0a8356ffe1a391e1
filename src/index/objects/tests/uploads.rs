//! Uploads in parts: started, staged, completed, aborted, forgotten, purged.

use bytes::Bytes;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::rows::Family;
use crate::types::*;

/// 5 MiB and a little, so that a part may stand before another one.
pub(super) const LONG: u64 = PART_BYTES_MIN + 1;

pub(super) fn id(n: u8) -> UploadId {
    UploadId::from_bytes([n; 16])
}

pub(super) fn start_of(key: &BlobKey, id: UploadId) -> StartUpload {
    StartUpload {
        lock: LockClaim::default(),
        key: key.clone(),
        id,
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        tier: None,
        encryption: EncryptionClaim::Given(None),
        checksum: None,
        object: None,
        initiator: None,
    }
}

pub(super) fn start(key: &BlobKey, id: UploadId) -> Write {
    Write::StartUpload(Box::new(start_of(key, id)))
}

pub(super) fn md5_of(bytes: &[u8]) -> ContentChecksum {
    Md5::of(bytes).into()
}

pub(super) fn number(n: u32) -> PartNumber {
    PartNumber::new(n).unwrap()
}

/// A part whose bytes stand at `location`. What they are does not matter to rows.
pub(super) fn part(key: &BlobKey, upload: UploadId, n: u32, location: Location) -> StagePart {
    let (content, crc64) = stored(&[location]);
    StagePart {
        key: key.clone(),
        upload,
        number: number(n),
        encryption: EncryptionClaim::Given(None),
        content,
        crc64,
        checksums: vec![md5_of(&location.offset.get().to_be_bytes())],
    }
}

pub(super) fn loc(n: u64) -> Location {
    location(1, n << 32, LONG)
}

pub(super) fn named(n: u32, location: Location) -> NamedPart {
    let md5 = Md5::of(&location.offset.get().to_be_bytes());
    NamedPart { number: number(n), tag: ContentEtag::md5(md5), checksum: None }
}

pub(super) fn complete_of(key: &BlobKey, upload: UploadId, parts: &[NamedPart]) -> CompleteUpload {
    CompleteUpload {
        key: key.clone(),
        upload,
        guard: Guard::default(),
        parts: parts.to_vec(),
        part_len_min: PART_BYTES_MIN,
        len: None,
        checksum: None,
        coverage: None,
    }
}

pub(super) fn complete(key: &BlobKey, upload: UploadId, parts: &[NamedPart]) -> Write {
    Write::CompleteUpload(Box::new(complete_of(key, upload, parts)))
}

fn abort(key: &BlobKey, upload: UploadId) -> Write {
    Write::AbortUpload(AbortUpload { key: key.clone(), upload })
}

pub(super) fn refused(p: &mut Partition, write: &Write) -> UploadRefusal {
    match p.write(write) {
        Err(Error::Refused(Refused::Upload(refusal))) => refusal,
        other => panic!("{other:?}"),
    }
}

fn parts_of(p: &Partition, key: &BlobKey, upload: UploadId) -> Result<PartPage, Error> {
    let list = ListParts { key: key.clone(), upload, after: 0, limit: 100_000 };
    let reply = p.read(&Read::Parts(list))?;
    let ReadReply::Parts(page) = reply else { panic!("{reply:?}") };
    Ok(*page)
}

pub(super) fn completed(reply: WriteReply) -> UploadCompleted {
    let WriteReply::UploadCompleted(completed) = reply else { panic!("{reply:?}") };
    *completed
}

/// Rows of the staged family.
fn staged_rows(p: &Partition) -> usize {
    p.memory.rows.keys().filter(|(family, _)| *family == Family::Staged).count()
}

#[test]
fn parts_become_the_blob_in_one_commit() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(9, 0, 3)]))));
    let created = p.now;
    p.must(&Write::StartUpload(Box::new(StartUpload {
        metadata: Metadata::new([("k".to_owned(), "v")]).unwrap(),
        tier: Some(AccessTier::Cool),
        ..start_of(&a, id(1))
    })));
    for n in [3, 1, 2] {
        p.must(&Write::StagePart(part(&a, id(1), n, loc(u64::from(n)))));
    }
    assert_eq!(p.blob(&read(&a)).unwrap().record.len, 3, "the blob is not touched");
    let names = [named(1, loc(1)), named(3, loc(3))];
    let reply = completed(p.must(&complete(&a, id(1), &names)));
    let tag = tag_of_parts(names.iter().map(|name| &name.tag));
    assert!(matches!(tag, ContentTag::Parts(_, 2)));
    assert_eq!((Some(reply.tag), reply.written.last_modified), (tag.etag(None), p.now));
    let record = p.blob(&read(&a)).unwrap().record;
    assert_eq!((record.len, record.created, record.etag), (2 * LONG, created, reply.written.etag));
    assert_eq!(record.metadata.iter().count(), 1);
    assert_eq!(record.tier, Some(TierState::new(AccessTier::Cool, p.now)));
    assert_eq!(record.fields.unwrap().content_tag, Some(tag));
    assert_eq!(p.garbage(), [loc(2), location(9, 0, 3)], "the unused part and the blob before");
    let ids: Vec<Vec<u8>> =
        p.block_list(&a).unwrap().committed.iter().map(|b| b.id.as_bytes().to_vec()).collect();
    assert_eq!(ids, [[0, 0, 0, 1], [0, 0, 0, 3]]);
    assert_eq!(staged_rows(&p), 1, "the completed upload is remembered");
}

#[test]
fn second_completion_answers_what_the_first_did() {
    let mut p = partition();
    let a = key("a");
    p.must(&start(&a, id(1)));
    p.must(&Write::StagePart(part(&a, id(1), 1, loc(1))));
    let list = [named(1, loc(1))];
    let first = p.must(&complete(&a, id(1), &list));
    let rows = p.memory.rows.clone();
    assert_eq!(p.must(&complete(&a, id(1), &list)), first);
    p.must(&Write::PutBlob(put(&a, inline(b"new"))));
    let conditions = Conditions { if_none_match: Some(EtagMatch::Any), ..Conditions::default() };
    let guard = Guard { conditions, ..Guard::default() };
    let again = CompleteUpload { guard, ..complete_of(&a, id(1), &list) };
    assert_eq!(p.must(&Write::CompleteUpload(Box::new(again))), first, "its conditions were met");
    assert_eq!(p.blob(&read(&a)).unwrap().record.len, 3);
    assert_ne!(p.memory.rows, rows);
    let other = complete(&a, id(1), &[named(1, loc(2))]);
    assert_eq!(refused(&mut p, &other), UploadRefusal::NotFound);
    let stage = Write::StagePart(part(&a, id(1), 2, loc(2)));
    assert_eq!(refused(&mut p, &stage), UploadRefusal::NotFound);
    assert_eq!(refused(&mut p, &abort(&a, id(1))), UploadRefusal::NotFound);

    // It is forgotten with the expiry of staged blocks.
    let at = p.now;
    let expire = |before| Write::ExpireStaged { key: RoutingKey::blob(&key("a")), before };
    p.must(&expire(Timestamp::from_ticks(1)));
    assert_eq!(p.must(&complete(&a, id(1), &list)), first);
    p.must(&expire(at));
    assert_eq!(refused(&mut p, &complete(&a, id(1), &list)), UploadRefusal::NotFound);
    assert_eq!(staged_rows(&p), 0);
}

#[test]
fn what_a_list_may_not_say_is_refused_and_changes_nothing() {
    let mut p = partition();
    let a = key("a");
    p.must(&start(&a, id(1)));
    for n in 1..=3 {
        p.must(&Write::StagePart(part(&a, id(1), n, loc(u64::from(n)))));
    }
    p.must(&Write::StagePart(part(&a, id(1), 4, location(1, 4 << 32, 5))));
    let small = location(1, 4 << 32, 5);
    let before = p.memory.rows.clone();
    let mut is = |list: &[NamedPart], refusal| {
        assert_eq!(refused(&mut p, &complete(&a, id(1), list)), refusal);
        assert_eq!(p.memory.rows, before);
    };
    let (one, two, three) = (named(1, loc(1)), named(2, loc(2)), named(3, loc(3)));
    is(&[], UploadRefusal::Order);
    is(&[two, one.clone()], UploadRefusal::Order);
    is(&[one.clone(), one.clone()], UploadRefusal::Order);
    is(&[one.clone(), named(2, loc(9))], UploadRefusal::UnknownPart(2));
    is(&[one.clone(), named(9, loc(9))], UploadRefusal::UnknownPart(9));
    is(&[named(4, small), named(5, loc(5))], UploadRefusal::UnknownPart(5));
    p.must(&Write::StagePart(part(&a, id(1), 5, loc(5))));
    let list = [named(4, small), named(5, loc(5))];
    let refusal = refused(&mut p, &complete(&a, id(1), &list));
    assert_eq!(refusal, UploadRefusal::SmallPart { number: 4, len: 5 });
    let wrong = CompleteUpload { len: Some(1), ..complete_of(&a, id(1), &[one.clone(), three]) };
    let wrong = Write::CompleteUpload(Box::new(wrong));
    assert_eq!(refused(&mut p, &wrong), UploadRefusal::Length { len: 2 * LONG });
    assert_eq!(
        refused(&mut p, &complete(&a, id(2), std::slice::from_ref(&one))),
        UploadRefusal::NotFound
    );
    let right = CompleteUpload { len: Some(LONG), ..complete_of(&a, id(1), &[one]) };
    p.must(&Write::CompleteUpload(Box::new(right)));
    assert_eq!(p.garbage().len(), 4);
}

#[test]
fn conditions_and_leases_are_those_of_the_blob() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"x"))));
    p.must(&start(&a, id(1)));
    p.must(&Write::StagePart(part(&a, id(1), 1, loc(1))));
    let list = [named(1, loc(1))];
    let conditions = Conditions { if_none_match: Some(EtagMatch::Any), ..Conditions::default() };
    let guard = Guard { conditions, ..Guard::default() };
    let only_new = CompleteUpload { guard, ..complete_of(&a, id(1), &list) };
    let only_new = Write::CompleteUpload(Box::new(only_new));
    let exists = Error::Refused(Refused::Condition(Outcome::AlreadyExists));
    assert_eq!(p.write(&only_new), Err(exists));
    let action = LeaseAction::Acquire { proposed: None, duration: None };
    let lease = LeaseBlob { key: a.clone(), guard: Guard::default(), action };
    p.write(&Write::LeaseBlob(lease)).unwrap();
    p.must(&Write::StagePart(part(&a, id(1), 2, loc(2))));
    let leased = Error::Refused(Refused::Lease(LeaseRefusal::Missing));
    assert_eq!(p.write(&complete(&a, id(1), &list)), Err(leased));
    assert_eq!(parts_of(&p, &a, id(1)).unwrap().parts.len(), 2, "the upload goes on");
}

#[test]
fn of_a_part_staged_twice_the_last_counts() {
    let mut p = partition();
    let a = key("a");
    p.must(&start(&a, id(1)));
    let first = Write::StagePart(part(&a, id(1), 1, loc(1)));
    let WriteReply::PartStaged(view) = p.must(&first) else { panic!("not staged") };
    assert_eq!((view.number.get(), view.len, view.staged), (1, LONG, p.now));
    // A retry brings the same locations; they do not become garbage.
    p.must(&first);
    assert_eq!(p.garbage(), []);
    p.must(&Write::StagePart(part(&a, id(1), 1, loc(2))));
    assert_eq!(p.garbage(), [loc(1)]);
    let unknown = complete(&a, id(1), &[named(1, loc(1))]);
    assert_eq!(refused(&mut p, &unknown), UploadRefusal::UnknownPart(1));
    p.must(&complete(&a, id(1), &[named(1, loc(2))]));
    assert_eq!(references(&p), [loc(1), loc(2)]);
}

#[test]
fn uploads_of_one_blob_are_undisturbed_by_each_other_and_by_the_blob() {
    let mut p = partition();
    let a = key("a");
    for n in 1..=3 {
        p.must(&start(&a, id(n)));
        p.must(&Write::StagePart(part(&a, id(n), 1, loc(u64::from(n)))));
    }
    p.must(&stage(&a, "block", inline(b"b")));
    assert_eq!(p.block_list(&a).unwrap().uncommitted.len(), 1);
    p.must(&Write::CommitBlocks(commit(&a, &["block"])));
    p.must(&stage(&a, "other", inline(b"b")));
    p.must(&Write::PutBlob(put(&a, inline(b"x"))));
    p.must(&delete(&a));
    let list = ListBlobs { uncommitted: true, ..list() };
    assert_eq!(p.list_all(&list), [""; 0], "no uncommitted blob");
    let unknown = p.block_list(&a).unwrap_err();
    assert_eq!(unknown, Error::Refused(Refused::BlobNotFound));
    p.must(&complete(&a, id(2), &[named(1, loc(2))]));
    p.must(&abort(&a, id(1)));
    assert_eq!(p.garbage(), [loc(1)]);
    assert_eq!(parts_of(&p, &a, id(3)).unwrap().parts.len(), 1);
    assert_eq!(references(&p), [loc(1), loc(2), loc(3)]);
    // Put Block List may commit the parts anew.
    let first = BlockListEntry { source: BlockSource::Committed, id: number(1).block_id() };
    let mut anew = commit(&a, &[]);
    anew.list = vec![first.clone(), first];
    p.must(&Write::CommitBlocks(anew));
    assert_eq!(p.blob(&read(&a)).unwrap().record.len, 2 * LONG);
}

#[test]
fn aborted_upload_is_gone_with_its_parts() {
    let mut p = partition();
    let a = key("a");
    assert_eq!(refused(&mut p, &abort(&a, id(1))), UploadRefusal::NotFound);
    p.must(&start(&a, id(1)));
    p.must(&Write::StagePart(part(&a, id(1), 1, loc(1))));
    p.must(&Write::StagePart(part(&a, id(1), 10_000, loc(2))));
    p.must(&abort(&a, id(1)));
    assert_eq!((p.garbage(), staged_rows(&p)), (vec![loc(1), loc(2)], 0));
    let unknown = Error::Refused(Refused::Upload(UploadRefusal::NotFound));
    assert_eq!(parts_of(&p, &a, id(1)), Err(unknown));
    let stage = Write::StagePart(part(&a, id(1), 2, loc(3)));
    assert_eq!(refused(&mut p, &stage), UploadRefusal::NotFound);
}

#[test]
fn parts_are_listed_in_pages() {
    let mut p = partition();
    let a = key("a");
    p.must(&start(&a, id(1)));
    for n in [1, 2, 5, 9_999, 10_000] {
        p.must(&Write::StagePart(part(&a, id(1), n, loc(u64::from(n)))));
    }
    let page = |after, limit| {
        let list = ListParts { key: a.clone(), upload: id(1), after, limit };
        let ReadReply::Parts(page) = p.read(&Read::Parts(list)).unwrap() else {
            panic!("no parts")
        };
        let numbers: Vec<u32> = page.parts.iter().map(|part| part.number.get()).collect();
        (numbers, page.is_truncated)
    };
    assert_eq!(page(0, 2), (vec![1, 2], true));
    assert_eq!(page(2, 2), (vec![5, 9_999], true));
    assert_eq!(page(9_999, 2), (vec![10_000], false));
    assert_eq!(page(3, 3), (vec![5, 9_999, 10_000], false));
    assert_eq!(page(10_000, 3), (vec![], false));
    assert_eq!(page(u32::MAX, 3), (vec![], false));
    assert_eq!(page(0, 0), (vec![], false));
}

#[test]
fn parts_are_under_the_key_of_the_upload() {
    let mut p = partition();
    let a = key("a");
    let given = |n| EncryptionClaim::Given(Some(Encryption::Customer([n; 32])));
    let begin = StartUpload { encryption: given(2), ..start_of(&a, id(1)) };
    p.must(&Write::StartUpload(Box::new(begin)));
    let plain = Write::StagePart(part(&a, id(1), 1, loc(1)));
    let missing = Error::Refused(Refused::Encryption(EncryptionFault::KeyMissing));
    assert_eq!(p.write(&plain), Err(missing));
    let stored = NewContent::Stored(vec![location(1, 0, 160)]);
    let encrypted = |key| {
        let nonce = KeyedNonce { bytes: [1; 16], key_sha256: [key; 32] };
        Write::StagePart(StagePart {
            encryption: given(key),
            content: NewContent::Authenticated(nonce, Box::new(stored.clone())),
            crc64: Crc64::EMPTY,
            checksums: Vec::new(),
            ..part(&a, id(1), 1, loc(1))
        })
    };
    let wrong = Error::Refused(Refused::Encryption(EncryptionFault::Mismatch));
    assert_eq!(p.write(&encrypted(3)), Err(wrong));
    let WriteReply::PartStaged(view) = p.must(&encrypted(2)) else { panic!("no part") };
    assert_eq!(view.tag, part_tag(&[], &[1; 16]), "no MD5");
    let name = NamedPart { number: number(1), tag: view.tag, checksum: None };
    let reply = completed(p.must(&complete(&a, id(1), &[name])));
    assert_eq!((reply.tag.as_md5(), reply.tag.number()), (None, Some(1)));
    let record =
        p.blob(&ReadBlob { guard: Guard { encryption: given(2), ..Guard::default() }, ..read(&a) });
    assert_eq!(record.unwrap().record.encryption, Some(Encryption::Customer([2; 32])));
}

#[test]
fn completion_discards_staged_blocks_with_ids_of_another_length() {
    let mut p = partition();
    let a = key("a");
    p.must(&stage(&a, "long id", stored(&[loc(7)])));
    p.must(&start(&a, id(1)));
    p.must(&Write::StagePart(part(&a, id(1), 1, loc(1))));
    p.must(&complete(&a, id(1), &[named(1, loc(1))]));
    assert_eq!(p.garbage(), [loc(7)]);
    assert!(p.block_list(&a).unwrap().uncommitted.is_empty());
}

#[test]
fn ten_thousand_parts_are_completed_and_read_by_segment() {
    let mut p = partition();
    let a = key("a");
    p.must(&start(&a, id(1)));
    for n in 1..=10_000 {
        p.must(&Write::StagePart(part(&a, id(1), n, loc(u64::from(n)))));
    }
    let list: Vec<NamedPart> = (1..=10_000).map(|n| named(n, loc(u64::from(n)))).collect();
    p.must(&complete(&a, id(1), &list));
    let view = p.blob(&read(&a)).unwrap();
    assert_eq!(view.record.len, 10_000 * LONG);
    assert_eq!(p.block_list(&a).unwrap().committed.len(), 10_000);
    assert_eq!((p.garbage(), staged_rows(&p)), (vec![], 1));
    p.must(&delete(&a));
    assert_eq!(p.garbage().len(), 10_000);
}

#[test]
fn a_blob_is_read_by_part() {
    let mut p = partition();
    let a = key("a");
    let of = |p: &Partition, n| {
        let (key, number) = (key("a"), number(n));
        let read = ReadPart { key, revision: Revision::Current, guard: Guard::default(), number };
        match p.read(&Read::Part(read)) {
            Ok(ReadReply::Part(found)) => Some((found.range, found.parts)),
            Err(Error::Refused(Refused::Upload(UploadRefusal::NoSuchPart))) => None,
            other => panic!("{other:?}"),
        }
    };
    p.must(&Write::PutBlob(put(&a, inline(b"whole"))));
    assert_eq!((of(&p, 1), of(&p, 2)), (Some((0..5, None)), None));
    // Numbers with gaps, in the main row and in segments.
    for parts in [3, 64, 65, 2_500] {
        p.must(&start(&a, id(1)));
        let numbers: Vec<u32> = (1..=parts).map(|n| n * 3).collect();
        for n in &numbers {
            p.must(&Write::StagePart(part(&a, id(1), *n, loc(u64::from(*n)))));
        }
        let list: Vec<NamedPart> = numbers.iter().map(|n| named(*n, loc(u64::from(*n)))).collect();
        p.must(&complete(&a, id(1), &list));
        p.must(&Write::ExpireStaged { key: RoutingKey::blob(&a), before: p.now.next() });
        for (index, n) in (0u64..).zip(&numbers) {
            let range = index * LONG..(index + 1) * LONG;
            assert_eq!(of(&p, *n), Some((range, Some(parts))), "{n} of {parts}");
        }
        for n in [1, 2, 4, parts * 3 - 1, parts * 3 + 1, 10_000] {
            assert_eq!(of(&p, n), None, "{n} of {parts}");
        }
    }
    let first = BlockListEntry { source: BlockSource::Committed, id: number(3).block_id() };
    p.must(&Write::CommitBlocks(CommitBlocks { list: vec![first], ..commit(&a, &[]) }));
    assert_eq!(of(&p, 3), None, "a block list has no parts");
}

#[test]
fn purge_of_a_container_removes_uploads_step_by_step() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(9, 0, 3)]))));
    for upload in 1..=3 {
        p.must(&start(&a, id(upload)));
        for n in 1..=1_500 {
            let at = u64::from(upload) * 10_000 + u64::from(n);
            p.must(&Write::StagePart(part(&a, id(upload), n, loc(at))));
        }
    }
    p.must(&start(&key("b"), id(9)));
    p.must(&Write::StagePart(part(&key("b"), id(9), 1, loc(9))));
    p.must(&complete(&key("b"), id(9), &[named(1, loc(9))]));
    let mut from = Some(Bytes::new());
    let mut steps = 0;
    while let Some(start) = from {
        let purge = Write::PurgeContainer {
            account: ACCOUNT,
            container: CONTAINER,
            from: start,
            limit: 64,
        };
        let (reply, weight) = p.write_weighed(&purge).unwrap();
        assert!(weight < 1 << 20, "{weight}");
        let WriteReply::Purged { next } = reply else { panic!("not purged") };
        (from, steps) = (next, steps + 1);
    }
    assert!(steps > 1, "in several commits");
    assert_eq!((staged_rows(&p), p.garbage().len()), (0, 3 * 1_500 + 2));
    assert!(p.memory.rows.keys().all(|(family, _)| *family == Family::Garbage));
}
