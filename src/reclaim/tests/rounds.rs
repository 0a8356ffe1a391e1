//! Rounds of the audit: where one goes on, and that it comes to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::fakes::*;
use crate::capacity::Audited;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::Sealed;
use crate::coordinator::Fault;
use crate::coordinator::Op;
use crate::reclaim::AuditReport;
use crate::reclaim::Error;
use crate::reclaim::Reclaim;
use crate::reclaim::ReclaimConfig;
use crate::reclaim::cursor::Cursor;
use crate::reclaim::cursor::KEY;
use crate::reclaim::cursor::Place;
use crate::types::ExtentId;

const SECOND: Duration = Duration::from_secs(1);
const EXTENTS: std::ops::RangeInclusive<u64> = 1..=6;
/// Live frames in each extent; as many frames between them are not.
const FRAMES: u64 = 10;

/// Extents of which every other frame is named.
fn six_extents() -> Bench {
    let bench = Bench::new();
    for extent in EXTENTS {
        bench.capacity.add(extent, Data, Sealed, FRAMES * 20);
        for n in 0..FRAMES {
            bench.index.must(&put(&format!("{n}/{extent}"), &[location(extent, n * 20, 9)]));
        }
    }
    bench
}

/// Reclaim, as after a restart, with memory for two of the extents.
fn restarted(bench: &Bench) -> Arc<Reclaim> {
    with_memory(bench, 25)
}

fn with_memory(bench: &Bench, ranges: usize) -> Arc<Reclaim> {
    let mut setup = bench.setup();
    setup.config.audit_ranges_max = ranges;
    Reclaim::new(setup)
}

/// Those from which something was freed.
fn audited(bench: &Bench) -> Vec<u64> {
    EXTENTS.filter(|extent| bench.capacity.live(*extent).len() < 200).collect()
}

fn assert_all_freed(bench: &Bench) {
    for extent in EXTENTS {
        let live: Vec<u64> = (0..FRAMES).flat_map(|n| n * 20..n * 20 + 10).collect();
        assert_eq!(bench.capacity.live(extent), live, "extent {extent}");
    }
}

async fn has_cursor(bench: &Bench) -> bool {
    bench.coordinator.get(KEY).await.unwrap().is_some()
}

/// An audit that ends in the second walk of its round.
async fn cut_off(bench: &Bench) {
    let (index, capacity) = (Arc::clone(&bench.index), Arc::clone(&bench.capacity));
    *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |_| {
        if capacity.live(1).len() < 200 {
            *index.fail_reads_of.lock().unwrap() = Some(1);
        }
    }));
    let cut = restarted(bench).audit().await;
    assert!(matches!(cut, Err(Error::Index(_))), "{cut:?}");
    *bench.index.between_pages.lock().unwrap() = None;
    *bench.index.fail_reads_of.lock().unwrap() = None;
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_round_goes_on_behind_the_cursor() {
    let bench = six_extents();
    cut_off(&bench).await;
    let before = audited(&bench);
    assert!(!before.is_empty() && before.len() < 6, "{before:?}");
    assert!(has_cursor(&bench).await);
    let report = restarted(&bench).audit().await.unwrap();
    assert!(report.resumed);
    assert_eq!(usize::try_from(report.extents).unwrap() + before.len(), 6, "none of them twice");
    assert_all_freed(&bench);
    assert!(!has_cursor(&bench).await, "the round is over");
    assert_eq!(bench.metrics.audit_left_extents.get(), 0);
    let report = restarted(&bench).audit().await.unwrap();
    assert_eq!((report.resumed, report.extents), (false, 6), "the next one has all of them");
}

#[tokio::test(start_paused = true)]
async fn a_restart_while_extents_are_freed_frees_them_again() {
    let bench = six_extents();
    bench.capacity.trap.store(true, Ordering::Relaxed);
    let reclaim = restarted(&bench);
    let audit = bench.env.tasks.spawn("audit", async move { reclaim.audit().await });
    assert!(audit.await.is_err(), "it panicked at the first one");
    assert!(audited(&bench).is_empty());
    restarted(&bench).audit().await.unwrap();
    assert_all_freed(&bench);
}

