//! Page blobs against a plain array of bytes; every location is shown, garbage, or gone.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::rows::Family;
use crate::types::*;

const PAGE: u64 = PAGE_BYTES;

fn made(p: &mut Partition, name: &str, pages: u64) -> BlobKey {
    let key = key(name);
    p.must(&make(&key, NewKind::Page { len: pages * PAGE, sequence: 7 }));
    key
}

fn write_pages(
    key: &BlobKey,
    pages: std::ops::Range<u64>,
    content: Option<NewContent>,
) -> WritePages {
    WritePages {
        key: key.clone(),
        guard: Guard::default(),
        sequence: SequenceBounds::default(),
        range: pages.start * PAGE..pages.end * PAGE,
        content,
    }
}

fn update_pages(key: &BlobKey) -> UpdatePages {
    UpdatePages {
        key: key.clone(),
        guard: Guard::default(),
        properties: None,
        len: None,
        sequence: None,
    }
}

fn ranges(p: &Partition, key: &BlobKey, limit: usize) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    let mut range = None;
    loop {
        let (guard, key) = (Guard::default(), key.clone());
        let read = ReadPages { key, revision: Revision::Current, since: None, guard, range, limit };
        let ReadReply::Pages(found) = p.read(&Read::Pages(read)).unwrap() else {
            panic!("not pages")
        };
        assert!(found.ranges.len() <= limit);
        for PageRange { range, cleared } in found.ranges {
            assert!(!cleared);
            match all.last_mut() {
                Some(last) if last.1 == range.start / PAGE => last.1 = range.end / PAGE,
                _ => all.push((range.start / PAGE, range.end / PAGE)),
            }
        }
        let Some(next) = found.next else { return all };
        range = ByteRange::new(next, None);
    }
}

#[test]
fn new_page_blob_is_zeros_and_has_no_ranges() {
    let mut p = partition();
    let a = made(&mut p, "a", 1 << 34);
    let view = p.blob(&read(&a)).unwrap();
    assert_eq!(view.record.len, PAGE_BLOB_BYTES_MAX);
    assert_eq!(view.record.kind, BlobKind::Page { sequence: 7 });
    assert_eq!(view.pieces, [Piece::Zeros(PAGE_BLOB_BYTES_MAX)]);
    assert_eq!(ranges(&p, &a, 5), []);
    assert_eq!(p.memory.rows.len(), 1);
}

#[test]
fn pages_beyond_the_end_and_of_other_kinds_are_refused() {
    let mut p = partition();
    let a = made(&mut p, "a", 4);
    let refused = p.write(&Write::WritePages(write_pages(&a, 3..5, None)));
    assert_eq!(refused.unwrap_err(), Error::Refused(Refused::InvalidPages { len: 4 * PAGE }));
    let b = key("b");
    p.must(&Write::PutBlob(put(&b, inline(b"block"))));
    for write in [
        Write::WritePages(write_pages(&b, 0..1, None)),
        Write::UpdatePages(update_pages(&b)),
        Write::AppendBlock(append(&a, inline(b"x"))),
        stage(&a, "1", inline(b"x")),
        Write::CommitBlocks(commit(&a, &[])),
    ] {
        assert_eq!(p.write(&write).unwrap_err(), Error::Refused(Refused::WrongKind), "{write:?}");
    }
    let guard = Guard::default();
    let read = ReadPages {
        key: b,
        revision: Revision::Current,
        since: None,
        guard,
        range: None,
        limit: 1,
    };
    assert_eq!(p.read(&Read::Pages(read)).unwrap_err(), Error::Refused(Refused::WrongKind));
}

