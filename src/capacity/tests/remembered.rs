//! Freed ranges stay freed over restarts, unless the catalog loses them.

use std::collections::BTreeMap;

use super::disks::{env, run};
use super::drain::{all_there, used_by};
use super::node::{DATA, ONE, Rig};
use super::payload;
use crate::capacity::*;
use crate::env::disk_sim::SimDisk;
use crate::types::ExtentId;

const DISK_BYTES: u64 = 64 << 20;

/// The freed bytes of each extent.
async fn freed(node: &CapacityNode) -> BTreeMap<ExtentId, u64> {
    node.extents().await.into_iter().map(|info| (info.extent, info.freed)).collect()
}

#[tokio::test]
async fn frames_freed_behind_padding_stay_freed_over_two_starts() {
    let mut rig = Rig::new().await;
    rig.node().create(DATA, ExtentKind::Data, ONE).await.unwrap();
    let mut end = 0;
    let mut stored = Vec::new();
    for seed in 0..3 {
        // The second frame of each pair begins on a page.
        for len in [100, 100_000] {
            let bytes = [payload(seed, len)];
            let appended = rig.append(DATA, end, &bytes, Durability::Durable).await.unwrap();
            end = appended.end.get();
            stored.push(appended.locations[0]);
        }
    }
    let garbage = [stored[1], stored[3]];
    rig.node().free(&garbage).await.unwrap();
    let before = freed(rig.node()).await;
    assert!(before[&DATA] > 200_000, "{before:?}");
    rig.restart(false).await;
    assert_eq!(freed(rig.node()).await, before, "the first start, which seals the extent");
    rig.restart(true).await;
    assert_eq!(freed(rig.node()).await, before, "the second start, which need not look at it");
}

#[test]
fn dead_ranges_of_a_moved_extent_stay_dead_over_a_start() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let catalogs = vec![SimulatedCatalog::default(), SimulatedCatalog::default()];
        let catalog = CatalogPlace::Simulated(catalogs);
        let config = CapacityConfig { catalog, ..CapacityConfig::small() };
        let disks = sims.iter().map(SimDisk::disk).collect();
        let metrics = CapacityMetrics::default;
        let node = CapacityNode::open(disks, env(1), config.clone(), metrics()).await.unwrap();
        let stored = used_by(&node).await;
        node.set_draining(1, true);
        assert_eq!(node.drain(1).await.unwrap(), Drained { moved: 3, ..Drained::default() });
        let before = freed(&node).await;
        node.shutdown().await;
        drop(node);
        let disks = sims.iter().map(SimDisk::restart_after_kill).collect();
        let node = CapacityNode::open(disks, env(1), config, metrics()).await.unwrap();
        assert_eq!(freed(&node).await, before);
        all_there(&node, &stored).await;
        // So it can be moved again.
        node.set_draining(0, true);
        let drained = node.drain(0).await.unwrap();
        assert_eq!((drained.left, drained.error), (0, None));
        all_there(&node, &stored).await;
    });
}
