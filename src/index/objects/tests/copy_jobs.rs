//! Pending copies: what is locked, how they end, what they leave.

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::CopyJob;
use crate::index::record::CopyLease;
use crate::index::record::CopyLink;
use crate::index::record::CopyRecord;
use crate::index::record::CopyStatus;
use crate::index::rows::Family;
use crate::types::*;

const ID: Uuid = Uuid::from_bytes([1; 16]);

fn begin(key: &BlobKey, kind: BlobKind, total: u64) -> Write {
    let copy = CopyRecord {
        id: ID,
        source: "http://h/b".to_owned(),
        status: CopyStatus::Pending,
        description: None,
        copied: 0,
        total,
        completed: None,
    };
    let job = CopyJob {
        id: ID,
        source: Secret::Sealed(Bytes::from_static(b"source")),
        etag: None,
        md5: None,
        crc64: None,
        lease: None,
    };
    Write::PutCopy(Box::new(PutCopy {
        key: key.clone(),
        guard: Guard::default(),
        kind,
        properties: BlobProperties::default(),
        metadata: Metadata::new(vec![("k".to_owned(), "v".to_owned())]).unwrap(),
        tags: Tags::default(),
        tier: None,
        content: CopiedContent::Whole(NewContent::Inline(Bytes::new())),
        crc64: Crc64::EMPTY,
        copy: Some(Box::new(copy)),
        increment: None,
        job: Some(Box::new(job)),
        fields: NewBlobFields::default(),
    }))
}

fn end(key: &BlobKey, id: Uuid, end: CopyEnd) -> Write {
    Write::EndCopy(Box::new(EndCopy { blob: RoutingKey::blob(key), id, end }))
}

const LEASE: Uuid = Uuid::from_bytes([10; 16]);
const PERIOD: Duration = Duration::from_secs(30);

fn lease(key: &BlobKey, lease: Uuid, copied: u64) -> Write {
    let blob = RoutingKey::blob(key);
    Write::LeaseCopy(LeaseCopy { blob, id: ID, lease, duration: PERIOD, copied })
}

fn success(at: Location) -> CopyEnd {
    let content = CopiedContent::Whole(NewContent::Stored(vec![at]));
    CopyEnd::Success { content, crc64: Crc64::of(b"x") }
}

fn jobs(p: &Partition) -> Vec<PendingCopy> {
    let read = Read::CopyJobs { from: Bytes::new(), limit: 10 };
    let ReadReply::CopyJobs(CopyJobPage { jobs, next: None }) = p.read(&read).unwrap() else {
        panic!("not all of the jobs")
    };
    jobs
}

fn record(p: &Partition, key: &BlobKey) -> crate::index::record::BlobRecord {
    p.blob(&read(key)).unwrap().record
}

/// The only work row.
fn work_row(p: &Partition) -> ((Family, Bytes), Bytes) {
    let mut rows = p.memory.rows.iter().filter(|((family, _), _)| *family == Family::Work);
    let (key, value) = rows.next().unwrap();
    assert!(rows.next().is_none());
    (key.clone(), value.clone())
}

#[test]
fn work_row_is_written_as_specified() {
    let mut p = partition();
    p.must(&begin(&key("a"), BlobKind::Block, 9));
    let rows: Vec<_> = p.memory.rows.iter().filter(|((f, _), _)| *f == Family::Work).collect();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let [((_, row), value)] = rows.as_slice() else { panic!("{} rows", rows.len()) };
    assert_eq!(hex(row), "00000000000000018000000000000000610001".to_owned() + "01");
    let golden = format!("0310{}0106{}00000000", "01".repeat(16), hex(b"source"));
    assert_eq!(hex(value), golden);
    p.must(&lease(&key("a"), LEASE, 4));
    let until = postcard::to_stdvec(&p.now.plus(PERIOD).ticks()).unwrap();
    let (value, lease) = (work_row(&p).1, "0a".repeat(16));
    let golden = golden.strip_suffix("00").unwrap().to_owned();
    assert_eq!(hex(&value), format!("{golden}0110{lease}{}", hex(&until)));
}

