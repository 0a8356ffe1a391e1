//! Blobs change between the pages of an audit: locations move from staged to committed to garbage,
//! others come and go.

use std::collections::BTreeSet;

use super::fakes::*;
use crate::capacity::Capacity;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::{Open, Sealed};
use crate::index::InFlight;
use crate::index::NewBlobFields;
use crate::index::api::*;
use crate::index::inflight::CopyNote;
use crate::index::objects::fake::Partition;
use crate::reclaim::Reclaim;
use crate::types::*;

const NAMES: [&str; 6] = ["a", "b", "d", "k", "p", "z"];

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn name(&mut self) -> &'static str {
        NAMES[usize::try_from(self.below(6)).unwrap()]
    }
}

/// One change; new bytes go to the open extent 9.
fn change(dice: &mut Dice, partitions: &mut [Partition], next: &mut u64) {
    let name = dice.name();
    let owner = partitions
        .iter()
        .position(|p| p.memory.range.contains(RoutingKey::blob(&key(name)).as_bytes()))
        .unwrap();
    *next += 10;
    let new = [location(9, *next, 9)];
    let write = match dice.below(5) {
        0 => put(name, &new),
        1 => stage(name, "1", &new),
        2 => commit(name, &["1"]),
        3 => commit(name, &["2", "1"]),
        _ => delete(name),
    };
    // A commit of blocks that are not there, or a delete of nothing, is refused and changes
    // nothing.
    drop(partitions[owner].write(&write));
}

#[tokio::test(start_paused = true)]
async fn audit_keeps_what_moves_between_rows() {
    let mut freed_in_all = 0;
    for seed in 0..200 {
        let bench = Bench::new();
        bench.capacity.add(1, Data, Sealed, 400);
        bench.capacity.add(9, Data, Open, 0);
        let mut dice = Dice(seed);
        // Each name has a blob or staged blocks or both in extent 1, with gaps that nothing names.
        for (n, name) in (0..).zip(NAMES) {
            let at = |m: u64| [location(1, n * 60 + m * 20, 9)];
            if dice.below(2) == 0 {
                bench.index.must(&put(name, &at(0)));
            }
            bench.index.must(&stage(name, "1", &at(1)));
            if dice.below(2) == 0 {
                bench.index.must(&stage(name, "2", &at(2)));
            }
        }
        let mut next = 0;
        let hook_seed = dice.below(1 << 30);
        let mut hook_dice = Dice(hook_seed);
        *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |partitions| {
            for _ in 0..hook_dice.below(4) {
                change(&mut hook_dice, partitions, &mut next);
            }
        }));
        bench.reclaim().audit().await.unwrap();
        for named in bench.index.named() {
            let safe = named.extent.get() != 1 || bench.capacity.is_live(&named);
            assert!(safe, "seed {seed}: {named:?} is named and was freed");
        }
        freed_in_all += 400 - bench.capacity.live(1).len();
    }
    assert!(freed_in_all > 200 * 100, "{freed_in_all} bytes freed: the audit did nothing");
}

/// A copy of `from` by reference, as a front end makes it.
fn copy(
    partitions: &mut [Partition],
    inflight: &InFlight,
    from: &str,
    to: &str,
) -> Option<CopyNote> {
    let owner = |partitions: &mut [Partition], name: &str| {
        let position = RoutingKey::blob(&key(name));
        partitions.iter().position(|p| p.memory.range.contains(position.as_bytes())).unwrap()
    };
    let note = inflight.copy();
    let share =
        Share { key: key(from), revision: Revision::Current, guard: Guard::default(), range: None };
    let source = owner(partitions, from);
    let reply = partitions[source].write(&Write::Share(Box::new(share))).ok()?;
    let WriteReply::Shared(shared) = reply else { panic!("not shared") };
    let content = shared.content.unwrap();
    let locations = |piece: &NewContent| match piece {
        NewContent::Inline(_) => Vec::new(),
        NewContent::Stored(all) | NewContent::Shared(all) => all.clone(),
        NewContent::Encrypted(..) | NewContent::Authenticated(..) => {
            panic!("nothing here is encrypted")
        }
    };
    note.met(content.pieces().flat_map(locations).map(|location| location.extent));
    let put = PutCopy {
        key: key(to),
        guard: Guard::default(),
        kind: BlobKind::Block,
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        tier: None,
        content,
        crc64: shared.record.crc64,
        copy: None,
        increment: None,
        job: None,
        fields: NewBlobFields::default(),
    };
    let destination = owner(partitions, to);
    partitions[destination].write(&Write::PutCopy(Box::new(put))).unwrap();
    Some(note)
}

