//! Each step, and what stops it.

use std::time::Duration;

use super::audits::fill_for_audit;
use super::audits::tens;
use super::fakes::*;
use crate::capacity::ExtentKind::{Data, Run};
use crate::capacity::ExtentState::{Open, Sealed};
use crate::index::api::*;
use crate::reclaim::Reclaim;
use crate::reclaim::service::PassState;

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

#[tokio::test(start_paused = true)]
async fn service_works_by_itself_and_stops() {
    let bench = Bench::new();
    bench.capacity.add(21, Run, Sealed, 10);
    fill_for_audit(&bench);
    Reclaim::start(bench.setup(), true);
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
    Reclaim::start(bench.setup(), true);
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
