//! Several disks: a fault of one does not affect the others.

use std::sync::Arc;

use tokio::runtime::Builder;

use super::node::ONE;
use super::payload;
use crate::capacity::*;
use crate::env::clock::SimClock;
use crate::env::disk_sim::{Fault, SimDisk};
use crate::env::rand::SeededRand;
use crate::env::{Disk, Env, Tasks};
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

const DISK_BYTES: u64 = 64 << 20;

pub(super) fn run<F: Future>(work: F) -> F::Output {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(work)
}

pub(super) fn env(seed: u64) -> Env {
    Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(seed)),
        tasks: Tasks::new(),
    }
}

pub(super) async fn open(disks: Vec<Arc<dyn Disk>>) -> Result<Arc<CapacityNode>, OpenError> {
    CapacityNode::open(disks, env(1), CapacityConfig::small(), CapacityMetrics::default()).await
}

pub(super) async fn store(
    node: &CapacityNode,
    extent: ExtentId,
    len: u64,
) -> Result<Location, Error> {
    node.create(extent, ExtentKind::Data, ONE).await?;
    let payloads = vec![vec![payload(extent.get(), len)]];
    let durability = Durability::Durable;
    let request =
        AppendRequest { extent, epoch: ONE, offset: ExtentOffset::START, payloads, durability };
    Ok(node.append(request).await?.locations[0])
}

async fn disk_of(node: &CapacityNode, extent: ExtentId) -> usize {
    node.extents().await.iter().find(|info| info.extent == extent).unwrap().disk
}

#[test]
fn frees_go_on_past_a_poisoned_disk() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let node = open(sims.iter().map(SimDisk::disk).collect()).await.unwrap();
        let mut stored = Vec::new();
        for id in 1..=4 {
            let extent = ExtentId::new(id);
            stored.push(store(&node, extent, 10_000).await.unwrap());
            node.seal(extent, ONE).await.unwrap();
        }
        let first = disk_of(&node, stored[0].extent).await;
        sims[first].fail_once(Fault::WriteError, 0);
        let extent = ExtentId::new(10);
        for id in 10..12 {
            drop(store(&node, ExtentId::new(id), 100_000).await);
        }
        let refused = node.free(&stored).await;
        assert!(matches!(refused, Err(Error::Poisoned { disk }) if disk == first), "{refused:?}");
        let left: Vec<ExtentInfo> =
            node.extents().await.into_iter().filter(|info| info.extent < extent).collect();
        assert_eq!(left.len(), 2);
        assert!(left.iter().all(|info| info.disk == first), "{left:?}");
    });
}

#[test]
fn extents_of_a_good_disk_are_removed_beside_a_poisoned_one() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let node = open(sims.iter().map(SimDisk::disk).collect()).await.unwrap();
        for id in 1..=4 {
            store(&node, ExtentId::new(id), 10_000).await.unwrap();
        }
        let bad = disk_of(&node, ExtentId::new(1)).await;
        sims[bad].fail_once(Fault::WriteError, 0);
        for id in 10..12 {
            drop(store(&node, ExtentId::new(id), 100_000).await);
        }
        assert!(node.disks()[bad].poisoned);
        // The later extents may have a file on the poisoned disk.
        for info in node.extents().await.into_iter().filter(|info| info.extent.get() <= 4) {
            let removed = node.remove(info.extent).await;
            assert_eq!(removed.is_ok(), info.disk != bad, "{info:?}: {removed:?}");
        }
        // The poisoned disk may have a file of this extent.
        node.remove(ExtentId::new(200)).await.unwrap_err();
    });
}

/// Two disks with sealed extents 1 to 4, their locations, and the place of the disk of each.
async fn stopped_store() -> ([SimDisk; 2], Vec<Location>, Vec<usize>) {
    let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
    let node = open(sims.iter().map(SimDisk::disk).collect()).await.unwrap();
    let (mut stored, mut disks) = (Vec::new(), Vec::new());
    for id in 1..=4 {
        let extent = ExtentId::new(id);
        stored.push(store(&node, extent, 10_000).await.unwrap());
        node.seal(extent, ONE).await.unwrap();
        disks.push(disk_of(&node, extent).await);
    }
    node.shutdown().await;
    drop(node);
    (sims, stored, disks)
}

#[test]
fn disk_that_cannot_be_recovered_is_out_of_service() {
    run(async {
        let (sims, stored, disks) = stopped_store().await;
        let restarted: Vec<_> = sims.iter().map(SimDisk::restart_after_kill).collect();
        // Both superblocks of the second disk's journal.
        assert!(sims[1].flip("journal", 20) && sims[1].flip("journal", 4096 + 20));
        let node = open(restarted).await.unwrap();
        for (location, disk) in stored.iter().zip(&disks) {
            let read = node.read(location, 0..location.len.get()).await;
            match disk {
                0 => assert_eq!(read.unwrap().concat(), payload(location.extent.get(), 10_000)),
                _ => assert!(matches!(read, Err(Error::OutOfService { .. })), "{read:?}"),
            }
        }
        // An extent that is not found does not count as freed or removed, and new extents go to
        // the other disk.
        assert!(matches!(node.free(&stored).await, Err(Error::OutOfService { .. })));
        let left: Vec<ExtentInfo> = node.extents().await;
        assert!(left.is_empty(), "the good disk's are freed: {left:?}");
        assert!(node.remove(ExtentId::new(99)).await.is_err());
        for id in 10..14 {
            store(&node, ExtentId::new(id), 100).await.unwrap();
        }
    });
}