#[tokio::test(start_paused = true)]
async fn an_extent_that_is_too_much_alone_is_audited_in_parts() {
    for ranges in [2, 3, 8] {
        let bench = six_extents();
        let report = with_memory(&bench, ranges).audit().await.unwrap();
        assert!(report.walks > 6, "{} walks", report.walks);
        assert_all_freed(&bench);
        let calls = bench.capacity.audited.lock().unwrap();
        for (extent, audited) in calls.iter() {
            let times = calls.iter().filter(|(of, _)| of == extent).count();
            let expected = if times == 1 { Audited::Whole } else { Audited::Part };
            assert_eq!(*audited, expected, "{extent} with {ranges} ranges");
        }
        assert!(calls.iter().any(|(_, audited)| *audited == Audited::Part));
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_within_an_extent() {
    let bench = six_extents();
    let (index, capacity) = (Arc::clone(&bench.index), Arc::clone(&bench.capacity));
    *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |_| {
        if capacity.live(2).len() < 180 {
            *index.fail_reads_of.lock().unwrap() = Some(1);
        }
    }));
    assert!(with_memory(&bench, 8).audit().await.is_err());
    let next = Cursor::load(bench.coordinator.as_ref()).await.unwrap().unwrap().next;
    assert!(next > Place::start_of(ExtentId::new(2)) && next < Place::start_of(ExtentId::new(3)));
    *bench.index.between_pages.lock().unwrap() = None;
    *bench.index.fail_reads_of.lock().unwrap() = None;
    let report = with_memory(&bench, 8).audit().await.unwrap();
    assert!(report.resumed);
    assert_all_freed(&bench);
}

#[tokio::test(start_paused = true)]
async fn a_round_ends_although_extents_keep_coming() {
    let bench = six_extents();
    let (capacity, mut ids) = (Arc::clone(&bench.capacity), 101..1_000);
    *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |_| {
        if let Some(id) = ids.next() {
            capacity.add(id, Data, Sealed, 10);
        }
    }));
    let report = restarted(&bench).audit().await.unwrap();
    assert!(report.walks <= 6, "{} walks", report.walks);
    assert_eq!(report.extents, 6);
    assert_eq!(bench.capacity.live(101).len(), 10, "it belongs to the next round");
    *bench.index.between_pages.lock().unwrap() = None;
    restarted(&bench).audit().await.unwrap();
    assert!(bench.capacity.live(101).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_malformed_cursor_begins_a_round() {
    for value in [&b""[..], b"\x01", b"\x02\x05\x00\x06", b"\x01\x05\x00\x04"] {
        let bench = six_extents();
        let put = Op::Put(KEY.into(), bytes::Bytes::copy_from_slice(value));
        bench.coordinator.txn(&[], &[put]).await.unwrap();
        let report = with_memory(&bench, 1_000).audit().await.unwrap();
        assert_eq!((report.resumed, report.extents, report.walks), (false, 6, 1));
        assert!(!has_cursor(&bench).await);
        assert_all_freed(&bench);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_is_not_written_costs_repetition() {
    let faults = [Fault::Unavailable, Fault::AmbiguousLost, Fault::AmbiguousApplied];
    for fault in faults {
        let bench = six_extents();
        for _ in 0..20 {
            bench.store.inject(fault);
        }
        let report = restarted(&bench).audit().await.unwrap();
        assert_eq!(report.extents, 6, "{fault:?}");
        assert_all_freed(&bench);
        assert_eq!(bench.metrics.audits.get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_cursor_passed_does_not_hold_the_round() {
    let bench = six_extents();
    bench.capacity.poisoned_extents.lock().unwrap().insert(1);
    let mut read = bench.inflight.read(bench.env.clock.monotonic());
    read.names([ExtentId::new(2)]);
    let copy = bench.inflight.copy();
    copy.met([ExtentId::new(3)]);
    let report = restarted(&bench).audit().await.unwrap();
    let expected = AuditReport { extents: 3, poisoned: 1, read: 1, copied: 1, ..report };
    assert_eq!(report, expected);
    assert_eq!(audited(&bench), [4, 5, 6]);
    assert!(!has_cursor(&bench).await);
    drop((read, copy));
    bench.capacity.poisoned_extents.lock().unwrap().clear();
    restarted(&bench).audit().await.unwrap();
    assert_all_freed(&bench);
}

#[tokio::test(start_paused = true)]
async fn a_round_that_was_cut_off_is_soon_followed_by_a_whole_one() {
    let bench = six_extents();
    cut_off(&bench).await;
    let mut setup = bench.setup();
    setup.config.audit_ranges_max = 25;
    let ReclaimConfig { audit_delay, audit_soon, .. } = setup.config;
    drop(Reclaim::start(setup, true));
    bench.after(audit_delay + SECOND * 5).await;
    assert_eq!(bench.metrics.audits.get(), 1);
    bench.after(audit_soon + SECOND * 5).await;
    assert_eq!(bench.metrics.audits.get(), 2);
    bench.after(audit_soon * 10).await;
    assert_eq!(bench.metrics.audits.get(), 2, "the next one is not due for a day");
    bench.env.tasks.shutdown().await;
}
