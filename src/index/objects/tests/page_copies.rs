//! Copies of page blobs by reference, against a plain array; every location is shown, garbage, or
//! left to the audit.

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
const PAGES: u64 = 400;

fn made(p: &mut Partition, name: &str) -> BlobKey {
    let key = key(name);
    p.must(&make(&key, NewKind::Page { len: PAGES * PAGE, sequence: 7 }));
    key
}

fn write(p: &mut Partition, key: &BlobKey, pages: std::ops::Range<u64>, content: NewContent) {
    let range = pages.start * PAGE..pages.end * PAGE;
    let sequence = SequenceBounds::default();
    let guard = Guard::default();
    let write = WritePages { key: key.clone(), guard, sequence, range, content: Some(content) };
    p.must(&Write::WritePages(write));
}

fn fill(p: &mut Partition, to: &BlobKey, layer: Option<u64>, spans: Vec<PageSpan>) -> u64 {
    let fill = FillLayer { blob: RoutingKey::blob(to), layer, spans };
    let WriteReply::Layer(layer) = p.must(&Write::FillLayer(fill)) else { panic!("no layer") };
    layer
}

fn named_by(p: &mut Partition, to: &BlobKey, layer: u64) -> Result<WriteReply, Error> {
    p.write(&Write::PutCopy(Box::new(PutCopy {
        key: to.clone(),
        guard: Guard::default(),
        kind: BlobKind::Page { sequence: 7 },
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        tier: None,
        content: CopiedContent::Pages { layer, len: PAGES * PAGE },
        crc64: Crc64::EMPTY,
        copy: None,
        increment: None,
        job: None,
        fields: NewBlobFields::default(),
    })))
}

/// As a front end copies; how many parts it took.
fn copy(p: &mut Partition, from: &BlobKey, to: &BlobKey) -> u32 {
    let (mut at, mut layer, mut parts) = (Some(0), None, 0);
    while let Some(from_here) = at {
        let (key, guard) = (from.clone(), Guard::default());
        let share =
            SharePages { key, revision: Revision::Current, guard, since: None, from: from_here };
        let WriteReply::SharedPages(part) = p.must(&Write::SharePages(Box::new(share))) else {
            panic!("not pages")
        };
        at = part.next;
        parts += 1;
        layer = Some(fill(p, to, layer, part.spans));
    }
    named_by(p, to, layer.unwrap()).unwrap();
    parts
}

/// What each page shows: a location and the offset in it.
fn shown(p: &Partition, key: &BlobKey) -> BTreeMap<u64, (Location, u64)> {
    let mut all = BTreeMap::new();
    let mut at = 0;
    while at < PAGES * PAGE {
        let range = ByteRange::new(at, None);
        let read = ReadBlob { range, ..read(key) };
        let view = p.blob(&read).unwrap();
        for piece in view.pieces {
            match piece {
                Piece::Encrypted { .. } | Piece::Authenticated { .. } => {
                    panic!("pages are not encrypted")
                }
                Piece::Stored { location, range } => {
                    for offset in range.step_by(512) {
                        all.insert(at / PAGE, (location, offset));
                        at += PAGE;
                    }
                }
                Piece::Inline(bytes) => at += bytes.len() as u64,
                Piece::Zeros(len) => at += len,
            }
        }
    }
    all
}

#[test]
fn copy_shows_what_its_source_did_and_neither_frees_the_others() {
    let mut p = partition();
    let (a, b) = (made(&mut p, "a"), key("b"));
    write(&mut p, &a, 0..8, NewContent::Stored(vec![location(1, 0, 8 * PAGE)]));
    write(&mut p, &a, 2..3, NewContent::Stored(vec![location(1, 9_000, PAGE)]));
    write(&mut p, &a, 100..101, NewContent::Inline(Bytes::from(vec![5; 512])));
    let before = shown(&p, &a);
    assert_eq!(copy(&mut p, &a, &b), 1);
    assert_eq!(shown(&p, &b), before);
    // Written over in one, the rest stays in the other; nothing is garbage, since both name it.
    write(&mut p, &a, 0..8, NewContent::Stored(vec![location(2, 0, 8 * PAGE)]));
    assert_eq!(shown(&p, &b), before);
    assert!(p.garbage().is_empty());
    let record = p.blob(&read(&b)).unwrap().record;
    assert_eq!((record.kind, record.len), (BlobKind::Page { sequence: 7 }, PAGES * PAGE));
    let garbage = p.memory.rows.keys().filter(|(family, _)| *family == Family::Garbage).count();
    assert_eq!(garbage, 0, "the layer lives");
}