#[test]
fn disks_are_opened_at_the_same_time() {
    run(async {
        let (sims, _, _) = stopped_store().await;
        let restarted: Vec<_> = sims.iter().map(SimDisk::restart_after_kill).collect();
        let before = sims[1].operations();
        let look = async {
            // More operations than a read of its format.
            while sims[1].operations() < before + 5 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            sims[0].operations()
        };
        let (node, first) = tokio::join!(open(restarted), look);
        let node = node.unwrap();
        assert!(first < sims[0].operations(), "the first disk was done before the second began");
        drop(node);
    });
}

#[test]
fn absent_disk_that_is_expected_is_no_error() {
    run(async {
        let (sims, stored, disks) = stopped_store().await;
        let restarted = sims[0].restart_after_kill();
        let config = |absent: &[usize]| CapacityConfig {
            absent: absent.iter().copied().collect(),
            without: true,
            ..CapacityConfig::small()
        };
        let metrics = CapacityMetrics::default();
        let with = |absent: &[usize]| {
            let disks = vec![Arc::clone(&restarted)];
            CapacityNode::open(disks, env(2), config(absent), metrics.clone())
        };
        // The first of two disks alone looks like a store of one disk; the list of disks is
        // kept by the caller.
        let node = with(&[1]).await.unwrap();
        for (location, disk) in stored.iter().zip(&disks) {
            assert_eq!(node.read(location, 0..1).await.is_ok(), *disk == 0);
        }
        drop(node);
        let refused = with(&[2]).await.map(|_| ());
        assert!(matches!(refused, Err(OpenError::DiskSet { highest: 2 })), "{refused:?}");
    });
}

#[test]
fn erased_journal_has_no_earlier_records_and_replays_later_ones() {
    run(async {
        let sim = SimDisk::new(1, DISK_BYTES);
        let node = open(vec![sim.disk()]).await.unwrap();
        let journal = sim.disk().open("journal").await.unwrap();
        let holds = async |what: Vec<u8>| {
            let len = usize::try_from(journal.len().await.unwrap()).unwrap();
            let bytes = journal.read_at(0, len).await.unwrap();
            bytes.windows(what.len()).any(|part| part == what)
        };
        let mut stored = Vec::new();
        for id in 1..=3 {
            stored.push(store(&node, ExtentId::new(id), 900).await.unwrap());
        }
        assert!(holds(payload(2, 900).to_vec()).await);
        assert!(node.erase_journals().await.unwrap());
        for id in 1..=3 {
            assert!(!holds(payload(id, 900).to_vec()).await, "{id}");
        }
        for id in 4..=6 {
            stored.push(store(&node, ExtentId::new(id), 900).await.unwrap());
        }
        assert!(holds(payload(5, 900).to_vec()).await);
        // After a kill, later records are replayed, and earlier ones are in the files.
        let node = open(vec![sim.restart_after_kill()]).await.unwrap();
        for location in &stored {
            let read = node.read(location, 0..location.len.get()).await.unwrap();
            assert_eq!(read.concat(), payload(location.extent.get(), 900));
        }
        node.shutdown().await;
    });
}

#[test]
fn new_disk_without_room_for_its_journal_is_refused_with_the_amounts() {
    run(async {
        let refused = open(vec![SimDisk::new(1, 100_000).disk()]).await.unwrap_err();
        assert_eq!(refused.disk(), Some(0));
        let text = refused.to_string();
        assert!(text.contains("needs 262144 bytes for its journal"), "{text}");
        assert!(text.contains(" are free") && text.contains("--journal-bytes"), "{text}");
    });
}

/// Sometimes the power cut also undoes the reservation of space for the extent.
#[test]
fn full_disk_that_cannot_be_recovered_says_how_much_it_needs() {
    let mut refused = 0;
    for seed in 0..40 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let node = open(vec![sim.disk()]).await.unwrap();
            let stored = store(&node, ExtentId::new(1), 9_000).await.unwrap();
            let disk = sim.restart_after_power_cut();
            sim.set_capacity(0);
            let Err(error) = open(vec![disk]).await else { return };
            let OpenError::Full { disk: 0, needed, available: 0 } = error else {
                panic!("{error:?}")
            };
            assert!(needed >= 9_000, "{needed}");
            assert!(error.to_string().contains(&format!("{needed} bytes and 0 are free")));
            refused += 1;
            sim.set_capacity(DISK_BYTES);
            let node = open(vec![sim.restart_after_kill()]).await.unwrap();
            assert_eq!(node.read(&stored, 0..9_000).await.unwrap().concat(), payload(1, 9_000));
        });
    }
    assert!(refused > 0, "recovery always had room");
}

/// A disk belongs to the store from its first start, before any byte is stored on it.
#[test]
fn disk_made_by_a_start_that_failed_is_known_after_a_power_cut_after_the_next() {
    let mut failed_starts = 0;
    for (seed, skip) in (0..20).flat_map(|seed| (0..6).map(move |skip| (seed, skip))) {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            sim.fail_once(Fault::SyncError, skip);
            if open(vec![sim.disk()]).await.is_ok() {
                return;
            }
            failed_starts += 1;
            drop(open(vec![sim.disk()]).await.unwrap());
            let number = disk_number(&sim.restart_after_power_cut(), 0).await;
            assert_eq!(number.unwrap(), Some(0), "seed {seed}, sync {skip}");
        });
    }
    assert!(failed_starts > 0);
}