#[test]
fn copy_begins_empty_locks_and_becomes_its_bytes() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(1, 0, 10)]))));
    p.must(&begin(&a, BlobKind::Block, 20));
    assert_eq!(p.garbage(), [location(1, 0, 10)], "what was there is replaced at once");
    let before = record(&p, &a);
    assert_eq!((before.len, before.copy.as_ref().unwrap().status), (0, CopyStatus::Pending));
    for write in [
        Write::PutBlob(put(&a, inline(b"1"))),
        delete(&a),
        stage(&a, "x", inline(b"1")),
        begin(&a, BlobKind::Block, 20),
        Write::SnapshotBlob(SnapshotBlob {
            key: a.clone(),
            guard: Guard::default(),
            metadata: None,
        }),
    ] {
        assert_eq!(p.write(&write), Err(Error::Refused(Refused::CopyPending)), "{write:?}");
    }
    assert_eq!(jobs(&p).iter().map(|one| one.job.id).collect::<Vec<_>>(), [ID]);
    let other = Uuid::from_bytes([2; 16]);
    assert_eq!(
        p.write(&end(&a, other, CopyEnd::Aborted(None))),
        Err(Error::Refused(Refused::OtherCopy))
    );
    p.must(&end(&a, ID, success(location(2, 0, 20))));
    let after = record(&p, &a);
    assert_eq!((after.len, &after.metadata), (20, &before.metadata));
    let copy = after.copy.unwrap();
    assert_eq!((copy.status, copy.copied, copy.total), (CopyStatus::Success, 20, 20));
    assert!(copy.completed.is_some() && after.etag != before.etag);
    assert!(jobs(&p).is_empty());
    assert_eq!(
        p.write(&end(&a, ID, CopyEnd::Aborted(None))),
        Err(Error::Refused(Refused::NoPendingCopy))
    );
    p.must(&delete(&a));
    assert_eq!(p.garbage(), [location(1, 0, 10), location(2, 0, 20)]);
}

#[test]
fn copy_that_failed_or_was_aborted_leaves_an_empty_blob_of_its_kind() {
    let kinds = [
        BlobKind::Block,
        BlobKind::Append { blocks: 0, sealed: false },
        BlobKind::Page { sequence: 5 },
    ];
    for kind in kinds {
        for how in [CopyEnd::Aborted(None), CopyEnd::Failed("500 why".to_owned())] {
            let mut p = partition();
            let a = key("a");
            p.must(&begin(&a, kind, 1024));
            let page_blob = matches!(kind, BlobKind::Page { .. });
            assert_eq!(record(&p, &a).len, if page_blob { 1024 } else { 0 });
            p.must(&end(&a, ID, how.clone()));
            let after = record(&p, &a);
            assert_eq!((after.len, after.kind), (0, kind));
            let copy = after.copy.unwrap();
            match how {
                CopyEnd::Failed(why) => {
                    assert_eq!((copy.status, copy.description), (CopyStatus::Failed, Some(why)));
                }
                CopyEnd::Aborted(_) | CopyEnd::Success { .. } => {
                    assert_eq!((copy.status, copy.description), (CopyStatus::Aborted, None));
                }
            }
            assert!(jobs(&p).is_empty());
            p.must(&delete(&a));
        }
    }
}

#[test]
fn copied_append_blob_goes_on_where_its_source_ended() {
    let mut p = partition();
    let a = key("a");
    p.must(&begin(&a, BlobKind::Append { blocks: 0, sealed: false }, 20));
    p.must(&end(&a, ID, success(location(2, 0, 20))));
    assert_eq!(record(&p, &a).kind, BlobKind::Append { blocks: 1, sealed: false });
    let append = AppendBlock {
        key: a.clone(),
        guard: Guard::default(),
        position: Some(20),
        len_max: None,
        content: NewContent::Inline(Bytes::from_static(b"more")),
        crc64: Crc64::of(b"more"),
    };
    p.must(&Write::AppendBlock(append));
    assert_eq!(record(&p, &a).kind, BlobKind::Append { blocks: 2, sealed: false });
}