#[test]
fn sequence_number_is_held_to_and_changed() {
    let mut p = partition();
    let a = made(&mut p, "a", 4);
    for (at_most, below, equal, holds) in [
        (Some(7), None, None, true),
        (Some(6), None, None, false),
        (None, Some(8), None, true),
        (None, Some(7), None, false),
        (None, None, Some(7), true),
        (None, None, Some(8), false),
        (Some(7), Some(8), Some(9), false),
    ] {
        let sequence = SequenceBounds { at_most, below, equal };
        let write = WritePages { sequence, ..write_pages(&a, 0..1, None) };
        let answer = p.write(&Write::WritePages(write));
        assert_eq!(answer.is_ok(), holds, "{sequence:?}");
        assert!(holds || answer == Err(Error::Refused(Refused::SequenceCondition)));
    }
    let highest = u64::try_from(i64::MAX).unwrap();
    for (action, after) in [
        (SequenceAction::Max(3), 7),
        (SequenceAction::Max(9), 9),
        (SequenceAction::Update(2), 2),
        (SequenceAction::Increment, 3),
        (SequenceAction::Update(highest), highest),
    ] {
        let update = UpdatePages { sequence: Some(action), ..update_pages(&a) };
        let WriteReply::Pages(done) = p.must(&Write::UpdatePages(update)) else { panic!("reply") };
        assert_eq!((done.sequence, done.rest), (after, None));
        let kind = BlobKind::Page { sequence: after };
        assert_eq!(p.blob(&read(&a)).unwrap().record.kind, kind);
    }
    let update = UpdatePages { sequence: Some(SequenceAction::Increment), ..update_pages(&a) };
    assert_eq!(
        p.write(&Write::UpdatePages(update)).unwrap_err(),
        Error::Refused(Refused::SequenceExhausted)
    );
}

#[test]
fn clear_of_very_many_spans_goes_in_steps() {
    let mut p = partition();
    let a = made(&mut p, "a", 1 << 20);
    for page in 0..10_100 {
        let one = NewContent::Inline(Bytes::from(vec![1; 512]));
        p.must(&Write::WritePages(write_pages(&a, page * 2..page * 2 + 1, Some(one))));
    }
    let clear = write_pages(&a, 0..1 << 20, None);
    let WriteReply::Pages(done) = p.must(&Write::WritePages(clear)) else { panic!("reply") };
    assert_eq!(done.rest, Some(20_000 * PAGE));
    let clear = write_pages(&a, 20_000..1 << 20, None);
    let WriteReply::Pages(done) = p.must(&Write::WritePages(clear)) else { panic!("reply") };
    assert_eq!(done.rest, None);
    assert_eq!(p.memory.rows.len(), 1);
}

#[test]
fn deleted_page_blob_gives_its_spans_back_in_steps() {
    let mut p = partition();
    let a = made(&mut p, "a", 1 << 20);
    for n in 0..2_500 {
        let one = NewContent::Stored(vec![location(1, n * 10_000, 4 * PAGE)]);
        p.must(&Write::WritePages(write_pages(&a, n * 4..n * 4 + 4, Some(one))));
    }
    p.must(&delete(&a));
    assert_eq!(p.garbage(), []);
    let mut rounds = 0;
    while p.memory.rows.keys().any(|(family, _)| *family == Family::Layout) {
        let keys = dead(&p);
        assert_eq!(keys.len(), 1);
        p.must(&Write::ForgetGarbage { keys });
        rounds += 1;
    }
    assert_eq!(rounds, 3);
    assert_eq!(p.garbage().len(), 2_500);
    assert_eq!(dead(&p).len(), 0);
}

/// Dead layers.
fn dead(p: &Partition) -> Vec<Bytes> {
    let reply = p.read(&Read::Garbage { from: Bytes::new(), limit: usize::MAX - 1 }).unwrap();
    let ReadReply::Garbage(GarbagePage { rows, .. }) = reply else { panic!("not garbage") };
    rows.into_iter().filter(|row| row.locations.is_empty()).map(|row| row.key).collect()
}

const PAGES: u64 = 300;

#[derive(Clone, Debug)]
enum Step {
    /// Written: pages in the row, or in locations cut at multiples of so many pages.
    Write {
        start: u64,
        pages: u64,
        part: Option<u64>,
    },
    Clear {
        start: u64,
        pages: u64,
    },
    Resize {
        pages: u64,
    },
    Make,
    Delete,
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    let start = 0..PAGES;
    let pages = prop_oneof![3 => 1u64..8, 2 => 1u64..60, 1 => 1u64..PAGES];
    let part = prop_oneof![2 => Just(None), 3 => (1u64..40).prop_map(Some)];
    prop_oneof![
        12 => (start.clone(), pages.clone(), part)
            .prop_map(|(start, pages, part)| Step::Write { start, pages, part }),
        5 => (start, pages).prop_map(|(start, pages)| Step::Clear { start, pages }),
        3 => (0..=PAGES).prop_map(|pages| Step::Resize { pages }),
        1 => Just(Step::Make),
        1 => Just(Step::Delete),
        2 => Just(Step::Forget),
    ]
}

