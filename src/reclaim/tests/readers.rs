//! What running reads hold, and what they do not.

use std::time::Duration;

use futures_util::FutureExt;
use uuid::Uuid;

use super::fakes::*;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::Sealed;
use crate::index::inflight::ReadNote;
use crate::reclaim::Error;
use crate::reclaim::readers;
use crate::reclaim::readers::LastWarning;
use crate::reclaim::service::PassState;
use crate::telemetry::CapturedLog;
use crate::types::ExtentId;
use crate::types::request;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// What is logged of a read that runs for long.
const WARNING: &str =
    "a read has been running for long; no space of its extents is freed until it ends";

const ONE: ExtentId = ExtentId::new(1);

fn read(bench: &Bench) -> ReadNote {
    bench.inflight.read(bench.env.clock.monotonic())
}

/// A blob in each of two extents.
fn two_extents() -> Bench {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 10);
    bench.capacity.add(2, Data, Sealed, 10);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.index.must(&put("z", &[location(2, 0, 9)]));
    bench
}

#[tokio::test(start_paused = true)]
async fn stalled_read_holds_the_garbage_of_its_extents_alone() {
    let bench = two_extents();
    let mut stalled = read(&bench);
    stalled.names([ONE]);
    bench.index.must(&delete("a"));
    bench.index.must(&delete("z"));
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    for _ in 0..3 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR).await;
    }
    assert_eq!((bench.capacity.live(1).len(), bench.capacity.live(2).len()), (10, 0));
    assert_eq!(bench.metrics.held_bytes.get(), 9);
    drop(stalled);
    reclaim.pass(&mut state).await;
    assert!(bench.capacity.live(1).is_empty());
    assert_eq!(bench.metrics.held_bytes.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn read_that_looks_up_holds_all_garbage_until_it_tells() {
    let bench = two_extents();
    let mut looking_up = read(&bench);
    bench.index.must(&delete("a"));
    bench.index.must(&delete("z"));
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    assert!(reclaim.pass(&mut state).await, "it is worth another look soon");
    assert_eq!((bench.capacity.live(1).len(), bench.capacity.live(2).len()), (10, 10));
    looking_up.names([ONE]);
    reclaim.pass(&mut state).await;
    assert_eq!((bench.capacity.live(1).len(), bench.capacity.live(2).len()), (10, 0));
}

/// The row of what it reads was evaluated before it began, and became visible after its look-up.
#[tokio::test(start_paused = true)]
async fn read_that_began_while_a_slow_commit_ran_holds_what_that_dropped() {
    let bench = two_extents();
    let evaluated = bench.env.clock.now();
    bench.after(SECOND * 3).await;
    let mut during = read(&bench);
    during.names([ONE]);
    bench.after(SECOND * 3).await;
    bench.clock.set_wall(evaluated);
    bench.index.must(&delete("a"));
    bench.clock.set_wall(evaluated.plus(SECOND * 6));
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    for _ in 0..3 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR).await;
    }
    assert_eq!(bench.capacity.live(1).len(), 10, "the read needs them");
    drop(during);
    reclaim.pass(&mut state).await;
    assert!(bench.capacity.live(1).is_empty());
}

