//! Extents whose creation or removal failed: a file that is left is never used as the extent, and a
//! removal does not succeed before the file is gone.

use std::time::Duration;

use super::faults::{append, open, run};
use super::node::ONE;
use super::payload;
use crate::capacity::*;
use crate::env::disk_sim::Fault;
use crate::env::disk_sim::SimDisk;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

const DISK_BYTES: u64 = 64 << 20;

/// The caller forgets the id of a removed extent, so no file of it may be found after a restart.
#[test]
fn extent_whose_creation_failed_is_not_removed_before_a_restart_finds_it() {
    let (mut left, extent) = (0, ExtentId::new(7));
    for (disks, step) in [1, 2].into_iter().flat_map(|disks| (0..6).map(move |step| (disks, step)))
    {
        run(async {
            let sims: Vec<SimDisk> = (0..disks).map(|n| SimDisk::new(n, DISK_BYTES)).collect();
            let node = open(sims.iter().map(SimDisk::disk).collect()).await;
            sims[0].fail_once(Fault::SyncError, step);
            // The second disk may take it.
            drop(node.create(extent, ExtentKind::Log, ONE).await);
            let removed = node.remove(extent).await;
            drop(node);
            if sims[0].faults_left() > 0 {
                return;
            }
            let node = open(sims.iter().map(SimDisk::restart_after_kill).collect()).await;
            let is_left = node.extents().await.iter().any(|info| info.extent == extent);
            assert!(removed.is_err() || !is_left, "{disks} disks, sync {step}: {removed:?}");
            left += u32::from(is_left);
            node.remove(extent).await.unwrap();
            assert_eq!(node.extents().await.len(), 0);
        });
    }
    assert!(left > 0, "no failure left anything");
}

/// As above, when the creation is cancelled.
#[test]
fn extent_whose_creation_was_given_up_is_removed_before_a_restart_finds_it() {
    for pause in (0..40).map(|tenths| Duration::from_micros(100 * tenths)) {
        run(async {
            let (sim, extent) = (SimDisk::new(1, DISK_BYTES), ExtentId::new(7));
            let node = open(vec![sim.disk()]).await;
            sim.stall_syncs(Duration::from_secs(2));
            let create = node.create(extent, ExtentKind::Run, ONE);
            drop(tokio::time::timeout(pause, create).await);
            let mut removed = node.remove(extent).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            if removed.is_err() {
                removed = node.remove(extent).await;
            }
            assert!(removed.is_ok(), "{removed:?}");
            drop(node);
            let node = open(vec![sim.restart_after_kill()]).await;
            assert_eq!(node.extents().await, []);
        });
    }
}