/// What the blob is: one byte for each page, 0 for a hole, and the location each page is in.
#[derive(Default)]
struct World {
    model: Option<Vec<(u8, Option<u64>)>>,
    extents: BTreeMap<u64, (u64, u8)>,
    forgotten: BTreeSet<u64>,
    writes: u64,
}

impl World {
    fn apply(&mut self, p: &mut Partition, a: &BlobKey, step: &Step) {
        let len = self.model.as_ref().map(|pages| u64::try_from(pages.len()).unwrap());
        match step {
            Step::Make => {
                p.must(&make(a, NewKind::Page { len: PAGES * PAGE, sequence: 0 }));
                self.model = Some(vec![(0, None); usize::try_from(PAGES).unwrap()]);
            }
            Step::Delete => {
                assert_eq!(p.write(&delete(a)).is_ok(), len.is_some());
                self.model = None;
            }
            Step::Write { start, pages, part } => self.write(p, a, (*start, *pages), *part),
            Step::Clear { start, pages } => {
                let write = write_pages(a, *start..start + pages, None);
                let done = p.write(&Write::WritePages(write));
                assert_eq!(done.is_ok(), len.is_some_and(|len| start + pages <= len), "{done:?}");
                if done.is_ok() {
                    self.pages(*start, *pages).fill((0, None));
                }
            }
            Step::Resize { pages } => {
                let update = UpdatePages { len: Some(pages * PAGE), ..update_pages(a) };
                let done = p.write(&Write::UpdatePages(update));
                assert_eq!(done.is_ok(), len.is_some());
                if let Some(model) = &mut self.model {
                    model.resize(usize::try_from(*pages).unwrap(), (0, None));
                }
            }
            Step::Forget => {
                let reply = p.read(&Read::Garbage { from: Bytes::new(), limit: 5 }).unwrap();
                let ReadReply::Garbage(GarbagePage { rows, .. }) = reply else {
                    panic!("not garbage")
                };
                self.forgotten
                    .extend(rows.iter().flat_map(|r| &r.locations).map(|l| l.offset.get()));
                let keys = rows.into_iter().map(|row| row.key).collect();
                p.must(&Write::ForgetGarbage { keys });
            }
        }
    }

    fn pages(&mut self, start: u64, pages: u64) -> &mut [(u8, Option<u64>)] {
        let range = usize::try_from(start).unwrap()..usize::try_from(start + pages).unwrap();
        &mut self.model.as_mut().unwrap()[range]
    }

    fn write(
        &mut self,
        p: &mut Partition,
        a: &BlobKey,
        (start, pages): (u64, u64),
        part: Option<u64>,
    ) {
        self.writes += 1;
        let byte = u8::try_from(self.writes % 250 + 1).unwrap();
        let mut places = vec![None; usize::try_from(pages).unwrap()];
        let content = match part {
            None => NewContent::Inline(vec![byte; usize::try_from(pages * PAGE).unwrap()].into()),
            Some(part) => {
                let mut locations = Vec::new();
                let mut at = start;
                while at < start + pages {
                    let end = (at - at % part + part).min(start + pages);
                    let offset = 1_000_000 * u64::try_from(self.extents.len()).unwrap();
                    let len = (end - at) * PAGE;
                    self.extents.insert(offset, (len, byte));
                    locations.push(location(1, offset, len));
                    let of =
                        usize::try_from(at - start).unwrap()..usize::try_from(end - start).unwrap();
                    places[of].fill(Some(offset));
                    at = end;
                }
                NewContent::Stored(locations)
            }
        };
        let write = write_pages(a, start..start + pages, Some(content));
        let done = p.write(&Write::WritePages(write));
        let len = self.model.as_ref().map_or(0, Vec::len);
        assert_eq!(done.is_ok(), start + pages <= u64::try_from(len).unwrap(), "{done:?}");
        if done.is_ok() {
            for (page, place) in self.pages(start, pages).iter_mut().zip(places) {
                *page = (byte, place);
            }
        } else {
            self.forgotten.extend(places.into_iter().flatten());
        }
    }