#[test]
fn abort_needs_the_lease_and_a_purge_takes_the_work_along() {
    let mut p = partition();
    let a = key("a");
    p.must(&begin(&a, BlobKind::Block, 20));
    let lease = Uuid::from_bytes([7; 16]);
    let action = LeaseAction::Acquire { proposed: Some(lease), duration: None };
    p.must(&Write::LeaseBlob(LeaseBlob { key: a.clone(), guard: Guard::default(), action }));
    let refused = p.write(&end(&a, ID, CopyEnd::Aborted(None)));
    assert_eq!(refused, Err(Error::Refused(Refused::Lease(LeaseRefusal::Missing))));
    let mut purged = p.clone();
    purged.must(&Write::PurgeContainer {
        account: ACCOUNT,
        container: CONTAINER,
        from: RoutingKey::blob(&a).as_bytes().clone(),
        limit: 9,
    });
    assert!(jobs(&purged).is_empty());
    assert_eq!(
        purged.write(&end(&a, ID, success(location(2, 0, 20)))),
        Err(Error::Refused(Refused::BlobNotFound))
    );
    p.must(&end(&a, ID, CopyEnd::Aborted(Some(lease))));
    assert_eq!(record(&p, &a).copy.unwrap().status, CopyStatus::Aborted);
}

#[test]
fn a_pending_copy_under_a_legal_hold_ends_but_is_not_aborted() {
    let mut p = partition();
    let a = key("a");
    let Write::PutCopy(mut begun) = begin(&a, BlobKind::Block, 20) else { unreachable!() };
    begun.guard.protection.lock = Some(ObjectLock { default: None });
    begun.guard.lock.legal_hold = Some(true);
    p.must(&Write::PutCopy(begun));
    let refused = p.write(&end(&a, ID, CopyEnd::Aborted(None)));
    assert_eq!(refused, Err(Error::Refused(Refused::LegalHold)));
    assert_eq!(record(&p, &a).copy.unwrap().status, CopyStatus::Pending);
    p.must(&end(&a, ID, success(location(2, 0, 20))));
    assert_eq!(record(&p, &a).copy.unwrap().status, CopyStatus::Success);
}

#[test]
fn source_is_sealed_anew_where_it_still_stands() {
    let mut p = partition();
    let key = key("b");
    p.must(&begin(&key, BlobKind::Block, 5));
    let sealed = |text: &'static [u8]| Secret::Sealed(Bytes::from_static(text));
    let reseal =
        |from, to| Write::ResealCopy(ResealCopy { blob: RoutingKey::blob(&key), from, to });
    p.must(&reseal(sealed(b"other"), sealed(b"wrong")));
    assert_eq!(jobs(&p)[0].job.source, sealed(b"source"));
    p.must(&reseal(sealed(b"source"), sealed(b"anew")));
    assert_eq!(jobs(&p)[0].job.source, sealed(b"anew"));
    p.must(&end(&key, ID, CopyEnd::Aborted(None)));
    p.must(&reseal(sealed(b"anew"), sealed(b"late")));
    assert!(jobs(&p).is_empty(), "a copy that ended is not brought back");
}