const BLOCKS: u64 = 80;

/// One change of the blob `a`, or of `d`, which lies elsewhere; new bytes go to the open extent 9.
fn change_long(dice: &mut Dice, next: &mut u64, partitions: &mut [Partition], inflight: &InFlight) {
    let mut ids: Vec<String> = (0..BLOCKS).map(|n| format!("{n:02}")).collect();
    *next += 10;
    let (key, guard) = (key("a"), Guard::default());
    let write = match dice.below(16) {
        0..=2 => Write::SnapshotBlob(SnapshotBlob { key, guard, metadata: None }),
        3..=5 => {
            // Every block moves to another row, or to another place in its row.
            ids.rotate_left(usize::try_from(dice.below(BLOCKS)).unwrap());
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            commit("a", &ids)
        }
        6..=11 => stage("a", &format!("{:02}", dice.below(BLOCKS)), &[location(9, *next, 9)]),
        12 | 13 => {
            let scope = DeleteScope::Snapshots;
            Write::DeleteBlob(DeleteBlob { key, guard, scope })
        }
        14 => delete("d"),
        _ => return drop(copy(partitions, inflight, "a", "d")),
    };
    let owner = partitions
        .iter()
        .position(|partition| partition.memory.range.contains(&write.routing_key()))
        .unwrap();
    // There may be no snapshot, or no copy.
    drop(partitions[owner].write(&write));
}

/// The audit comes back to a blob that names more than fits into an answer, and meanwhile what it
/// names moves from row to row.
#[tokio::test(start_paused = true)]
async fn audit_keeps_what_moves_within_a_blob_that_is_returned_in_parts() {
    let mut freed_in_all = 0;
    for seed in 0..40 {
        let bench = Bench::new();
        bench.capacity.add(1, Data, Sealed, BLOCKS * 20);
        bench.capacity.add(9, Data, Open, 0);
        let ids: Vec<String> = (0..BLOCKS).map(|n| format!("{n:02}")).collect();
        for (n, id) in (0..).zip(&ids) {
            // Later blocks lie lower.
            bench.index.must(&stage("a", id, &[location(1, (BLOCKS - 1 - n) * 20, 9)]));
        }
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        bench.index.must(&commit("a", &ids));
        let mut setup = bench.setup();
        setup.config.audit_locations = 7;
        let reclaim = Reclaim::new(setup);
        let (inflight, mut dice, mut next) = (bench.inflight.clone(), Dice(seed), 0);
        *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |partitions| {
            for _ in 0..dice.below(6) {
                change_long(&mut dice, &mut next, partitions, &inflight);
            }
        }));
        reclaim.audit().await.unwrap();
        let assert_safe = || {
            for named in bench.index.named() {
                let safe = named.extent.get() != 1 || bench.capacity.is_live(&named);
                assert!(safe, "seed {seed}: {named:?} is named and was freed");
            }
        };
        assert_safe();
        let size = usize::try_from(BLOCKS * 20).unwrap();
        freed_in_all += size - bench.capacity.live(1).len();
        // With nothing else going on it frees all that nothing names.
        *bench.index.between_pages.lock().unwrap() = None;
        reclaim.audit().await.unwrap();
        assert_safe();
        let named = bench.index.named().into_iter().filter(|named| named.extent.get() == 1);
        let bytes: BTreeSet<u64> = named.flat_map(|at| bench.capacity.frames_of(&at)).collect();
        assert_eq!(bench.capacity.live(1), bytes.into_iter().collect::<Vec<_>>(), "seed {seed}");
    }
    assert!(freed_in_all > 40 * 40, "{freed_in_all} bytes freed: the audit did nothing");
}