    fn check(&self, p: &Partition, a: &BlobKey) {
        self.check_locations(p);
        let Some(model) = &self.model else {
            assert_eq!(p.blob(&read(a)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
            return;
        };
        let mut expected: Vec<(u64, u64)> = Vec::new();
        for (page, (byte, _)) in (0u64..).zip(model) {
            match expected.last_mut() {
                _ if *byte == 0 => {}
                Some(last) if last.1 == page => last.1 = page + 1,
                _ => expected.push((page, page + 1)),
            }
        }
        for limit in [1, 3, 1_000] {
            assert_eq!(ranges(p, a, limit), expected);
        }
        let len = model.len();
        for range in [0..len, len / 3..len - len / 4] {
            if range.is_empty() {
                continue;
            }
            let mut read = read(a);
            let (from, to) =
                (u64::try_from(range.start).unwrap(), u64::try_from(range.end).unwrap());
            read.range = ByteRange::new(from * PAGE + 10, Some(to * PAGE - 11));
            let view = p.blob(&read).unwrap();
            assert_eq!(view.pieces_end, view.range.end);
            let mut bytes = Vec::new();
            for piece in view.pieces {
                match piece {
                    Piece::Inline(part) => bytes.extend(part),
                    Piece::Zeros(len) => {
                        bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 0);
                    }
                    Piece::Encrypted { .. } | Piece::Authenticated { .. } => {
                        panic!("nothing here is encrypted")
                    }
                    Piece::Stored { location, range } => {
                        let (len, byte) = self.extents[&location.offset.get()];
                        assert!(location.len == ByteLen::new(len) && range.end <= len);
                        let part = usize::try_from(range.end - range.start).unwrap();
                        bytes.resize(bytes.len() + part, byte);
                    }
                }
            }
            let whole: Vec<u8> =
                model[range].iter().flat_map(|(byte, _)| std::iter::repeat_n(*byte, 512)).collect();
            assert_eq!(bytes, whole[10..whole.len() - 10]);
        }
    }

    fn check_locations(&self, p: &Partition) {
        let shown: BTreeSet<u64> =
            self.model.iter().flatten().filter_map(|(_, place)| *place).collect();
        let mut garbage = BTreeSet::new();
        for location in p.garbage() {
            assert!(garbage.insert(location.offset.get()), "{location:?} is garbage twice");
        }
        let read = Read::References(ListReferences::all());
        let ReadReply::References(found) = p.read(&read).unwrap() else { panic!("references") };
        let named: BTreeSet<u64> = found.locations.iter().map(|l| l.offset.get()).collect();
        assert!(shown.is_disjoint(&garbage), "shown and garbage");
        assert!(garbage.is_disjoint(&self.forgotten), "garbage after it was forgotten");
        assert!(shown.is_subset(&named) && garbage.is_subset(&named), "references");
        if dead(p).is_empty() {
            assert_eq!(shown.union(&garbage).copied().collect::<BTreeSet<_>>(), named);
        }
        let known: BTreeSet<u64> = named.union(&self.forgotten).copied().collect();
        let ever: BTreeSet<u64> = self.extents.keys().copied().collect();
        assert_eq!(known, ever, "leaked");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn pages_agree_with_an_array(steps in prop::collection::vec(step(), 1..60)) {
        let mut p = partition();
        let a = key("a");
        let mut world = World::default();
        world.apply(&mut p, &a, &Step::Make);
        for step in &steps {
            world.apply(&mut p, &a, step);
            world.check(&p, &a);
        }
        world.apply(&mut p, &a, &Step::Make);
        world.apply(&mut p, &a, &Step::Delete);
        for _ in 0..200 {
            world.apply(&mut p, &a, &Step::Forget);
        }
        world.check(&p, &a);
        prop_assert!(p.memory.rows.is_empty(), "{:?}", p.memory.rows);
    }
}
