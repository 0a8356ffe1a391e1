//! Many writers on real threads: interleavings that the simulation, on one thread, does not have.

use std::sync::Arc;

use bytes::Bytes;

use super::node::{ONE, Rig};
use super::{Dice, payload};
use crate::capacity::units::{index, size};
use crate::capacity::*;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// One writer: fills, frees and seals its own extents and returns the locations that must stay
/// readable.
async fn write(node: Arc<CapacityNode>, writer: u64) -> Vec<(Location, Bytes)> {
    let dice = Dice::new(writer);
    let mut kept: Vec<(Location, Bytes)> = Vec::new();
    for round in 0..4 {
        let extent = ExtentId::new(writer * 100 + round);
        node.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let mut offset = 0;
        for n in 0..60 {
            let len = 1 + dice.below(if n % 7 == 0 { 200_000 } else { 6_000 });
            let bytes = payload(writer * 1_000_000 + round * 1_000 + n, len);
            let durability = if n % 11 == 0 { Durability::Deferred } else { Durability::Durable };
            let payloads = vec![vec![bytes.clone()]];
            let request = AppendRequest {
                extent,
                epoch: ONE,
                offset: ExtentOffset::new(offset),
                payloads,
                durability,
            };
            let appended = node.append(request).await.unwrap();
            offset = appended.end.get();
            kept.push((appended.locations[0], bytes));
            let (location, bytes) = dice.pick(&kept).unwrap();
            let read = node.read(location, 0..location.len.get()).await.unwrap();
            assert_eq!(read.concat(), *bytes);
            if dice.below(3) == 0 {
                let at = index(dice.below(size(kept.len())));
                let (freed, _) = kept.swap_remove(at);
                node.free(&[freed]).await.unwrap();
            }
        }
        assert_eq!(node.seal(extent, ONE).await.unwrap(), ExtentOffset::new(offset));
    }
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_on_many_threads_lose_nothing() {
    let mut rig = Rig::new().await;
    let mut writers = Vec::new();
    for writer in 1..=8 {
        let work = write(Arc::clone(rig.node()), writer);
        writers.push(super::node::env(1).tasks.spawn("writer", work));
    }
    let mut kept = Vec::new();
    for writer in writers {
        kept.extend(writer.await.unwrap());
    }
    for restart in [None, Some(false), Some(true)] {
        if let Some(clean) = restart {
            rig.restart(clean).await;
        }
        for (location, bytes) in &kept {
            assert_eq!(rig.read(location).await.unwrap(), *bytes);
        }
        for info in rig.node().extents().await {
            assert_eq!(rig.node().scrub(info.extent).await.unwrap().corrupt, vec![]);
        }
    }
    assert_eq!(rig.metrics.corrupt_frames.get(), 0);
}
