//! What changed since a snapshot, against an array that knows which pages were touched.

use bytes::Bytes;
use proptest::prelude::*;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::*;

const PAGE: u64 = PAGE_BYTES;
const PAGES: u64 = 60;

fn ask(key: &BlobKey, target: Option<Timestamp>, since: Timestamp) -> ReadPages {
    ReadPages {
        key: key.clone(),
        revision: target.into(),
        since: Some(since),
        guard: Guard::default(),
        range: None,
        limit: 1_000,
    }
}

/// (first page, page after the last, whether cleared), asked `limit` ranges at a time.
fn changed(p: &Partition, ask: &ReadPages, limit: usize) -> Vec<(u64, u64, bool)> {
    let mut all: Vec<(u64, u64, bool)> = Vec::new();
    let mut ask = ReadPages { limit, ..ask.clone() };
    loop {
        let ReadReply::Pages(found) = p.read(&Read::Pages(ask.clone())).unwrap() else {
            panic!("not pages")
        };
        assert!(found.ranges.len() <= limit);
        for PageRange { range, cleared } in found.ranges {
            let (start, end) = (range.start / PAGE, range.end / PAGE);
            match all.last_mut() {
                Some(last) if last.1 == start && last.2 == cleared => last.1 = end,
                _ => all.push((start, end, cleared)),
            }
        }
        let Some(next) = found.next else { return all };
        ask.range = ByteRange::new(next, None);
    }
}

fn refused(p: &Partition, ask: ReadPages) -> Error {
    p.read(&Read::Pages(ask)).unwrap_err()
}

fn take(p: &mut Partition, key: &BlobKey) -> Timestamp {
    let snapshot = SnapshotBlob { key: key.clone(), guard: Guard::default(), metadata: None };
    let WriteReply::Snapshotted(taken) = p.must(&Write::SnapshotBlob(snapshot)) else {
        panic!("not a snapshot")
    };
    taken.snapshot
}

fn pages(key: &BlobKey, range: std::ops::Range<u64>, bytes: bool) -> Write {
    let len = usize::try_from((range.end - range.start) * PAGE).unwrap();
    Write::WritePages(WritePages {
        key: key.clone(),
        guard: Guard::default(),
        sequence: SequenceBounds::default(),
        range: range.start * PAGE..range.end * PAGE,
        content: bytes.then(|| NewContent::Inline(Bytes::from(vec![1; len]))),
    })
}

fn made(p: &mut Partition, key: &BlobKey) {
    p.must(&make(key, NewKind::Page { len: PAGES * PAGE, sequence: 0 }));
}

#[test]
fn comparing_with_what_is_no_older_version_is_refused() {
    let mut p = partition();
    let a = key("a");
    made(&mut p, &a);
    let (first, second) = (take(&mut p, &a), take(&mut p, &a));
    assert_eq!(
        refused(&p, ask(&a, None, second.next())),
        Error::Refused(Refused::ComparedWithNothing)
    );
    assert_eq!(
        refused(&p, ask(&a, Some(first), second)),
        Error::Refused(Refused::ComparedWithNewer)
    );
    assert_eq!(
        refused(&p, ask(&a, Some(second.next()), first)),
        Error::Refused(Refused::BlobNotFound)
    );
    assert_eq!(changed(&p, &ask(&a, Some(first), first), 9), []);
    made(&mut p, &a);
    assert_eq!(refused(&p, ask(&a, None, first)), Error::Refused(Refused::MadeAnew));
    assert_eq!(changed(&p, &ask(&a, Some(second), first), 9), []);
    let b = key("b");
    p.must(&Write::PutBlob(put(&b, inline(b"1"))));
    let block = take(&mut p, &b);
    assert_eq!(refused(&p, ask(&b, None, block)), Error::Refused(Refused::WrongKind));
    made(&mut p, &b);
    assert_eq!(refused(&p, ask(&b, None, block)), Error::Refused(Refused::MadeAnew));
}

#[test]
fn deleting_a_snapshot_between_two_changes_no_difference() {
    let mut p = partition();
    let a = key("a");
    made(&mut p, &a);
    p.must(&pages(&a, 0..10, true));
    let first = take(&mut p, &a);
    p.must(&pages(&a, 2..4, true));
    let between = take(&mut p, &a);
    p.must(&pages(&a, 3..6, false));
    let expected = [(2, 3, false), (3, 6, true)];
    assert_eq!(changed(&p, &ask(&a, None, first), 9), expected);
    p.must(&delete_of(&a, DeleteScope::Snapshot(between)));
    assert_eq!(changed(&p, &ask(&a, None, first), 9), expected);
    assert_eq!(refused(&p, ask(&a, None, between)), Error::Refused(Refused::ComparedWithNothing));
}