#[test]
fn snapshot_is_a_source_and_what_hides_it_is_not() {
    let mut p = partition();
    let (a, b) = (made(&mut p, "a"), key("b"));
    write(&mut p, &a, 0..8, NewContent::Stored(vec![location(1, 0, 8 * PAGE)]));
    let before = shown(&p, &a);
    let take = SnapshotBlob { key: a.clone(), guard: Guard::default(), metadata: None };
    let WriteReply::Snapshotted(taken) = p.must(&Write::SnapshotBlob(take)) else { panic!() };
    write(&mut p, &a, 0..4, NewContent::Stored(vec![location(2, 0, 4 * PAGE)]));
    let (key, guard) = (a.clone(), Guard::default());
    let share = SharePages {
        key,
        revision: Revision::Snapshot(taken.snapshot),
        guard,
        since: None,
        from: 0,
    };
    let WriteReply::SharedPages(part) = p.must(&Write::SharePages(Box::new(share))) else {
        panic!("not pages")
    };
    let layer = fill(&mut p, &b, None, part.spans);
    named_by(&mut p, &b, layer).unwrap();
    assert_eq!(shown(&p, &b), before);
    assert_ne!(shown(&p, &a), before);
}

#[test]
fn layer_that_no_copy_named_is_buried_and_cannot_be_named_any_more() {
    let mut p = partition();
    let b = key("b");
    let content = NewContent::Stored(vec![location(3, 0, PAGE)]);
    let span = PageSpan { range: 0..PAGE, skip: 0, content: Some(content) };
    let layer = fill(&mut p, &b, None, vec![span.clone()]);
    let row = crate::index::objects::keys::dead_layer(&RoutingKey::blob(&b), layer);
    p.must(&Write::ForgetGarbage { keys: vec![row] });
    assert_eq!(p.garbage(), [location(3, 0, PAGE)]);
    assert!(matches!(named_by(&mut p, &b, layer), Err(Error::Unavailable(_))));
    let fill = FillLayer { blob: RoutingKey::blob(&b), layer: Some(layer), spans: vec![span] };
    assert!(matches!(p.write(&Write::FillLayer(fill)), Err(Error::Unavailable(_))));
}

/// Reclaim leaves layers in the making alone by the clock, which may be set back.
#[test]
fn layer_whose_burial_has_begun_cannot_be_named_any_more() {
    const SPANS: u64 = 2_500;
    let mut p = partition();
    let b = key("b");
    let span = |n: u64| {
        let content = NewContent::Stored(vec![location(3, n * 2 * PAGE, PAGE)]);
        PageSpan { range: n * PAGE..(n + 1) * PAGE, skip: 0, content: Some(content) }
    };
    let layer = fill(&mut p, &b, None, (0..SPANS).map(span).collect());
    let row = crate::index::objects::keys::dead_layer(&RoutingKey::blob(&b), layer);
    p.must(&Write::ForgetGarbage { keys: vec![row.clone()] });
    assert!(p.garbage().len() < 2_500, "the burial goes on");
    assert!(matches!(named_by(&mut p, &b, layer), Err(Error::Unavailable(_))));
    let more = vec![span(SPANS)];
    let fill = FillLayer { blob: RoutingKey::blob(&b), layer: Some(layer), spans: more };
    assert!(matches!(p.write(&Write::FillLayer(fill)), Err(Error::Unavailable(_))));
    for _ in 0..3 {
        p.must(&Write::ForgetGarbage { keys: vec![row.clone()] });
    }
    assert_eq!(p.garbage().len(), 2_500);
}

#[test]
fn spans_that_hold_less_than_they_show_are_refused() {
    let mut p = partition();
    let content = NewContent::Stored(vec![location(3, 0, PAGE)]);
    for (range, skip) in [(0..2 * PAGE, 0), (0..PAGE, 1), (0..0, 0)] {
        let spans = vec![PageSpan { range, skip, content: Some(content.clone()) }];
        let fill = FillLayer { blob: RoutingKey::blob(&key("b")), layer: None, spans };
        assert!(matches!(
            p.write(&Write::FillLayer(fill)),
            Err(Error::Refused(Refused::InvalidPages { .. }))
        ));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Writes and copies between two blobs in any order: both show what arrays say, and no location
    /// that is shown is ever garbage.
    #[test]
    fn copies_agree_with_arrays(
        steps in prop::collection::vec((0u64..PAGES, 1u64..40, 0u8..6), 1..60),
    ) {
        let mut p = partition();
        let keys = [made(&mut p, "a"), made(&mut p, "b")];
        let mut arrays = [BTreeMap::new(), BTreeMap::new()];
        let mut next = 0u64;
        for (start, len, what) in steps {
            let one = usize::from(what % 2);
            if what >= 4 {
                copy(&mut p, &keys[one], &keys[1 - one]);
                arrays[1 - one] = arrays[one].clone();
            } else {
                // A location lies in one window.
                let window = PAGE_WINDOW_BYTES / PAGE;
                let end = (start + len).min(PAGES).min((start / window + 1) * window);
                let at = location(1, next, (end - start) * PAGE);
                next += at.len.get();
                write(&mut p, &keys[one], start..end, NewContent::Stored(vec![at]));
                for page in start..end {
                    arrays[one].insert(page, (at, (page - start) * PAGE));
                }
            }
            let garbage: BTreeSet<_> = p.garbage().iter().map(|l| (l.extent, l.offset)).collect();
            for (key, array) in keys.iter().zip(&arrays) {
                prop_assert_eq!(&shown(&p, key), array);
                prop_assert!(array.values().all(|(l, _)| !garbage.contains(&(l.extent, l.offset))));
            }
        }
    }
}