/// At every moment some read of the extent runs, but none for ever.
#[tokio::test(start_paused = true)]
async fn reads_that_overlap_without_end_do_not_keep_garbage() {
    let bench = two_extents();
    let next = || {
        let mut next = read(&bench);
        next.names([ONE]);
        next
    };
    let mut running = next();
    bench.index.must(&delete("a"));
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    reclaim.pass(&mut state).await;
    assert_eq!(bench.capacity.live(1).len(), 10);
    for _ in 0..3 {
        let later = next();
        drop(std::mem::replace(&mut running, later));
        reclaim.pass(&mut state).await;
    }
    assert!(bench.capacity.live(1).is_empty(), "reads noted after it was met do not count");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn audit_frees_all_but_what_a_stalled_read_names() {
    let bench = two_extents();
    for extent in [1, 2] {
        bench.capacity.add(extent, Data, Sealed, 20);
    }
    let mut stalled = read(&bench);
    stalled.names([ONE]);
    let reclaim = bench.reclaim();
    let before = bench.env.clock.monotonic();
    let report = reclaim.audit().await.unwrap();
    let waited = bench.env.clock.monotonic() - before;
    assert!(waited < SECOND * 70, "{waited:?}");
    assert_eq!((report.extents, report.read), (1, 1));
    assert_eq!((bench.capacity.live(1).len(), bench.capacity.live(2).len()), (20, 10));
    assert_eq!((bench.metrics.audits.get(), bench.metrics.read_extents.get()), (1, 1));
    drop(stalled);
    assert_eq!(reclaim.audit().await.unwrap().read, 0);
    assert_eq!(bench.capacity.live(1).len(), 10);
}

#[tokio::test(start_paused = true)]
async fn audit_frees_an_extent_as_soon_as_its_read_ends() {
    let bench = two_extents();
    bench.capacity.add(1, Data, Sealed, 20);
    let mut slow = read(&bench);
    slow.names([ONE]);
    let reclaim = bench.reclaim();
    let audit = bench.env.tasks.spawn("audit", async move { reclaim.audit().await });
    bench.after(SECOND * 10).await;
    assert!(!audit.is_finished());
    // One that began after the walk finds what the walk met.
    let mut later = read(&bench);
    later.names([ONE]);
    drop(slow);
    assert_eq!(audit.await.unwrap().unwrap().extents, 2);
    assert_eq!(bench.capacity.live(1).len(), 10);
}

#[tokio::test(start_paused = true)]
async fn audit_gives_up_on_a_look_up_without_end_and_frees_nothing() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 20);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    let looking_up = read(&bench);
    let reclaim = bench.reclaim();
    let before = bench.env.clock.monotonic();
    let held = reclaim.audit().await;
    assert!(matches!(held, Err(Error::Held { .. })), "{held:?}");
    let waited = bench.env.clock.monotonic() - before;
    assert!(waited >= HOUR && waited < HOUR + SECOND * 10, "{waited:?}");
    assert_eq!(bench.capacity.live(1).len(), 20);
    assert_eq!((bench.metrics.audits_held.get(), bench.metrics.audits_failed.get()), (1, 1));
    drop(looking_up);
    reclaim.audit().await.unwrap();
    assert_eq!(bench.capacity.live(1), (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn layer_in_the_making_is_not_buried_while_it_takes_its_time() {
    let bench = Bench::new();
    let blob = crate::types::RoutingKey::blob(&key("p"));
    let making = bench.inflight.layer(blob.clone());
    let fill = crate::index::FillLayer { blob, layer: None, spans: Vec::new() };
    bench.index.must(&crate::index::Write::FillLayer(fill));
    let reclaim = bench.reclaim();
    let mut state = PassState::default();
    for _ in 0..3 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR).await;
    }
    assert_eq!(bench.index.rows(), 1, "the copy names it in the end");
    drop(making);
    reclaim.pass(&mut state).await;
    assert_eq!(bench.index.rows(), 0);
}

#[tokio::test(start_paused = true)]
async fn age_of_the_oldest_read_is_shown_and_warned_about_once_in_a_while() {
    let bench = Bench::new();
    let reclaim = bench.reclaim();
    let mut warned = LastWarning::default();
    let log = CapturedLog::default();
    let _kept = log.begin();
    let first = read(&bench);
    let mut warnings = || {
        readers::watch(&reclaim, &mut warned).now_or_never().unwrap();
        bench.metrics.long_reads.get()
    };
    bench.after(SECOND * 299).await;
    assert_eq!((warnings(), bench.metrics.oldest_read_seconds.get()), (0, 299));
    bench.after(SECOND * 2).await;
    assert_eq!((warnings(), warnings()), (1, 1));
    let second = read(&bench);
    bench.after(SECOND * 300).await;
    assert_eq!(warnings(), 2);
    drop(first);
    assert_eq!((warnings(), bench.metrics.oldest_read_seconds.get()), (3, 300));
    drop(second);
    assert_eq!((warnings(), bench.metrics.oldest_read_seconds.get()), (3, 0));
    for seconds in [301, 601, 300] {
        let warning = format!("{WARNING} seconds={seconds} read=\"a read in one step\"");
        assert_eq!(log.lines_with(&["WARN", &warning]), 1, "{seconds}: {}", log.text());
    }
    assert_eq!(log.lines_with(&["WARN"]), 3, "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn warning_names_the_read_and_its_request() {
    let bench = Bench::new();
    let reclaim = bench.reclaim();
    let log = CapturedLog::default();
    let _kept = log.begin();
    let id = Uuid::from_u128(7);
    let note = {
        let _entered = request::enter(Some(id));
        read(&bench)
    };
    note.describe("Get Blob photos/cat".to_owned());
    bench.after(SECOND * 301).await;
    readers::watch(&reclaim, &mut LastWarning::default()).await;
    drop(note);
    let warning = format!("{WARNING} seconds=301 read=\"Get Blob photos/cat\" request={id}");
    assert_eq!(log.lines_with(&["WARN", &warning]), 1, "{}", log.text());
}
