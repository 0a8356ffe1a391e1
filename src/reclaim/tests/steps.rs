//! Each step, and what stops it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fakes::*;
use crate::capacity::ExtentKind::{Data, Log, Run};
use crate::capacity::ExtentState::{Open, Sealed};
use crate::index::api::*;
use crate::reclaim::Error;
use crate::reclaim::Reclaim;
use crate::reclaim::service::PassState;
use crate::types::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn garbage_that_nobody_reads_is_freed_at_once_and_forgotten() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Open, 30);
    for (n, name) in (0..).zip(["a", "d", "z"]) {
        bench.index.must(&put(name, &[location(1, n * 10, 9)]));
    }
    bench.index.must(&delete("a"));
    bench.index.must(&put("d", &[]));
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    assert!(reclaim.pass(&mut state).await);
    assert_eq!(bench.capacity.live(1), (20..30).collect::<Vec<_>>());
    assert_eq!(bench.index.rows(), 2);
    assert_eq!(bench.metrics.freed_bytes.get(), 18);
    assert!(!reclaim.pass(&mut state).await);
}

#[tokio::test(start_paused = true)]
async fn garbage_does_not_wait_for_a_clock_that_was_set_back() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 10);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.after(HOUR * 3).await;
    bench.index.must(&delete("a"));
    let back = bench.env.clock.now().minus(HOUR).unwrap();
    bench.clock.set_wall(back);
    bench.reclaim().pass(&mut PassState::default()).await;
    assert!(bench.capacity.live(1).is_empty());
    assert_eq!(bench.index.rows(), 0);
}

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

#[tokio::test(start_paused = true)]
async fn garbage_row_outlives_a_failed_free() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 10);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.index.must(&delete("a"));
    bench.after(HOUR).await;
    let reclaim = bench.reclaim();
    *bench.capacity.poisoned.lock().unwrap() = true;
    assert!(!reclaim.pass(&mut PassState::default()).await);
    assert_eq!(bench.index.rows(), 1);
    *bench.capacity.poisoned.lock().unwrap() = false;
    *bench.index.fail_writes_of.lock().unwrap() = Some(0);
    reclaim.pass(&mut PassState::default()).await;
    assert_eq!((bench.index.rows(), bench.capacity.live(1).len()), (1, 0));
    *bench.index.fail_writes_of.lock().unwrap() = None;
    reclaim.pass(&mut PassState::default()).await;
    assert_eq!(bench.index.rows(), 0);
}

#[tokio::test(start_paused = true)]
async fn garbage_and_audits_go_on_past_a_poisoned_disk() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 10);
    bench.capacity.add(2, Data, Sealed, 10);
    bench.capacity.add(3, Data, Sealed, 10);
    bench.capacity.add(4, Data, Sealed, 10);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.index.must(&put("b", &[location(2, 0, 9)]));
    bench.index.must(&delete("a"));
    bench.index.must(&delete("b"));
    bench.after(HOUR).await;
    bench.capacity.poisoned_extents.lock().unwrap().extend([1, 3]);
    let reclaim = bench.reclaim();
    assert!(reclaim.pass(&mut PassState::default()).await);
    assert_eq!((bench.capacity.live(1).len(), bench.capacity.live(2).len()), (10, 0));
    assert_eq!(bench.index.rows(), 1, "the row of the poisoned disk stays");
    assert_eq!((bench.metrics.garbage_rows.get(), bench.metrics.freed_bytes.get()), (1, 9));
    assert!(!reclaim.pass(&mut PassState::default()).await, "nothing more to do for now");
    // No row names what lies in 3 and 4.
    let report = reclaim.audit().await.unwrap();
    assert_eq!((bench.capacity.live(3).len(), bench.capacity.live(4).len()), (10, 0));
    assert_eq!(report.poisoned, 2);
    bench.capacity.poisoned_extents.lock().unwrap().clear();
    assert!(reclaim.pass(&mut PassState::default()).await);
    assert_eq!((bench.index.rows(), bench.capacity.live(1).len()), (0, 0));
    assert_eq!(reclaim.audit().await.unwrap().poisoned, 0);
    assert_eq!(bench.capacity.live(3).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_failing_partition_does_not_stop_the_others() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    for (n, name) in (0..).zip(["a", "z"]) {
        bench.index.must(&put(name, &[location(1, n * 10, 9)]));
        bench.index.must(&delete(name));
    }
    bench.after(HOUR).await;
    *bench.index.fail_reads_of.lock().unwrap() = Some(0);
    bench.reclaim().pass(&mut PassState::default()).await;
    assert_eq!(bench.capacity.live(1), (0..10).collect::<Vec<_>>());
}

