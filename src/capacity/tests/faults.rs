//! Faults that the simulation found, each reduced to the calls that reproduce it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Builder;

use super::node::ONE;
use super::payload;
use crate::capacity::disk::store::path_of;
use crate::capacity::*;
use crate::env::clock::SimClock;
use crate::env::disk_sim::Fault;
use crate::env::disk_sim::SimDisk;
use crate::env::rand::SeededRand;
use crate::env::{Disk, Env, Tasks};
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

const DISK_BYTES: u64 = 64 << 20;

pub(in crate::capacity) fn run<F: Future>(work: F) -> F::Output {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(work)
}

pub(in crate::capacity) async fn open(disks: Vec<Arc<dyn Disk>>) -> Arc<CapacityNode> {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    CapacityNode::open(disks, env, config, metrics).await.unwrap()
}

pub(in crate::capacity) async fn append(
    node: &CapacityNode,
    extent: ExtentId,
    offset: u64,
    payloads: &[Bytes],
) -> Result<Appended, Error> {
    let payloads = payloads.iter().map(|bytes| vec![bytes.clone()]).collect();
    let durability = Durability::Durable;
    node.append(AppendRequest {
        extent,
        epoch: ONE,
        offset: ExtentOffset::new(offset),
        payloads,
        durability,
    })
    .await
}

/// A start must not trust a seal whose sync failed: the punching of freed frames relies on the
/// seal.
#[test]
fn seal_whose_sync_failed_is_not_relied_on_by_the_next_start() {
    let extent = ExtentId::new(5);
    let stored = [payload(1, 40_000), payload(2, 40_000)];
    let mut failed_seals = 0;
    for (seed, skip) in (0..40).flat_map(|seed| (0..4).map(move |skip| (seed, skip))) {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let node = open(vec![sim.disk()]).await;
            node.create(extent, ExtentKind::Data, ONE).await.unwrap();
            let locations = append(&node, extent, 0, &stored).await.unwrap().locations;
            sim.fail_once(Fault::SyncError, skip);
            failed_seals += u64::from(node.seal(extent, ONE).await.is_err());
            drop(node);

            let node = open(vec![sim.restart_after_kill()]).await;
            node.free(&locations[..1]).await.unwrap();
            drop(node);

            let node = open(vec![sim.restart_after_power_cut()]).await;
            let read = node.read(&locations[1], 0..locations[1].len.get()).await;
            let read = read.unwrap_or_else(|error| panic!("seed {seed}, sync {skip}: {error}"));
            assert_eq!(read.concat(), stored[1]);
        });
    }
    assert!(failed_seals >= 40, "only {failed_seals} seals failed");
}

/// Of an extent and a file that its failed creation left on another disk, the one with the higher
/// epoch is kept.
#[test]
fn fenced_empty_extent_is_kept_and_not_the_rest_of_its_creation() {
    let fence = Epoch::new(3);
    let mut kept = 0;
    for (seed, failing) in (0..8).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        run(async {
            let sims = [SimDisk::new(2 * seed, DISK_BYTES), SimDisk::new(2 * seed + 1, DISK_BYTES)];
            let node = open(sims.iter().map(SimDisk::disk).collect()).await;
            // The sync after that of the header: the sync of the folder.
            sims[failing].fail_once(Fault::SyncError, 1);
            let mut created = ExtentId::new(0);
            while sims[failing].faults_left() > 0 {
                created = ExtentId::new(created.get() + 1);
                node.create(created, ExtentKind::Log, ONE).await.unwrap();
            }
            node.fence(created, fence).await.unwrap();
            drop(node);

            let disks: Vec<_> = sims.iter().map(SimDisk::restart_after_kill).collect();
            let node = open(disks).await;
            let infos = node.extents().await;
            let info = infos.iter().find(|info| info.extent == created).unwrap();
            assert_eq!((info.epoch, info.disk), (fence, 1 - failing), "seed {seed}");
            kept += 1;
        });
    }
    assert_eq!(kept, 16);
}

/// A log whose fence met a poisoned disk never grows. The new owner of the log relies on this.
#[test]
fn log_whose_fence_met_a_poisoned_disk_takes_no_append_and_is_sealed_by_the_next_start() {
    let log = ExtentId::new(1);
    // The write that fails is that of the fence itself, or an earlier one.
    for (seed, earlier) in (0..8).flat_map(|seed| [(seed, false), (seed, true)]) {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let node = open(vec![sim.disk()]).await;
            node.create(log, ExtentKind::Log, ONE).await.unwrap();
            let end = append(&node, log, 0, &[payload(1, 3000)]).await.unwrap().end;
            sim.fail_once(Fault::WriteError, 0);
            if earlier {
                let failed = node.create(ExtentId::new(2), ExtentKind::Log, ONE).await;
                assert!(matches!(failed, Err(Error::Poisoned { disk: 0 })), "{failed:?}");
            }
            let fenced = node.fence(log, Epoch::new(3)).await;
            assert!(matches!(fenced, Err(Error::Poisoned { disk: 0 })), "{fenced:?}");
            let late = append(&node, log, end.get(), &[payload(2, 100)]).await;
            assert!(matches!(late, Err(Error::Poisoned { disk: 0 })), "seed {seed}: {late:?}");
            drop(node);

            let node = open(vec![sim.restart_after_kill()]).await;
            let infos = node.extents().await;
            let info = infos.iter().find(|info| info.extent == log).unwrap();
            assert_eq!((info.state, info.len), (ExtentState::Sealed, end.get()), "seed {seed}");
        });
    }
}