/// As above, when the cancelled creation still waits for a measurement of the free space.
#[test]
fn extent_whose_creation_waits_for_the_room_of_the_disk_is_not_forgotten() {
    run(async {
        let (sim, extent) = (SimDisk::new(1, DISK_BYTES), ExtentId::new(7));
        let node = open(vec![sim.disk()]).await;
        // The last measurement of the free space is old by then.
        tokio::time::sleep(Duration::from_secs(60)).await;
        sim.stall(Duration::from_secs(2));
        let create = node.create(extent, ExtentKind::Run, ONE);
        assert!(tokio::time::timeout(Duration::from_micros(100), create).await.is_err());
        let removed = node.remove(extent).await;
        assert!(matches!(removed, Err(Error::Ended { .. })), "it goes on: {removed:?}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        node.remove(extent).await.unwrap();
        drop(node);
        let node = open(vec![sim.restart_after_kill()]).await;
        assert_eq!(node.extents().await, []);
    });
}

/// A full disk keeps no file of an extent that it refused.
#[test]
fn extent_that_found_no_room_can_be_removed_at_once() {
    run(async {
        let (sim, extent) = (SimDisk::new(1, 1 << 20), ExtentId::new(7));
        let node = open(vec![sim.disk()]).await;
        let mut ids = (8..).map(ExtentId::new);
        let made = loop {
            let id = ids.next().unwrap();
            match node.create(id, ExtentKind::Data, ONE).await {
                Ok(()) if id.get() < 1_000 => {}
                done => break done,
            }
        };
        let again = node.create(extent, ExtentKind::Data, ONE).await;
        assert!(matches!((&made, &again), (Err(Error::Full), Err(Error::Full))), "{made:?}");
        node.remove(extent).await.unwrap();
    });
}

/// As above, when the process was killed between the removal of the file and the folder's sync.
#[test]
fn extent_whose_removal_a_kill_cut_short_is_removed_before_a_power_failure() {
    let (mut cut_short, extent) = (0, ExtentId::new(7));
    for seed in 0..20 {
        run(async {
            let sims = [seed, 100 + seed].map(|seed| SimDisk::new(seed, DISK_BYTES));
            let node = open(sims.iter().map(SimDisk::disk).collect()).await;
            node.create(extent, ExtentKind::Log, ONE).await.unwrap();
            sims.iter().for_each(|sim| sim.stall_syncs(Duration::from_secs(2)));
            let removing = tokio::time::timeout(Duration::from_secs(1), node.remove(extent));
            assert!(removing.await.is_err(), "a sync has to be waited for");
            drop(node);

            let node = open(sims.iter().map(SimDisk::restart_after_kill).collect()).await;
            cut_short += u32::from(node.extents().await.is_empty());
            node.remove(extent).await.unwrap();
            drop(node);

            let node = open(sims.iter().map(SimDisk::restart_after_power_cut).collect()).await;
            assert_eq!(node.extents().await, [], "seed {seed}");
        });
    }
    assert!(cut_short > 0, "no kill came between the two");
}

/// As above, when the sync after the removal fails, and another call syncs the folder before the
/// removal is tried again.
#[test]
fn extent_whose_removal_failed_is_not_removed_before_a_restart_finds_it() {
    let (mut left, extent) = (0, ExtentId::new(7));
    for seed in 0..16 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let node = open(vec![sim.disk()]).await;
            node.create(extent, ExtentKind::Log, ONE).await.unwrap();
            sim.fail_once(Fault::SyncError, 0);
            assert!(node.remove(extent).await.is_err());
            drop(node.seal(extent, ONE).await);
            let removed = node.remove(extent).await;
            drop(node);
            let node = open(vec![sim.restart_after_power_cut()]).await;
            let is_left = !node.extents().await.is_empty();
            assert!(removed.is_err() || !is_left, "{seed}: {removed:?}");
            left += u32::from(is_left);
            node.remove(extent).await.unwrap();
            assert_eq!(node.extents().await, []);
        });
    }
    assert!(left > 0, "no power cut brought it back");
}

/// The creation of an extent failed on one disk and succeeded on the other. While the other disk is
/// out of service, the empty file on the first is not used as the extent: its bytes do not count as
/// damaged or gone.
#[test]
fn empty_file_of_a_failed_creation_does_not_stand_for_an_extent_on_a_disk_out_of_service() {
    let mut left = 0;
    for step in 0..6 {
        run(async {
            let extent = ExtentId::new(7);
            let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
            let node = open(sims.iter().map(SimDisk::disk).collect()).await;
            sims[0].fail_once(Fault::SyncError, step);
            let made = node.create(extent, ExtentKind::Log, ONE).await;
            if made.is_err() || sims[0].faults_left() > 0 {
                return;
            }
            let appended = append(&node, extent, 0, &[payload(1, 500)]).await.unwrap();
            let stored = appended.locations[0];
            drop(node);
            // The disk with the extent fails, and the node starts without it.
            let disks = sims.iter().map(SimDisk::restart_after_kill).collect();
            sims[1].fail_once(Fault::SyncError, 0);
            let node = open(disks).await;
            assert!(!node.is_whole(), "the fault was for the start");
            left += node.extents().await.len();
            let refusals = [
                node.next_frame(extent, ExtentOffset::START).await.map(|_| ()),
                node.read(&stored, 0..500).await.map(|_| ()),
                node.fence(extent, ONE.next()).await,
                node.seal(extent, ONE).await.map(|_| ()),
            ];
            for refused in refusals {
                assert!(matches!(refused, Err(Error::OutOfService { .. })), "{step}: {refused:?}");
            }
            drop(node);
            let node = open(sims.iter().map(SimDisk::restart_after_kill).collect()).await;
            let read = node.read(&stored, 0..500).await.unwrap().concat();
            assert_eq!(read, payload(1, 500), "{step}");
        });
    }
    assert!(left > 0, "no failed creation left a file");
}

