//! What was freed stays freed over starts, as far as the catalog can keep it.

use std::collections::BTreeMap;

use super::node::{DATA, ONE, Rig};
use super::payload;
use crate::capacity::*;
use crate::types::ExtentId;

/// Extents and how many of their bytes are freed.
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
            end = appended.end;
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
