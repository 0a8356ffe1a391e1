//! Each test breaks an invariant and checks that the disk is poisoned.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::capacity::AppendRequest;
use crate::capacity::Appended;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::Damages;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::capacity::disk::open::open_all;
use crate::capacity::disk::opening::Opening;
use crate::capacity::extent::header::NewExtent;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::env::disk_sim::SimDisk;
use crate::env::rand::SeededRand;
use crate::telemetry::CapturedLog;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

const ID: ExtentId = ExtentId::new(1);
const ONE: Epoch = Epoch::new(1);
/// An append of this length goes directly to the file.
const LARGE: usize = 50_000;

/// A disk whose journal does not run, and an extent on it. The test violates `invariant`.
async fn disk_that_breaks(invariant: &'static str) -> (Arc<Store>, Arc<Extent>) {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    let (damages, stop) = (Damages::default(), CancellationToken::new());
    let opening = Opening { env, config, metrics, damages, stop };
    let disk = SimDisk::new(1, 64 << 20).disk();
    let store = open_all(vec![disk], &opening).await.unwrap().remove(0).unwrap().store;
    store.health.tasks.expect_violation(invariant);
    let new = NewExtent { extent: ID, kind: ExtentKind::Data, epoch: ONE, incomplete: false };
    let extent = store.create(new).await.unwrap();
    (store, extent)
}

fn request(offset: u64, len: usize) -> AppendRequest {
    AppendRequest {
        extent: ID,
        epoch: ONE,
        offset: ExtentOffset::new(offset),
        payloads: vec![vec![Bytes::from(vec![7; len])]],
        durability: Durability::Durable,
    }
}

async fn large(store: &Arc<Store>, extent: &Arc<Extent>) -> Appended {
    store.append(extent, request(0, LARGE)).await.unwrap()
}

fn assert_stopped<T>(store: &Store, done: &Result<T, Error>, log: &CapturedLog, invariant: &str) {
    assert!(matches!(done, Err(Error::Poisoned { disk: 0 })), "the caller got another result");
    assert!(store.health.poisoned(), "the disk takes writes");
    let named = format!("invariant=\"{invariant}\"");
    assert_eq!(log.lines_with(&["ERROR", &named, "disk=0"]), 1, "{}", log.text());
    let counted = store.health.tasks.violations();
    let begins = format!("invariant {invariant} is violated: disk 0: ");
    assert!(counted.len() == 1 && counted[0].starts_with(&begins), "{counted:?}");
}

#[tokio::test(start_paused = true)]
async fn sync_of_bytes_that_were_not_written_breaks_i1() {
    let (store, extent) = disk_that_breaks("I1").await;
    let log = CapturedLog::default();
    let _kept = log.begin();
    large(&store, &extent).await;
    // As if an append had moved the end without writing its bytes.
    let end = extent.state().end;
    extent.state().end = end + 4096;
    let done = store.flush(&extent, ONE).await;
    assert_stopped(&store, &done, &log, "I1");
}

#[tokio::test(start_paused = true)]
async fn acknowledgement_before_the_sync_of_its_bytes_breaks_i1() {
    let (store, extent) = disk_that_breaks("I1").await;
    let log = CapturedLog::default();
    let _kept = log.begin();
    let end = large(&store, &extent).await.end;
    // As if the sync had been omitted.
    extent.state().synced = ExtentOffset::START;
    let done = store.assert_synced(&extent, end);
    assert_stopped(&store, &done, &log, "I1");
}

#[tokio::test(start_paused = true)]
async fn acknowledgement_before_the_sync_of_its_journal_batch_breaks_i1() {
    let (store, extent) = disk_that_breaks("I1").await;
    let log = CapturedLog::default();
    let _kept = log.begin();
    let (on, to) = (Arc::clone(&store), Arc::clone(&extent));
    let append =
        store.env.tasks.spawn("append", async move { on.append(&to, request(0, 100)).await });
    while store.journal.acknowledge_early() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let done = append.await.unwrap();
    assert_stopped(&store, &done, &log, "I1");
}

#[tokio::test(start_paused = true)]
async fn extent_that_changes_under_the_lock_of_an_append_breaks_i2() {
    for fenced in [true, false] {
        let (store, extent) = disk_that_breaks("I2").await;
        let log = CapturedLog::default();
        let _kept = log.begin();
        let end = large(&store, &extent).await.end;
        extent.state().synced = ExtentOffset::START;
        // The append holds the change lock and waits for a sync.
        let syncing = extent.syncing.lock().await;
        let (on, to, small) = (Arc::clone(&store), Arc::clone(&extent), request(end.get(), 100));
        let append = store.env.tasks.spawn("append", async move { on.append(&to, small).await });
        while extent.changing.try_lock().is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        // As if a fence or a seal had not waited for the change lock.
        match fenced {
            true => extent.state().slot.epoch = Epoch::new(2),
            false => extent.state().slot.sealed = true,
        }
        drop(syncing);
        let done = append.await.unwrap();
        assert_stopped(&store, &done, &log, "I2");
    }
}

#[tokio::test(start_paused = true)]
async fn seal_before_the_end_of_acknowledged_bytes_breaks_i4() {
    let (store, extent) = disk_that_breaks("I4").await;
    let log = CapturedLog::default();
    let _kept = log.begin();
    let end = large(&store, &extent).await.end;
    assert_eq!(extent.state().acknowledged, end);
    // As if an append were missing from the state in memory.
    extent.state().end = ExtentOffset::START;
    let done = store.seal(&extent, ONE).await;
    assert_stopped(&store, &done, &log, "I4");
}

#[tokio::test(start_paused = true)]
async fn copy_that_would_end_elsewhere_breaks_i3() {
    let (store, extent) = disk_that_breaks("I3").await;
    let (to, _) = disk_that_breaks("I3").await;
    large(&store, &extent).await;
    store.seal(&extent, ONE).await.unwrap();
    let log = CapturedLog::default();
    let _kept = log.begin();
    let end = extent.state().end;
    extent.state().end = end + 1;
    let done = store.copy_whole_to(&extent, &to).await;
    assert_stopped(&store, &done, &log, "I3");
    assert!(!to.health.poisoned(), "the other disk is not to blame");
}