/// As above, when the disk with the file of the failed creation is out of service. Extents created
/// since the start cannot have a file on it.
#[test]
fn extent_whose_creation_failed_on_a_disk_out_of_service_is_not_removed_before_it_is_back() {
    let (mut left, extent, newer) = (0, ExtentId::new(7), ExtentId::new(8));
    for step in 0..6 {
        run(async {
            let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
            let node = open(sims.iter().map(SimDisk::disk).collect()).await;
            sims[0].fail_once(Fault::SyncError, step);
            let made = node.create(extent, ExtentKind::Log, ONE).await;
            drop(node);
            if made.is_err() || sims[0].faults_left() > 0 {
                return;
            }
            let disks = sims.iter().map(SimDisk::restart_after_kill).collect();
            sims[0].fail_once(Fault::SyncError, 0);
            let node = open(disks).await;
            assert!(!node.is_whole(), "the fault was for the start");
            assert_eq!(node.extents().await.len(), 1);
            for _ in 0..2 {
                let removed = node.remove(extent).await;
                assert!(matches!(removed, Err(Error::OutOfService { .. })), "{step}: {removed:?}");
            }
            node.create(newer, ExtentKind::Log, ONE).await.unwrap();
            node.remove(newer).await.unwrap();
            drop(node);
            let node = open(sims.iter().map(SimDisk::restart_after_kill).collect()).await;
            left += node.extents().await.len();
            node.remove(extent).await.unwrap();
            drop(node);
            let node = open(sims.iter().map(SimDisk::restart_after_power_cut).collect()).await;
            assert_eq!(node.extents().await, []);
        });
    }
    assert!(left > 0, "no failure left anything");
}

/// As above, when the disk fails while the start removes the file of the failed creation.
#[test]
fn extent_whose_second_file_could_not_be_removed_at_the_start_is_not_forgotten() {
    let (mut refused, extent) = (0, ExtentId::new(7));
    for (seed, late) in (0..32).flat_map(|seed| (0..8).map(move |late| (seed, late))) {
        run(async {
            let sims = [2 * seed, 2 * seed + 1].map(|seed| SimDisk::new(seed, DISK_BYTES));
            let node = open(sims.iter().map(SimDisk::disk).collect()).await;
            // The first sync of a creation is its header's, the second one its folder's.
            sims[0].fail_once(Fault::SyncError, 1);
            let made = node.create(extent, ExtentKind::Log, ONE).await;
            if made.is_err() || sims[0].faults_left() > 0 {
                return;
            }
            append(&node, extent, 0, &[payload(1, 3000)]).await.unwrap();
            drop(node);
            let disks = sims.iter().map(SimDisk::restart_after_kill).collect();
            sims[0].fail_once(Fault::SyncError, late);
            let node = open(disks).await;
            let removed = node.remove(extent).await;
            refused += u32::from(node.is_whole() && removed.is_err());
            drop(node);
            let node = open(sims.iter().map(SimDisk::restart_after_power_cut).collect()).await;
            assert!(removed.is_err() || node.extents().await.is_empty(), "{seed} {late}");
            node.remove(extent).await.unwrap();
            assert_eq!(node.extents().await, []);
        });
    }
    assert!(refused > 0, "no start went on beside a second file");
}