/// A deletion after which the blob can be restored for a day.
fn delete_softly(name: &str) -> Write {
    let Write::DeleteBlob(mut delete) = delete(name) else { panic!("not a deletion") };
    delete.guard.protection.restorable_for = Some(HOUR * 24);
    Write::DeleteBlob(delete)
}

#[tokio::test(start_paused = true)]
async fn what_was_softly_deleted_goes_when_its_time_is_over() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    for (n, name) in (0..).zip(["a", "z"]) {
        bench.index.must(&put(name, &[location(1, n * 10, 9)]));
        bench.index.must(&delete_softly(name));
        bench.after(HOUR).await;
    }
    let (reclaim, mut state) = (bench.reclaim(), PassState::default());
    bench.after(HOUR * 21).await;
    reclaim.pass(&mut state).await;
    reclaim.audit().await.unwrap();
    assert_eq!((bench.metrics.ended_deletions.get(), bench.capacity.live(1).len()), (0, 20));
    bench.after(HOUR).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.metrics.ended_deletions.get(), 1);
    bench.after(HOUR).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.capacity.live(1), (10..20).collect::<Vec<_>>());
    bench.after(HOUR).await;
    reclaim.pass(&mut state).await;
    assert_eq!((bench.capacity.live(1).len(), bench.index.rows()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn staged_blocks_go_a_week_after_the_last() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 30);
    bench.index.must(&stage("a", "1", &[location(1, 0, 9)]));
    bench.index.must(&stage("z", "1", &[location(1, 10, 9)]));
    bench.after(HOUR * 24 * 6).await;
    bench.index.must(&stage("z", "2", &[location(1, 20, 9)]));
    bench.after(HOUR * 23).await;
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    reclaim.pass(&mut state).await;
    assert_eq!(bench.metrics.expired_blobs.get(), 0);
    bench.after(HOUR * 2).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.metrics.expired_blobs.get(), 1);
    bench.after(HOUR).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.capacity.live(1), (10..30).collect::<Vec<_>>());
    bench.after(HOUR * 24 * 6).await;
    reclaim.pass(&mut state).await;
    bench.after(HOUR).await;
    reclaim.pass(&mut state).await;
    assert_eq!((bench.capacity.live(1).len(), bench.index.rows()), (0, 0));
}

fn container() -> ContainerName {
    ContainerName::new("abc").unwrap()
}

pub(super) fn make_and_delete_container(bench: &Bench) {
    bench.index.must(&Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: container(),
        id: CONTAINER,
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    }));
    for n in 0..300 {
        let name = format!("{}{n}", if n % 2 == 0 { "a" } else { "p" });
        bench.index.must(&put(&name, &[location(1, n * 10, 9)]));
    }
    let guard = Guard::default();
    let delete = DeleteContainer {
        account: ACCOUNT,
        name: container(),
        guard,
        closed: None,
        restorable_for: None,
    };
    bench.index.must(&Write::DeleteContainer(delete));
}

#[tokio::test(start_paused = true)]
async fn deleted_container_is_purged_twice_then_forgotten() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 4_000);
    make_and_delete_container(&bench);
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    assert!(reclaim.pass(&mut state).await);
    assert!(bench.metrics.purge_writes.get() > 3, "in steps");
    // A put that had passed its check for the container lands late.
    bench.index.must(&put("late", &[location(1, 3_900, 9)]));
    bench.after(SECOND * 3).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.index.rows(), 2, "the late blob and the memory of the container");
    bench.after(HOUR).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.metrics.purged_containers.get(), 1);
    bench.after(SECOND * 3).await;
    reclaim.pass(&mut state).await;
    assert_eq!(bench.index.rows(), 0);
    assert_eq!(bench.capacity.live(1).len(), 4_000 - 301 * 10);
}

#[tokio::test(start_paused = true)]
async fn deleted_container_is_remembered_until_slow_uploads_have_landed() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 4_000);
    make_and_delete_container(&bench);
    // Its first bytes are still to come, so it has written to no extent.
    let request = bench.inflight.change();
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    reclaim.pass(&mut state).await;
    let _later = bench.inflight.change();
    for _ in 0..3 {
        bench.after(HOUR * 2).await;
        reclaim.pass(&mut state).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 0);
    // Its client leaves while the commit runs.
    let commit = bench.inflight.commit();
    drop(request);
    for _ in 0..3 {
        bench.after(HOUR).await;
        reclaim.pass(&mut state).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 0, "the commit may add a row");
    bench.index.must(&put("late", &[location(1, 3_900, 9)]));
    drop(commit);
    for _ in 0..3 {
        bench.after(SECOND * 20).await;
        reclaim.pass(&mut state).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 1);
    assert_eq!(bench.index.rows(), 0);
}

