//! Tasks of reclaim that panic: they are started again and space is given back after all.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::fakes::*;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::Sealed;
use crate::env::Env;
use crate::env::clock::TrapClock;
use crate::reclaim::Reclaim;
use crate::telemetry::CapturedLog;

const HOUR: Duration = Duration::from_secs(3_600);

/// An extent with one blob; started with the next call that frees bound to panic.
fn trapped() -> Bench {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.capacity.trap.store(true, Ordering::Relaxed);
    drop(Reclaim::start(bench.setup(), true));
    bench
}

#[tokio::test(start_paused = true)]
async fn passes_that_panicked_go_on_and_free_the_garbage() {
    let bench = trapped();
    bench.index.must(&delete("a"));
    bench.after(HOUR).await;
    let health = bench.env.tasks.health();
    let (passes, audits) = (health.panics("reclaim passes"), health.panics("reclaim audits"));
    assert_eq!((passes + audits, health.stopped()), (1, Vec::new()));
    assert_eq!(bench.capacity.live(1).iter().filter(|byte| **byte < 10).count(), 0);
    assert_eq!(bench.index.rows(), 0, "nothing is left to do");
    bench.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn audits_that_panicked_go_on_and_free_what_no_row_names() {
    let bench = trapped();
    bench.after(24 * HOUR).await;
    let health = bench.env.tasks.health();
    assert_eq!(health.panics("reclaim audits"), 1);
    assert_eq!(bench.capacity.live(1), (0..10).collect::<Vec<u64>>());
    bench.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn watch_of_the_oldest_read_that_panicked_goes_on_and_warns() {
    let mut bench = Bench::new();
    let clock = Arc::new(TrapClock::new(Arc::clone(&bench.env.clock)));
    bench.env = Env { clock: Arc::clone(&clock) as _, ..bench.env };
    let setup = bench.setup();
    let (watch, warn_after) = (setup.config.read_watch, setup.config.read_warn_after);
    let log = CapturedLog::default();
    let _kept = log.begin();
    clock.trap(watch);
    drop(Reclaim::start(setup, true));
    let _stalled = bench.inflight.read(bench.env.clock.monotonic());
    bench.after(watch * 4).await;
    let health = bench.env.tasks.health();
    assert_eq!((health.panics("oldest read"), health.stopped()), (1, Vec::new()));
    for parts in [["ERROR", "a task panicked"], ["WARN", "started again"]] {
        assert_eq!(log.lines_with(&[&parts[..], &["oldest read"]].concat()), 1, "{parts:?}");
    }
    assert!(bench.metrics.oldest_read_seconds.get() > 0);
    assert_eq!(bench.metrics.long_reads.get(), 0);
    bench.after(warn_after).await;
    assert_eq!(bench.metrics.long_reads.get(), 1);
    bench.env.tasks.shutdown().await;
}