#[test]
fn tags_of_a_snapshot_are_its_own() {
    let mut p = partition();
    let a = key("a");
    let tags = |value: &str| Tags::new(vec![("k".to_owned(), value.to_owned())]).unwrap();
    p.must(&Write::PutBlob(PutBlob { tags: tags("blob"), ..put(&a, inline(b"1")) }));
    let taken = take(&mut p, &a);
    let rows = p.memory.rows.len();
    let update = |snapshot: Option<Timestamp>, guard: Guard, value| {
        let revision = snapshot.into();
        let change = BlobChange::Tags(tags(value));
        Write::UpdateBlob(UpdateBlob { key: a.clone(), revision, guard, change })
    };
    p.must(&update(Some(taken), Guard::default(), "snapshot"));
    assert_eq!(p.memory.rows.len(), rows, "the tag index does not hear of it");
    let of = |snapshot: Option<Timestamp>| {
        p.blob(&ReadBlob { revision: snapshot.into(), ..read(&a) }).unwrap().record
    };
    let (blob, kept) = (of(None), of(Some(taken)));
    assert_eq!((blob.tags, kept.tags), (tags("blob"), tags("snapshot")));
    assert_eq!(kept.etag, blob.etag);
    let gone = update(Some(taken.next()), Guard::default(), "x");
    assert_eq!(p.write(&gone).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    let leased = Guard { lease: Some(uuid::Uuid::from_u128(1)), ..Guard::default() };
    let refused = p.write(&update(Some(taken), leased, "x")).unwrap_err();
    assert_eq!(refused, Error::Refused(Refused::Lease(LeaseRefusal::NotPresent)));
    let metadata = BlobChange::Metadata(Metadata::default());
    let (key, guard) = (a.clone(), Guard::default());
    let write = UpdateBlob { key, revision: Revision::Snapshot(taken), guard, change: metadata };
    assert_eq!(p.write(&Write::UpdateBlob(write)).unwrap_err(), Error::Refused(Refused::WrongKind));
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Clear(u64, u64),
    Resize(u64),
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..PAGES, 1u64..20).prop_map(|(start, count)| Step::Write(start, count)),
        4 => (0..PAGES, 1u64..20).prop_map(|(start, count)| Step::Clear(start, count)),
        1 => (0..=PAGES).prop_map(Step::Resize),
        2 => Just(Step::Snapshot),
    ]
}

/// The blob: for each page whether it has bytes, and the step that touched it last; and how many
/// are within its length.
#[derive(Clone, Debug)]
struct Version {
    pages: Vec<(bool, usize)>,
    len: u64,
}

fn index(page: u64) -> usize {
    usize::try_from(page).unwrap()
}

impl Version {
    fn new() -> Self {
        Self { pages: vec![(false, 0); index(PAGES)], len: PAGES }
    }

    fn apply(&mut self, p: &mut Partition, key: &BlobKey, step: &Step, number: usize) {
        let (touched, bytes) = match step {
            Step::Write(start, count) => (*start..(start + count).min(self.len), true),
            Step::Clear(start, count) => (*start..(start + count).min(self.len), false),
            Step::Resize(pages) => {
                p.must(&Write::UpdatePages(UpdatePages {
                    key: key.clone(),
                    guard: Guard::default(),
                    properties: None,
                    len: Some(pages * PAGE),
                    sequence: None,
                }));
                // What is cut off is cleared, should it come back.
                let cut = *pages..self.len;
                self.len = *pages;
                (cut, false)
            }
            Step::Snapshot => return,
        };
        if touched.is_empty() {
            return;
        }
        if !matches!(step, Step::Resize(_)) {
            p.must(&pages(key, touched.clone(), bytes));
        }
        self.pages[index(touched.start)..index(touched.end)].fill((bytes, number));
    }

    /// What was touched after step `since`.
    fn changed(&self, since: usize) -> Vec<(u64, u64, bool)> {
        let mut all: Vec<(u64, u64, bool)> = Vec::new();
        for (page, &(bytes, step)) in (0..self.len).zip(&self.pages) {
            if step <= since {
                continue;
            }
            match all.last_mut() {
                Some(last) if last.1 == page && last.2 != bytes => last.1 = page + 1,
                _ => all.push((page, page + 1, !bytes)),
            }
        }
        all
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn differences_agree_with_an_array(steps in prop::collection::vec(step(), 1..60)) {
        let mut p = partition();
        let a = key("a");
        made(&mut p, &a);
        let mut now = Version::new();
        let mut taken: Vec<(Timestamp, Version, usize)> = Vec::new();
        for (number, step) in (1..).zip(&steps) {
            now.apply(&mut p, &a, step, number);
            if matches!(step, Step::Snapshot) {
                taken.push((take(&mut p, &a), now.clone(), number));
            }
        }
        for (older, (since, _, number)) in taken.iter().enumerate() {
            for limit in [1, 3, 1_000] {
                prop_assert_eq!(changed(&p, &ask(&a, None, *since), limit), now.changed(*number));
                for (target, version, _) in &taken[older..] {
                    let found = changed(&p, &ask(&a, Some(*target), *since), limit);
                    prop_assert_eq!(found, version.changed(*number));
                }
            }
        }
    }
}