/// Its names lie in the last partition alone; another container's lie in all of them.
#[tokio::test(start_paused = true)]
async fn deleted_container_is_purged_although_a_partition_elsewhere_is_quarantined() {
    let bench = Bench::new();
    make_and_delete_container(&bench);
    let name = || ContainerName::new("other").unwrap();
    bench.index.must(&Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: name(),
        id: ContainerId::new(8),
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    }));
    let guard = Guard::default();
    let delete = DeleteContainer {
        account: ACCOUNT,
        name: name(),
        guard,
        closed: None,
        restorable_for: None,
    };
    bench.index.must(&Write::DeleteContainer(delete));
    *bench.index.quarantined.lock().unwrap() = Some(1);
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    for _ in 0..4 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 1, "the other container is gone");
    assert!(bench.metrics.passed_over.get() > 0);
    *bench.index.quarantined.lock().unwrap() = None;
    for _ in 0..4 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 2);
    assert_eq!(bench.index.rows(), 0);
}

#[tokio::test(start_paused = true)]
async fn purge_goes_on_where_its_budget_ended() {
    let bench = Bench::new();
    make_and_delete_container(&bench);
    let mut setup = bench.setup();
    setup.config.blobs_per_write = 10;
    setup.config.writes_per_pass = 7;
    let reclaim = Reclaim::new(setup);
    let mut state = PassState::default();
    let mut passes = 0;
    while bench.metrics.purge_writes.get() < 32 {
        reclaim.pass(&mut state).await;
        passes += 1;
        assert!(passes < 20, "no progress");
    }
    bench.after(HOUR * 2).await;
    for _ in 0..5 {
        reclaim.pass(&mut state).await;
        bench.after(SECOND * 3).await;
    }
    assert_eq!(bench.index.rows(), 0);
}

/// Bytes 0..100 of extent 1: blobs in all three partitions at 0, 20, 40; staged at 60; garbage at
/// 80; the rest is named by nothing.
fn fill_for_audit(bench: &Bench) {
    bench.capacity.add(1, Data, Sealed, 100);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.index.must(&put("d", &[location(1, 20, 9)]));
    bench.index.must(&put("z", &[location(1, 40, 9)]));
    bench.index.must(&stage("e", "1", &[location(1, 60, 9)]));
    bench.index.must(&put("f", &[location(1, 80, 9)]));
    bench.index.must(&delete("f"));
}

fn tens(starts: &[u64]) -> Vec<u64> {
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

#[tokio::test(start_paused = true)]
async fn service_works_by_itself_and_stops() {
    let bench = Bench::new();
    bench.capacity.add(21, Run, Sealed, 10);
    fill_for_audit(&bench);
    Reclaim::start(bench.setup());
    bench.after(SECOND * 100).await;
    assert_eq!(bench.capacity.live(1), tens(&[0, 20, 40, 60]));
    assert_eq!(bench.capacity.live(21).len(), 10, "a run that no record has is reported");
    assert_eq!(bench.metrics.orphaned_extents.get(), 1);
    assert_eq!(bench.metrics.audits.get(), 1);
    bench.env.tasks.shutdown().await;
}

/// When what is deleted at `deleted` is freed, if a pass begins that `slow` makes last half a
/// minute.
async fn freed_after_a_slow_pass(
    slow: impl Fn(&FakeIndex, Duration),
    deleted: Duration,
) -> Duration {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.index.must(&put("b", &[location(1, 10, 9)]));
    bench.index.must(&delete("a"));
    bench.after(SECOND * 3).await;
    slow(&bench.index, SECOND * 30);
    Reclaim::start(bench.setup());
    bench.after(SECOND * 2).await;
    slow(&bench.index, Duration::ZERO);
    let began = bench.env.clock.monotonic();
    bench.after(deleted).await;
    bench.index.must(&delete("b"));
    while !bench.capacity.live(1).is_empty() {
        bench.after(SECOND).await;
    }
    bench.env.clock.monotonic().saturating_sub(began)
}

#[tokio::test(start_paused = true)]
async fn a_pass_whose_writes_waited_is_not_followed_by_a_long_pause() {
    // As on a full disk.
    let writes = |index: &FakeIndex, slow| *index.slow_writes.lock().unwrap() = slow;
    let waited = freed_after_a_slow_pass(writes, SECOND).await;
    assert!(waited < SECOND * 45, "{waited:?}");
    // A disk that stalls looks like much garbage to walk over.
    let reads = |index: &FakeIndex, slow| *index.slow_reads.lock().unwrap() = slow;
    let waited = freed_after_a_slow_pass(reads, SECOND * 35).await;
    assert!((SECOND * 80..SECOND * 110).contains(&waited), "{waited:?}");
}
