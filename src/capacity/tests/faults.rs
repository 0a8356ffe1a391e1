//! What seeds of the simulation found, each brought down to the calls that show it.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Builder;

use super::node::ONE;
use super::payload;
use crate::capacity::*;
use crate::env::clock::SimClock;
use crate::env::disk_sim::Fault;
use crate::env::disk_sim::SimDisk;
use crate::env::rand::SeededRand;
use crate::env::{Disk, Env, Tasks};
use crate::types::ExtentId;

const DISK_BYTES: u64 = 64 << 20;

fn run<F: Future>(work: F) -> F::Output {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(work)
}

async fn open(disks: Vec<Arc<dyn Disk>>) -> Arc<CapacityNode> {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    CapacityNode::open(disks, env, config, metrics).await.unwrap()
}

async fn append(
    node: &CapacityNode,
    extent: ExtentId,
    offset: u64,
    payloads: &[Bytes],
) -> Result<Appended, Error> {
    let payloads = payloads.iter().map(|bytes| vec![bytes.clone()]).collect();
    let durability = Durability::Durable;
    node.append(AppendRequest { extent, epoch: ONE, offset, payloads, durability }).await
}

/// A start must not believe a seal whose sync failed: punching what is freed relies on it.
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
            let read = node.read(&locations[1], 0..locations[1].len).await;
            let read = read.unwrap_or_else(|error| panic!("seed {seed}, sync {skip}: {error}"));
            assert_eq!(read.concat(), stored[1]);
        });
    }
    assert!(failed_seals >= 40, "only {failed_seals} seals failed");
}
