//! Incremental copies: their snapshots show what those of the source do, and nothing else changes
//! them.

use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::CopyRecord;
use crate::index::record::CopyStatus;
use crate::types::*;

const PAGE: u64 = PAGE_BYTES;
const PAGES: u64 = 40;

fn make_pages(p: &mut Partition, key: &BlobKey) {
    p.must(&make(key, NewKind::Page { len: PAGES * PAGE, sequence: 7 }));
}

/// Writes pages that all have this byte, or clears them.
fn write(p: &mut Partition, key: &BlobKey, pages: std::ops::Range<u64>, byte: Option<u8>) {
    let len = usize::try_from((pages.end - pages.start) * PAGE).unwrap();
    p.must(&Write::WritePages(WritePages {
        key: key.clone(),
        guard: Guard::default(),
        sequence: SequenceBounds::default(),
        range: pages.start * PAGE..pages.end * PAGE,
        content: byte.map(|byte| NewContent::Inline(Bytes::from(vec![byte; len]))),
    }));
}

fn snapshot(p: &mut Partition, key: &BlobKey) -> Timestamp {
    let take = SnapshotBlob { key: key.clone(), guard: Guard::default(), metadata: None };
    let WriteReply::Snapshotted(taken) = p.must(&Write::SnapshotBlob(take)) else { panic!() };
    taken.snapshot
}

fn resize(p: &mut Partition, key: &BlobKey, pages: u64) {
    p.must(&Write::UpdatePages(UpdatePages {
        key: key.clone(),
        guard: Guard::default(),
        properties: None,
        len: Some(pages * PAGE),
        sequence: None,
    }));
}

/// What a copy takes: of which blob, which snapshot, and what is there already.
#[derive(Clone)]
struct Step<'a> {
    from: &'a BlobKey,
    snapshot: Timestamp,
    since: Option<Timestamp>,
}

/// Fills a layer under `to`, as a front end does.
fn fill(p: &mut Partition, step: &Step<'_>, to: &BlobKey) -> Result<u64, Error> {
    let (mut at, mut layer) = (Some(0), None);
    while let Some(from) = at {
        let share = SharePages {
            key: step.from.clone(),
            revision: Revision::Snapshot(step.snapshot),
            guard: Guard::default(),
            since: step.since,
            from,
        };
        let shared = p.write(&Write::SharePages(Box::new(share)))?;
        let WriteReply::SharedPages(part) = shared else { panic!("not pages") };
        at = part.next;
        let fill = FillLayer { blob: RoutingKey::blob(to), layer, spans: part.spans };
        let WriteReply::Layer(filled) = p.must(&Write::FillLayer(fill)) else { panic!() };
        layer = Some(filled);
    }
    Ok(layer.unwrap())
}

fn put_of(step: &Step<'_>, to: &BlobKey, layer: u64, (id, len): (u128, u64)) -> Write {
    let copy = CopyRecord {
        id: Uuid::from_u128(id),
        source: "s".to_owned(),
        status: CopyStatus::Success,
        description: None,
        copied: len,
        total: len,
        completed: None,
    };
    let increment = Increment {
        source: RoutingKey::blob(step.from),
        snapshot: step.snapshot,
        since: step.since,
    };
    Write::PutCopy(Box::new(PutCopy {
        key: to.clone(),
        guard: Guard::default(),
        kind: BlobKind::Page { sequence: 7 },
        properties: BlobProperties::default(),
        metadata: Metadata::new([("k".to_owned(), "v")]).unwrap(),
        tags: Tags::default(),
        tier: None,
        content: CopiedContent::Pages { layer, len },
        crc64: Crc64::EMPTY,
        copy: Some(Box::new(copy)),
        increment: Some(increment),
        job: None,
        fields: NewBlobFields::default(),
    }))
}

/// Copies, and returns the time of the snapshot that it made.
fn copy(p: &mut Partition, step: &Step<'_>, to: &BlobKey) -> Result<Timestamp, Error> {
    let layer = fill(p, step, to)?;
    let revision = Revision::Snapshot(step.snapshot);
    let len = p.blob(&ReadBlob { revision, ..properties(step.from) }).unwrap().record.len;
    p.write(&put_of(step, to, layer, (u128::from(layer), len)))?;
    let record = p.blob(&properties(to)).unwrap().record;
    Ok(record.incremental_copy().unwrap().snapshot.unwrap())
}

fn properties(key: &BlobKey) -> ReadBlob {
    ReadBlob { pieces: false, ..read(key) }
}

