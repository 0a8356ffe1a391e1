//! What is remembered of reads.

use std::time::Duration;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::BlobRecord;
use crate::types::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// Notes a read that came right now.
fn read_now(p: &mut Partition, key: &BlobKey) -> Timestamp {
    let at = p.now.next();
    assert_eq!(p.must(&Write::NoteRead(NoteRead { key: key.clone(), at })), WriteReply::Done);
    at
}

fn record(p: &Partition, key: &BlobKey) -> BlobRecord {
    p.blob(&read(key)).unwrap().record
}

#[test]
fn a_read_changes_its_own_time_alone() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(1, 0, 4)]))));
    let action = LeaseAction::Acquire { proposed: None, duration: None };
    p.must(&Write::LeaseBlob(LeaseBlob { key: a.clone(), guard: Guard::default(), action }));
    let before = p.blob(&read(&a)).unwrap();
    assert_eq!(before.record.accessed, None);
    assert_eq!(before.record.last_access(), Some(before.record.last_modified));
    let at = read_now(&mut p, &a);
    let after = p.blob(&read(&a)).unwrap();
    assert_eq!(after.record.last_access(), Some(at));
    assert_eq!(after.record, BlobRecord { accessed: Some(at), ..before.record });
    assert_eq!(after.pieces, before.pieces);
    assert_eq!(p.garbage(), []);
}

#[test]
fn only_the_first_read_of_a_day_is_remembered() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    let first = read_now(&mut p, &a);
    p.now = p.now.plus(23 * HOUR);
    assert!(!record(&p, &a).notes_read(p.now));
    read_now(&mut p, &a);
    assert_eq!(record(&p, &a).accessed, Some(first));
    p.now = p.now.plus(HOUR);
    assert!(record(&p, &a).notes_read(p.now));
    let second = read_now(&mut p, &a);
    assert_eq!(record(&p, &a).accessed, Some(second));
}

#[test]
fn the_newer_of_read_and_change_counts() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    let at = read_now(&mut p, &a);
    let change = BlobChange::Metadata(Metadata::default());
    let guard = Guard::default();
    p.must(&Write::UpdateBlob(UpdateBlob {
        key: a.clone(),
        revision: Revision::Current,
        guard,
        change,
    }));
    let changed = record(&p, &a);
    assert_eq!((changed.accessed, changed.last_access()), (Some(at), Some(p.now)));
    p.must(&Write::PutBlob(put(&a, inline(b"2"))));
    assert_eq!(record(&p, &a).accessed, None, "what was made anew was not read yet");
}

#[test]
fn late_notes_of_what_is_gone_or_made_anew_change_nothing() {
    let mut p = partition();
    let a = key("a");
    let note = |at| Write::NoteRead(NoteRead { key: key("a"), at });
    p.must(&Write::PutBlob(put(&a, inline(b"1"))));
    let seen = p.now.next();
    p.must(&delete(&a));
    let rows = p.memory.rows.clone();
    assert_eq!(p.must(&note(seen)), WriteReply::Done);
    assert_eq!(p.memory.rows, rows);
    p.must(&Write::PutBlob(put(&a, inline(b"2"))));
    p.must(&note(seen));
    assert_eq!(record(&p, &a).accessed, None);
    // A clock ahead of the partition's.
    p.must(&note(p.now.plus(100 * HOUR)));
    assert_eq!(record(&p, &a).accessed, Some(p.now));
}

#[test]
fn only_block_blobs_are_tracked() {
    let mut p = partition();
    for (name, kind) in [("a", NewKind::Append), ("p", NewKind::Page { len: 512, sequence: 0 })] {
        let blob = key(name);
        p.must(&make(&blob, kind));
        read_now(&mut p, &blob);
        let found = record(&p, &blob);
        assert_eq!((found.accessed, found.last_access()), (None, None));
    }
}