#[test]
fn one_lease_of_a_copy_holds_until_it_expires() {
    let mut p = partition();
    let a = key("a");
    let refused = |refused| Err(Error::Refused(refused));
    assert_eq!(p.write(&lease(&a, LEASE, 0)), refused(Refused::BlobNotFound));
    p.must(&begin(&a, BlobKind::Block, 20));
    let before = record(&p, &a);
    p.must(&lease(&a, LEASE, 7));
    let first = p.now;
    let shown = |p: &Partition| record(p, &a).copy.unwrap().copied;
    assert_eq!(shown(&p), 7);
    assert_eq!(record(&p, &a).etag, before.etag, "progress is no change of the blob");
    assert_eq!(record(&p, &a).last_modified, before.last_modified);
    let other = Uuid::from_bytes([11; 16]);
    assert_eq!(p.write(&lease(&a, other, 0)), refused(Refused::CopyPending));
    assert_eq!(jobs(&p)[0].job.lease, Some(CopyLease { id: LEASE, until: first.plus(PERIOD) }));
    p.now = first.plus(PERIOD / 2);
    p.must(&lease(&a, LEASE, 99));
    let until = p.now.plus(PERIOD);
    assert_eq!(shown(&p), 20, "not more than the source has");
    p.now = first.plus(PERIOD);
    assert_eq!(p.write(&lease(&a, other, 0)), refused(Refused::CopyPending), "it was renewed");
    // Writes come one tick after the other.
    p.now = Timestamp::from_ticks(until.ticks() - 2);
    assert_eq!(p.write(&lease(&a, other, 0)), refused(Refused::CopyPending));
    p.must(&lease(&a, other, 0));
    assert_eq!(shown(&p), 0, "it begins again");
    assert_eq!(p.write(&lease(&a, LEASE, 19)), refused(Refused::CopyPending));
    p.must(&end(&a, ID, success(location(2, 0, 20))));
    assert_eq!(p.write(&lease(&a, other, 1)), refused(Refused::NoPendingCopy));
    assert_eq!(record(&p, &a).copy.unwrap().status, CopyStatus::Success);
}

#[test]
fn lease_of_another_copy_is_refused() {
    let mut p = partition();
    let a = key("a");
    p.must(&begin(&a, BlobKind::Page { sequence: 0 }, 1_024));
    let Write::LeaseCopy(wanted) = lease(&a, LEASE, 0) else { unreachable!() };
    let other = LeaseCopy { id: Uuid::from_bytes([2; 16]), ..wanted };
    let refused = p.write(&Write::LeaseCopy(other));
    assert_eq!(refused, Err(Error::Refused(Refused::OtherCopy)));
    p.must(&lease(&a, LEASE, 512));
    assert_eq!((record(&p, &a).len, p.garbage()), (1_024, vec![]), "its pages are as they were");
}

/// The work row of a pending copy as version 2 wrote it: without a lease.
const COPY_2: &[u8] = b"\x02\x10\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\
    \x01\x06source\0\0\0";

#[test]
fn copies_of_version_2_are_read_and_leased() {
    let mut p = partition();
    let a = key("b");
    p.must(&begin(&a, BlobKind::Block, 5));
    let job = jobs(&p).remove(0).job;
    let (row, _) = work_row(&p);
    p.memory.rows.insert(row, Bytes::from_static(COPY_2));
    assert_eq!(jobs(&p)[0].job, job);
    p.must(&lease(&a, LEASE, 0));
    assert_eq!(jobs(&p)[0].job.lease.map(|lease| lease.id), Some(LEASE));
}

/// The work row of a pending copy as version 1 wrote it: the source was plain.
const COPY_1: &[u8] = b"\x01\x10\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\
    \x0chttp://h/b?s\x01\x08Bearer t\0\0\0";

#[test]
fn copies_of_version_1_are_read_and_written_anew() {
    let mut p = partition();
    let key = key("b");
    p.must(&begin(&key, BlobKind::Block, 5));
    let row = p.memory.rows.keys().find(|(family, _)| *family == Family::Work).unwrap().clone();
    let new = p.memory.rows.insert(row.clone(), Bytes::from_static(COPY_1)).unwrap();
    let job = jobs(&p).remove(0).job;
    let Secret::Plain(link) = &job.source else { panic!("{job:?}") };
    let expected =
        CopyLink { url: "http://h/b?s".to_owned(), authorization: Some("Bearer t".to_owned()) };
    assert!(CopyLink::decode(link) == Some(expected));
    let (from, to) = (job.source, Secret::Sealed(Bytes::from_static(b"source")));
    p.must(&Write::ResealCopy(ResealCopy { blob: RoutingKey::blob(&key), from, to }));
    assert_eq!(p.memory.rows.get(&row), Some(&new));
    let golden = [b"\x03\x10".as_slice(), &[1; 16], b"\x01\x06source\0\0\0\0"].concat();
    assert_eq!(new, golden);
}