/// Opening a file may close another one. On a poisoned disk its last slot may not be durable and
/// cannot be synced.
#[test]
fn poisoned_disk_serves_reads_of_more_extents_than_may_have_open_files() {
    const EXTENTS: u64 = 8;
    for seed in 0..10 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let node = open(vec![sim.disk()]).await;
            let mut stored = Vec::new();
            let mut ends = vec![0; 8];
            for extent in 1..=EXTENTS {
                node.create(ExtentId::new(extent), ExtentKind::Log, ONE).await.unwrap();
            }
            // Several times what the journal holds, so that checkpoints note how far the extents
            // are durable.
            for round in 0..40 {
                for (extent, end) in (1..=EXTENTS).zip(&mut ends) {
                    let bytes = payload(round * EXTENTS + extent, 3000);
                    let one = std::slice::from_ref(&bytes);
                    let appended = append(&node, ExtentId::new(extent), *end, one).await.unwrap();
                    *end = appended.end.get();
                    stored.push((appended.locations[0], bytes));
                }
            }
            // The error may hit another write than the append; then the next append fails.
            sim.fail_once(Fault::WriteError, 0);
            let late = loop {
                match append(&node, ExtentId::new(1), ends[0], &[payload(0, 100)]).await {
                    Ok(appended) => ends[0] = appended.end.get(),
                    Err(error) => break error,
                }
            };
            assert!(matches!(late, Error::Poisoned { disk: 0 }), "{late:?}");
            for (location, bytes) in &stored {
                let read = node.read(location, 0..location.len.get()).await;
                let read = read.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                assert_eq!(read.concat(), *bytes);
            }
            let late = node.create(ExtentId::new(100), ExtentKind::Log, ONE).await;
            assert!(matches!(late, Err(Error::Poisoned { disk: 0 })), "{late:?}");
        });
    }
}

/// A file that another program removed must not stop checkpoints silently: the ring would fill up,
/// and appends would wait forever.
#[test]
fn removed_file_of_an_open_extent_poisons_the_disk() {
    const EXTENTS: u64 = 8;
    for seed in 0..4 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let node = open(vec![sim.disk()]).await;
            for extent in 1..=EXTENTS {
                node.create(ExtentId::new(extent), ExtentKind::Log, ONE).await.unwrap();
            }
            let gone = ExtentId::new(1);
            append(&node, gone, 0, &[payload(1, 100)]).await.unwrap();
            // More files than may be open, so that its own is closed.
            let mut ends = vec![0; 8];
            let write = async {
                sim.disk().remove(&path_of(gone)).await.unwrap();
                loop {
                    for (extent, end) in (2..=EXTENTS).zip(&mut ends) {
                        let bytes = payload(extent, 5_000);
                        match append(&node, ExtentId::new(extent), *end, &[bytes]).await {
                            Ok(appended) => *end = appended.end.get(),
                            Err(error) => return error,
                        }
                    }
                }
            };
            let limit = Duration::from_secs(60);
            let error = tokio::time::timeout(limit, write).await.expect("appends hang");
            assert!(matches!(error, Error::Poisoned { .. }), "{error}");
            node.shutdown().await;
        });
    }
}

/// An extent that was not compacted on a full disk is compacted when there is space, even without a
/// further free.
#[test]
fn sparse_extent_is_compacted_when_a_full_disk_has_space_again() {
    run(async {
        let sim = SimDisk::new(1, DISK_BYTES);
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
        let node =
            CapacityNode::open(vec![sim.disk()], env, config, metrics.clone()).await.unwrap();
        let extent = ExtentId::new(1);
        node.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let payloads: Vec<Bytes> = (0..100).map(|seed| payload(seed, 1_000)).collect();
        let locations = append(&node, extent, 0, &payloads).await.unwrap().locations;
        node.seal(extent, ONE).await.unwrap();
        sim.set_capacity(0);
        // Most of the others: each page keeps a live frame.
        let freed: Vec<Location> =
            locations.iter().enumerate().filter(|(n, _)| n % 4 > 0).map(|(_, l)| *l).collect();
        node.free(&freed).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(metrics.compactions.get(), 0, "there is no space");
        sim.set_capacity(DISK_BYTES);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(metrics.compactions.get(), 1);
    });
}

/// Space that a seal gives back stays given back after a power failure. The extent is in the
/// catalog, so no later start would examine its file.
#[test]
fn space_behind_a_sealed_extent_stays_given_back_after_a_power_cut() {
    let extent = ExtentId::new(1);
    // One page for the header, one for the frame.
    let sealed_bytes = 2 * 4096;
    let len = async |disk: &Arc<dyn Disk>| {
        disk.open(&path_of(extent)).await.unwrap().len().await.unwrap()
    };
    for seed in 0..10 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let node = open(vec![sim.disk()]).await;
            node.create(extent, ExtentKind::Run, ONE).await.unwrap();
            append(&node, extent, 0, &[payload(1, 500)]).await.unwrap();
            assert!(len(&sim.disk()).await > sealed_bytes, "nothing was reserved");
            node.seal(extent, ONE).await.unwrap();
            drop(node);
            let disk = sim.restart_after_power_cut();
            assert_eq!(len(&disk).await, sealed_bytes, "seed {seed}: by the seal");

            // As an earlier release left it.
            let file = disk.open(&path_of(extent)).await.unwrap();
            file.set_len(100_000).await.unwrap();
            file.sync().await.unwrap();
            drop(open(vec![disk]).await);
            let disk = sim.restart_after_power_cut();
            assert_eq!(len(&disk).await, sealed_bytes, "seed {seed}: by the start");
        });
    }
}
