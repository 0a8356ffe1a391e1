//! A drain of a disk that is in use, with a power failure at any operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::disks::{open, run, store};
use super::node::ONE;
use super::payload;
use crate::capacity::*;
use crate::env::disk_sim::{Fault, SimDisk};
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

const DISK_BYTES: u64 = 64 << 20;
pub(super) const LEN: u64 = 9_000;
const LOG: ExtentId = ExtentId::new(50);

/// Two disks with sealed and open extents, of which some bytes are freed. Returns the node and the
/// locations that must stay readable.
pub(super) async fn used(sims: &[SimDisk; 2]) -> (Arc<CapacityNode>, BTreeMap<ExtentId, Location>) {
    let node = open(sims.iter().map(SimDisk::disk).collect()).await.unwrap();
    let stored = used_by(&node).await;
    (node, stored)
}

/// Creates these extents on the disks of a node. Returns the locations that must stay readable.
pub(super) async fn used_by(node: &CapacityNode) -> BTreeMap<ExtentId, Location> {
    let mut stored = BTreeMap::new();
    for id in 1..=6 {
        let extent = ExtentId::new(id);
        let location = store(node, extent, LEN).await.unwrap();
        let (epoch, durability) = (ONE, Durability::Durable);
        let payloads = vec![vec![payload(99, 30_000)]];
        let offset = end_after(ExtentOffset::START, &[LEN]);
        let request = AppendRequest { extent, epoch, offset, payloads, durability };
        let garbage = node.append(request).await.unwrap().locations;
        if id % 3 > 0 {
            node.seal(extent, ONE).await.unwrap();
        }
        node.free(&garbage).await.unwrap();
        stored.insert(extent, location);
    }
    stored
}

pub(super) async fn all_there(node: &CapacityNode, stored: &BTreeMap<ExtentId, Location>) {
    for (extent, location) in stored {
        let read = node.read(location, 0..LEN).await;
        let read = read.unwrap_or_else(|error| panic!("extent {extent}: {error}"));
        assert_eq!(Bytes::from(read.concat()), payload(extent.get(), LEN), "extent {extent}");
    }
}

/// Drains until nothing is left or a disk fails.
async fn drain(node: &Arc<CapacityNode>, disk: usize) -> Result<(), String> {
    assert!(node.set_draining(disk, true));
    for _ in 0..100 {
        let drained = node.drain(disk).await.map_err(|error| error.to_string())?;
        if drained.left == 0 {
            return Ok(());
        }
        if let Some(error) = drained.error {
            return Err(error);
        }
    }
    panic!("never empty");
}

#[test]
fn drained_disk_is_empty_and_everything_is_read_from_the_others() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, stored) = used(&sims).await;
        let before: Vec<DiskInfo> = node.disks();
        assert!(before.iter().all(|disk| disk.extents == 3 && disk.live_bytes > 3 * LEN));
        drain(&node, 1).await.unwrap();
        all_there(&node, &stored).await;
        assert_eq!((node.disks()[0].extents, node.disks()[1].extents), (6, 0));
        assert!(sims[1].disk().list("extents").await.unwrap().is_empty());
        // No new extent goes to the disk, and moved extents can be freed, fenced and scrubbed.
        for id in 60..70 {
            store(&node, ExtentId::new(id), 100).await.unwrap();
        }
        assert_eq!(node.disks()[1].extents, 0);
        let moved = stored.keys().next_back().copied().unwrap();
        node.fence(moved, Epoch::new(7)).await.unwrap();
        assert_eq!(node.scrub(moved).await.unwrap().corrupt, vec![]);
        assert!(node.detach(1).await.unwrap());
        assert_eq!(node.disks().len(), 1);
        assert!(sims[1].disk().open("format").await.is_err(), "it still belongs to the store");
        all_there(&node, &stored).await;
        for extent in stored.keys() {
            node.seal(*extent, Epoch::new(7)).await.unwrap();
        }
        node.free(&stored.values().copied().collect::<Vec<_>>()).await.unwrap();
        node.shutdown().await;
        drop(node);
        let node = open(vec![sims[0].restart_after_kill()]).await.unwrap();
        assert!(node.extents().await.iter().all(|info| info.extent >= ExtentId::new(60)));
    });
}