#[tokio::test(start_paused = true)]
async fn audit_keeps_what_copies_name_though_their_sources_go() {
    let mut freed_in_all = 0;
    for seed in 0..300 {
        let bench = Bench::new();
        bench.capacity.add(1, Data, Sealed, 200);
        bench.capacity.add(2, Data, Sealed, 200);
        let mut dice = Dice(seed);
        for (n, name) in (0..).zip(NAMES) {
            bench.index.must(&put(name, &[location(1 + n % 2, n * 20, 9)]));
        }
        let (inflight, mut hook_dice) = (bench.inflight.clone(), Dice(dice.below(1 << 30)));
        *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |partitions| {
            for _ in 0..hook_dice.below(3) {
                let (from, to) = (hook_dice.name(), hook_dice.name());
                drop(copy(partitions, &inflight, from, to));
                let gone = hook_dice.name();
                let owner = partitions
                    .iter()
                    .position(|p| p.memory.range.contains(RoutingKey::blob(&key(gone)).as_bytes()))
                    .unwrap();
                drop(partitions[owner].write(&delete(gone)));
            }
        }));
        let reclaim = bench.reclaim();
        reclaim.audit().await.unwrap();
        let check = |when| {
            for named in bench.index.named() {
                assert!(bench.capacity.is_live(&named), "seed {seed}, {when}: {named:?} was freed");
            }
        };
        check("after the copies");
        // With nothing in the way any more, exactly what is named stays.
        *bench.index.between_pages.lock().unwrap() = None;
        reclaim.audit().await.unwrap();
        check("later");
        let mut named = bench.index.named();
        named.sort_by_key(|l| (l.extent, l.offset));
        named.dedup();
        let live = bench.capacity.live(1).len() + bench.capacity.live(2).len();
        // A frame is its header of one byte and nine of payload.
        assert_eq!(live, named.len() * 10, "seed {seed}: not all of the rest was freed");
        freed_in_all += 400 - live;
    }
    assert!(freed_in_all > 300 * 200, "{freed_in_all} bytes freed: the audits did nothing");
}

#[tokio::test(start_paused = true)]
async fn audit_waits_for_a_copy_that_has_not_reported_what_it_met() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 100);
    bench.index.must(&put("z", &[location(1, 0, 9)]));
    let running = bench.inflight.copy();
    let reclaim = bench.reclaim();
    let audit = {
        let reclaim = std::sync::Arc::clone(&reclaim);
        bench.env.tasks.spawn("audit", async move { reclaim.audit().await })
    };
    bench.after(std::time::Duration::from_secs(60)).await;
    assert!(!audit.is_finished(), "the copy may name anything");
    assert_eq!(bench.capacity.live(1).len(), 100);
    running.met([ExtentId::new(1)]);
    assert_eq!(audit.await.unwrap().unwrap().copied, 1);
    assert_eq!(bench.capacity.live(1).len(), 100, "it names bytes of this extent");
    drop(running);
    reclaim.audit().await.unwrap();
    assert_eq!(bench.capacity.live(1).len(), 10);
}

#[tokio::test(start_paused = true)]
async fn audit_waits_for_a_reader_of_shared_bytes_that_lost_their_row() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 100);
    bench.index.must(&put("z", &[location(1, 0, 9)]));
    let mut reading = bench.inflight.read(bench.env.clock.monotonic());
    reading.names([ExtentId::new(1)]);
    bench.index.must(&Write::Share(Box::new(Share {
        key: key("z"),
        revision: Revision::Current,
        guard: Guard::default(),
        range: None,
    })));
    bench.index.must(&delete("z"));
    let reclaim = bench.reclaim();
    let audit = bench.env.tasks.spawn("audit", async move { reclaim.audit().await });
    bench.after(std::time::Duration::from_secs(50)).await;
    assert_eq!(bench.capacity.live(1).len(), 100, "the reader may still want them");
    drop(reading);
    audit.await.unwrap().unwrap();
    assert!(bench.capacity.live(1).is_empty());
}

#[tokio::test(start_paused = true)]
async fn shared_bytes_in_an_open_extent_come_back_soon_after_they_were_dropped() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Open, 100);
    bench.capacity.add(2, Data, Open, 5);
    bench.index.must(&put("y", &[location(1, 0, 9)]));
    let mut setup = bench.setup();
    (setup.config.open_waste_min, setup.config.audit_dropped_min) = (10, 9);
    let (delay, soon) = (setup.config.audit_delay, setup.config.audit_soon);
    let writing = bench.inflight.write(ExtentId::new(1));
    drop(Reclaim::start(setup, true));
    bench.after(delay + soon).await;
    assert_eq!(bench.capacity.live(1).len(), 100, "nothing calls for the extent's end yet");
    bench.counted.shared_dropped(9);
    bench.after(soon * 2).await;
    // What was written meanwhile had its row before the note went.
    drop(writing);
    bench.after(soon * 2).await;
    assert_eq!(bench.capacity.live(1).len(), 10, "only what is named stays");
    assert_eq!(bench.capacity.live(2).len(), 5, "a short extent is not worth its end");
}
