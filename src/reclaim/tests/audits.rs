//! What an audit frees, what it reports, and when it frees nothing.

use std::collections::BTreeSet;

use super::fakes::*;
use crate::capacity::ExtentKind::{Data, Log, Run};
use crate::capacity::ExtentState::{Open, Sealed};
use crate::reclaim::Error;
use crate::reclaim::Reclaim;
use crate::types::*;

#[tokio::test(start_paused = true)]
async fn audit_gives_up_on_a_copy_that_never_tells_and_frees_nothing() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    let copy = bench.inflight.copy();
    let reclaim = bench.reclaim();
    assert!(matches!(reclaim.audit().await, Err(Error::Held { .. })));
    assert_eq!(bench.capacity.live(1).len(), 20);
    drop(copy);
    reclaim.audit().await.unwrap();
    assert!(bench.capacity.live(1).is_empty());
}

/// Bytes 0..100 of extent 1: blobs in all three partitions at 0, 20, 40; staged at 60; garbage at
/// 80; the rest is named by nothing.
pub(super) fn fill_for_audit(bench: &Bench) {
    bench.capacity.add(1, Data, Sealed, 100);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.index.must(&put("d", &[location(1, 20, 9)]));
    bench.index.must(&put("z", &[location(1, 40, 9)]));
    bench.index.must(&stage("e", "1", &[location(1, 60, 9)]));
    bench.index.must(&put("f", &[location(1, 80, 9)]));
    bench.index.must(&delete("f"));
}

pub(super) fn tens(starts: &[u64]) -> Vec<u64> {
    starts.iter().flat_map(|start| *start..start + 10).collect()
}

#[tokio::test(start_paused = true)]
async fn audit_frees_exactly_what_no_row_names() {
    let bench = Bench::new();
    fill_for_audit(&bench);
    bench.capacity.add(2, Data, Sealed, 50);
    bench.capacity.add(3, Data, Open, 50);
    let report = bench.reclaim().audit().await.unwrap();
    assert_eq!((report.extents, report.walks), (2, 1));
    assert_eq!(bench.capacity.live(1), tens(&[0, 20, 40, 60, 80]));
    assert!(bench.capacity.live(2).is_empty());
    assert_eq!(bench.capacity.live(3).len(), 50);
}

#[tokio::test(start_paused = true)]
async fn audit_leaves_extents_of_running_writes() {
    let bench = Bench::new();
    fill_for_audit(&bench);
    let write = bench.inflight.write(ExtentId::new(1));
    let reclaim = bench.reclaim();
    assert_eq!(reclaim.audit().await.unwrap().extents, 0);
    assert_eq!(bench.capacity.live(1).len(), 100);
    drop(write);
    assert_eq!(reclaim.audit().await.unwrap().extents, 1);
    assert_eq!(bench.capacity.live(1).len(), 50);
}

#[tokio::test(start_paused = true)]
async fn audit_frees_nothing_when_a_partition_cannot_be_read() {
    for number in 0..3 {
        let bench = Bench::new();
        fill_for_audit(&bench);
        *bench.index.fail_reads_of.lock().unwrap() = Some(number);
        let result = bench.reclaim().audit().await;
        assert!(matches!(result, Err(Error::Index(_))));
        assert_eq!(bench.capacity.live(1).len(), 100);
        assert_eq!(bench.metrics.audits_failed.get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn audit_frees_nothing_when_a_partition_cannot_commit() {
    for number in 0..3 {
        let bench = Bench::new();
        fill_for_audit(&bench);
        *bench.index.fail_writes_of.lock().unwrap() = Some(number);
        let result = bench.reclaim().audit().await;
        assert!(matches!(result, Err(Error::Index(_))));
        assert_eq!(bench.capacity.live(1).len(), 100);
    }
}

#[tokio::test(start_paused = true)]
async fn audit_survives_a_change_of_the_map() {
    let bench = Bench::new();
    fill_for_audit(&bench);
    let index = bench.index.clone();
    let mut pages = 0;
    *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |_| {
        pages += 1;
        if pages % 2 == 0 {
            *index.epoch.lock().unwrap() += 1;
        }
    }));
    bench.reclaim().audit().await.unwrap();
    assert_eq!(bench.capacity.live(1), tens(&[0, 20, 40, 60, 80]));
}

#[tokio::test(start_paused = true)]
async fn audit_in_little_memory_takes_more_walks() {
    let bench = Bench::new();
    for extent in 1..=6 {
        bench.capacity.add(extent, Data, Sealed, 200);
        for n in 0..10 {
            bench.index.must(&put(&format!("{n}/{extent}"), &[location(extent, n * 20, 9)]));
        }
    }
    let mut setup = bench.setup();
    setup.config.audit_ranges_max = 25;
    let report = Reclaim::new(setup).audit().await.unwrap();
    assert!(report.walks >= 3, "{} walks", report.walks);
    assert_eq!(report.extents, 6);
    for extent in 1..=6 {
        let starts: Vec<u64> = (0..10).map(|n| n * 20).collect();
        assert_eq!(bench.capacity.live(extent), tens(&starts));
    }
}

#[tokio::test(start_paused = true)]
async fn audit_reports_logs_and_runs_that_no_record_has_and_removes_none() {
    let bench = Bench::new();
    // 20 is a run served here, 21 one of another process, 22 and 23 are in no record, and 24 is
    // gone.
    for (id, kind) in [(1_000, Log), (20, Run), (21, Run), (22, Log), (23, Run)] {
        bench.capacity.add(id, kind, Sealed, 10);
    }
    let ids = |ids: &[u64]| -> BTreeSet<_> { ids.iter().copied().map(ExtentId::new).collect() };
    *bench.index.owned.lock().unwrap() = [20, 24, 1_000].map(ExtentId::new).into();
    *bench.index.recorded.lock().unwrap() = ids(&[20, 21, 24, 1_000]);
    let report = bench.reclaim().audit().await.unwrap();
    assert_eq!((report.orphaned, report.missing), (2, 1));
    assert_eq!(bench.metrics.orphaned_extents.get(), 2);
    assert_eq!(bench.metrics.missing_extents.get(), 1);
    let left: BTreeSet<ExtentId> = bench.capacity.extents.lock().unwrap().keys().copied().collect();
    assert_eq!(left, ids(&[20, 21, 22, 23, 1_000]));
}

/// A damaged first page shows a log or a run as data, and no record may have it.
#[tokio::test(start_paused = true)]
async fn audit_frees_nothing_of_what_a_partition_uses_whatever_it_looks_like() {
    let bench = Bench::new();
    for id in [20, 21, 1_000] {
        bench.capacity.add(id, Data, Sealed, 40);
    }
    *bench.index.owned.lock().unwrap() = [20].map(ExtentId::new).into();
    bench.reclaim().audit().await.unwrap();
    let left = [20, 21, 1_000].map(|id| bench.capacity.live(id).len());
    assert_eq!(left, [40, 0, 40]);
}