#[test]
fn disk_that_is_not_drained_is_not_detached() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, stored) = used(&sims).await;
        assert!(!node.detach(1).await.unwrap());
        node.set_draining(1, true);
        assert!(!node.detach(1).await.unwrap());
        all_there(&node, &stored).await;
    });
}

#[test]
fn reads_frees_and_appends_go_on_while_a_disk_is_drained() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, mut stored) = used(&sims).await;
        let end = end_after(end_after(ExtentOffset::START, &[LEN]), &[30_000]);
        let doomed = stored.pop_first().unwrap().1;
        let is_open = |info: &ExtentInfo| info.state == ExtentState::Open;
        let ExtentInfo { extent: open, disk, .. } =
            node.extents().await.into_iter().find(is_open).unwrap();
        let work = async {
            for round in 0..200 {
                all_there(&node, &stored).await;
                if round == 3 {
                    node.free(&[doomed]).await.unwrap();
                }
            }
        };
        let (drained, ()) = tokio::join!(drain(&node, disk), work);
        drained.unwrap();
        assert!(node.read(&doomed, 0..1).await.is_err(), "freed, wherever it was");
        // The writer of an extent that was open gets an error and has to roll.
        let payloads = vec![vec![payload(1, 10)]];
        let (epoch, durability) = (ONE, Durability::Durable);
        let more = AppendRequest { extent: open, epoch, offset: end, payloads, durability };
        assert!(node.append(more).await.is_err());
        store(&node, LOG, 10).await.unwrap();
    });
}

/// Runs a drain with a power failure at an operation of one of the disks, and verifies the extents
/// after a restart. Returns the number of operations of that disk.
async fn crash_once(which: usize, crash_at: Option<u64>) -> u64 {
    let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
    let (node, stored) = used(&sims).await;
    let before = sims[which].operations();
    if let Some(operation) = crash_at {
        sims[which].crash_at(before + operation);
    }
    let drained = drain(&node, 1).await;
    assert!(drained.is_ok() || sims[which].is_down(), "{drained:?}");
    let operations = sims[which].operations() - before;
    drop(node);
    let restarted = sims.iter().map(SimDisk::restart_after_power_cut).collect();
    let node = open(restarted).await.unwrap();
    all_there(&node, &stored).await;
    let extents = node.extents().await;
    assert_eq!(extents.len(), stored.len(), "each extent once: {extents:?}");
    // A catalog that has lost frees gets them again from an audit. Until then holes look like
    // damage.
    for (extent, location) in &stored {
        let live = node.frames_of(location);
        node.retain(*extent, &[live], Audited::Whole).await.unwrap();
    }
    drain(&node, 1).await.unwrap_or_else(|error| panic!("{which} {crash_at:?}: {error}"));
    all_there(&node, &stored).await;
    assert!(sims[1].disk().list("extents").await.unwrap().is_empty());
    operations
}

#[test]
fn drain_that_is_cut_at_any_operation_loses_nothing() {
    for which in 0..2 {
        let operations = run(crash_once(which, None));
        assert!(operations > 20, "{operations}");
        for operation in 0..operations {
            run(crash_once(which, Some(operation)));
        }
    }
}

#[test]
fn drain_goes_on_past_a_full_disk_and_a_failing_one() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, stored) = used(&sims).await;
        sims[0].set_capacity(1 << 16);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        node.set_draining(1, true);
        let drained = node.drain(1).await.unwrap();
        assert_eq!((drained.moved, drained.left), (0, 3));
        assert!(drained.error.unwrap().contains("full"));
        all_there(&node, &stored).await;
        sims[0].set_capacity(DISK_BYTES);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        sims[0].fail_once(Fault::SyncError, 0);
        let drained = node.drain(1).await.unwrap();
        assert!(drained.left > 0, "there is no other disk that takes writes");
        all_there(&node, &stored).await;
    });
}