/// The first byte of each page.
fn shown(p: &Partition, key: &BlobKey, snapshot: Timestamp) -> Vec<u8> {
    let read = ReadBlob { revision: Revision::Snapshot(snapshot), ..read(key) };
    let view = p.blob(&read).unwrap();
    let mut all = Vec::new();
    for piece in view.pieces {
        match piece {
            Piece::Inline(bytes) => all.extend_from_slice(&bytes),
            Piece::Zeros(len) => all.resize(all.len() + usize::try_from(len).unwrap(), 0),
            Piece::Stored { .. } | Piece::Encrypted { .. } | Piece::Authenticated { .. } => {
                panic!("all bytes are in rows")
            }
        }
    }
    assert_eq!(all.len() as u64, view.record.len);
    all.into_iter().step_by(512).collect()
}

fn ranges(p: &Partition, key: &BlobKey, since: Timestamp, until: Timestamp) -> Vec<PageRange> {
    let read = ReadPages {
        key: key.clone(),
        revision: Revision::Snapshot(until),
        since: Some(since),
        guard: Guard::default(),
        range: None,
        limit: 1_000,
    };
    let ReadReply::Pages(found) = p.read(&Read::Pages(read)).unwrap() else { panic!("not pages") };
    found.ranges
}

#[test]
fn each_copy_adds_a_snapshot_that_shows_what_the_source_did() {
    let mut p = partition();
    let (a, b) = (key("a"), key("b"));
    make_pages(&mut p, &a);
    write(&mut p, &a, 0..8, Some(1));
    let first = snapshot(&mut p, &a);
    write(&mut p, &a, 2..4, Some(2));
    write(&mut p, &a, 6..7, None);
    let second = snapshot(&mut p, &a);
    let one = copy(&mut p, &Step { from: &a, snapshot: first, since: None }, &b).unwrap();
    let two = copy(&mut p, &Step { from: &a, snapshot: second, since: Some(first) }, &b).unwrap();
    assert_eq!(shown(&p, &b, one), shown(&p, &a, first));
    assert_eq!(shown(&p, &b, two), shown(&p, &a, second));
    assert_eq!(ranges(&p, &b, one, two), ranges(&p, &a, first, second), "only the changes came");

    let record = p.blob(&properties(&b)).unwrap().record;
    assert_eq!((record.snapshots, record.len), (2, PAGES * PAGE));
    assert_eq!(record.metadata.iter().count(), 1);
    let source = record.incremental_source().unwrap();
    assert_eq!((&source.blob, source.snapshot), (&RoutingKey::blob(&a), second));
    let of_one = ReadBlob { revision: Revision::Snapshot(one), ..properties(&b) };
    let of_one = p.blob(&of_one).unwrap().record;
    assert_eq!(of_one.incremental_copy().unwrap().snapshot, Some(one));
    assert_eq!(of_one.incremental_source(), None, "it can be read and copied");

    p.must(&delete_of(&b, DeleteScope::Snapshot(one)));
    assert_eq!(shown(&p, &b, two), shown(&p, &a, second), "layers below stay");
    p.must(&delete_of(&b, DeleteScope::BlobAndSnapshots));
    assert_eq!(p.blob(&properties(&b)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
}

#[test]
fn pages_that_were_cut_off_do_not_come_back() {
    let mut p = partition();
    let (a, b) = (key("a"), key("b"));
    make_pages(&mut p, &a);
    write(&mut p, &a, 0..8, Some(1));
    let (mut since, mut pairs) = (None, Vec::new());
    for pages in [PAGES, 2, PAGES] {
        resize(&mut p, &a, pages);
        let taken = snapshot(&mut p, &a);
        pairs.push((taken, copy(&mut p, &Step { from: &a, snapshot: taken, since }, &b).unwrap()));
        since = Some(taken);
    }
    for (of_source, of_copy) in pairs {
        assert_eq!(shown(&p, &b, of_copy), shown(&p, &a, of_source));
    }
}

#[test]
fn destination_takes_later_snapshots_of_its_source_only() {
    let mut p = partition();
    let (a, b, other) = (key("a"), key("b"), key("other"));
    for blob in [&a, &other] {
        make_pages(&mut p, blob);
    }
    let (first, second) = (snapshot(&mut p, &a), snapshot(&mut p, &a));
    let elsewhere = snapshot(&mut p, &other);
    let refused = |refused| Err(Error::Refused(refused));
    let step = Step { from: &a, snapshot: second, since: None };
    copy(&mut p, &step, &b).unwrap();
    for (from, snapshot, expected) in [
        (&a, first, Refused::EarlierIncrement),
        (&a, second, Refused::EarlierIncrement),
        (&other, elsewhere, Refused::OtherIncrement),
    ] {
        let step = Step { from, snapshot, since: None };
        assert_eq!(copy(&mut p, &step, &b), refused(expected));
    }
    let third = snapshot(&mut p, &a);
    let late = Step { from: &a, snapshot: third, since: Some(first) };
    assert_eq!(copy(&mut p, &late, &b), refused(Refused::CopyPending), "it compared with another");
    make_pages(&mut p, &other);
    let step = Step { from: &a, snapshot: first, since: None };
    assert_eq!(copy(&mut p, &step, &other), refused(Refused::OtherIncrement), "an ordinary blob");
    assert_eq!(p.blob(&properties(&b)).unwrap().record.snapshots, 1);

    make_pages(&mut p, &a);
    let anew = snapshot(&mut p, &a);
    let step = Step { from: &a, snapshot: anew, since: Some(second) };
    assert_eq!(copy(&mut p, &step, &b), refused(Refused::MadeAnew));
    p.must(&delete_of(&a, DeleteScope::Snapshot(second)));
    assert_eq!(copy(&mut p, &step, &b), refused(Refused::ComparedWithNothing));
}

#[test]
fn a_copy_that_is_sent_again_is_made_once() {
    let mut p = partition();
    let (a, b) = (key("a"), key("b"));
    make_pages(&mut p, &a);
    let step = Step { snapshot: snapshot(&mut p, &a), from: &a, since: None };
    let layer = fill(&mut p, &step, &b).unwrap();
    let put = put_of(&step, &b, layer, (5, PAGES * PAGE));
    let first = p.must(&put);
    assert_eq!(p.must(&put), first);
    assert_eq!(p.blob(&properties(&b)).unwrap().record.snapshots, 1);
}

#[test]
fn only_a_copy_changes_an_incremental_copy() {
    let mut p = partition();
    let (a, b) = (key("a"), key("b"));
    make_pages(&mut p, &a);
    let step = Step { snapshot: snapshot(&mut p, &a), from: &a, since: None };
    copy(&mut p, &step, &b).unwrap();
    let (key, guard, revision) = (b.clone(), Guard::default(), Revision::Current);
    let update = |change| {
        Write::UpdateBlob(UpdateBlob { key: b.clone(), revision, guard: Guard::default(), change })
    };
    let resize = UpdatePages {
        key: b.clone(),
        guard: guard.clone(),
        properties: None,
        len: Some(512),
        sequence: None,
    };
    let pages = WritePages {
        key: b.clone(),
        guard: guard.clone(),
        sequence: SequenceBounds::default(),
        range: 0..512,
        content: None,
    };
    let tier = SetTier {
        key: b.clone(),
        revision,
        guard: guard.clone(),
        tier: AccessTier::P10,
        priority: RehydratePriority::Standard,
        rehydration: std::time::Duration::ZERO,
    };
    let share = SharePages { key: b.clone(), revision, guard: guard.clone(), since: None, from: 0 };
    let action = LeaseAction::Break { period: None };
    for write in [
        Write::PutBlob(put(&b, inline(b"x"))),
        update(BlobChange::Metadata(Metadata::default())),
        update(BlobChange::Properties(BlobProperties::default())),
        update(BlobChange::Tags(Tags::default())),
        Write::UpdatePages(resize),
        Write::WritePages(pages),
        Write::SetTier(tier),
        Write::SharePages(Box::new(share)),
        Write::SnapshotBlob(SnapshotBlob { key, guard: guard.clone(), metadata: None }),
        Write::LeaseBlob(LeaseBlob { key: b.clone(), guard: guard.clone(), action }),
    ] {
        assert_eq!(p.write(&write), Err(Error::Refused(Refused::Incremental)), "{write:?}");
    }
    assert_eq!(p.blob(&read(&b)).unwrap_err(), Error::Refused(Refused::Incremental));
    let all = ReadPages { key: b.clone(), revision, since: None, guard, range: None, limit: 1 };
    assert_eq!(p.read(&Read::Pages(all)).unwrap_err(), Error::Refused(Refused::Incremental));
    p.blob(&properties(&b)).unwrap();
}

proptest! {
    #[test]
    fn a_chain_of_copies_shows_each_snapshot(
        changes in proptest::collection::vec(
            (0..PAGES, 1..9u64, proptest::option::of(1..200u8), any::<bool>(), any::<bool>()),
            1..40,
        ),
    ) {
        let mut p = partition();
        let (a, b) = (key("a"), key("b"));
        make_pages(&mut p, &a);
        let (mut since, mut pairs) = (None, Vec::new());
        for (start, len, byte, is_taken, is_resized) in changes {
            if is_resized {
                resize(&mut p, &a, start + 1);
                resize(&mut p, &a, if is_taken { start + 1 } else { PAGES });
            }
            let end = p.blob(&properties(&a)).unwrap().record.len / PAGE;
            write(&mut p, &a, start.min(end - 1)..(start + len).min(end), byte);
            if is_taken {
                let taken = snapshot(&mut p, &a);
                let step = Step { from: &a, snapshot: taken, since };
                pairs.push((taken, copy(&mut p, &step, &b).unwrap()));
                since = Some(taken);
            }
        }
        for (of_source, of_copy) in pairs {
            prop_assert_eq!(shown(&p, &b, of_copy), shown(&p, &a, of_source));
        }
    }
}
