//! Many concurrent calls, some of which are cancelled, and then a power failure: no acknowledged
//! byte is lost, and no call waits forever.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::runtime::Builder;

use super::node::ONE;
use super::{Dice, payload};
use crate::capacity::*;
use crate::env::clock::SimClock;
use crate::env::disk_sim::SimDisk;
use crate::env::rand::SeededRand;
use crate::env::{Disk, Env, Tasks};
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

const DISK_BYTES: u64 = 64 << 20;
const WRITERS: u64 = 6;
/// Longer than any call may take on a disk whose operations take 2 ms.
const PATIENCE: Duration = Duration::from_secs(120);

/// Locations that were acknowledged as durable and not freed since.
#[derive(Debug, Default)]
struct Promised(Mutex<Vec<(Location, Bytes)>>);

impl Promised {
    fn add(&self, stored: Vec<(Location, Bytes)>) {
        self.0.lock().unwrap().extend(stored);
    }

    fn any(&self, dice: &Dice) -> Option<(Location, Bytes)> {
        dice.pick(&self.0.lock().unwrap()).cloned()
    }

    fn take(&self, dice: &Dice) -> Option<Location> {
        let mut all = self.0.lock().unwrap();
        let at = dice.below(all.len() as u64);
        let at = units::index(at);
        (at < all.len()).then(|| all.swap_remove(at).0)
    }
}

struct Caller {
    node: Arc<CapacityNode>,
    sim: SimDisk,
    dice: Dice,
    promised: Arc<Promised>,
    payloads: Arc<AtomicU64>,
}

impl Caller {
    /// The result of a call; `None` if the call was cancelled before it ended.
    async fn or_cancel<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        if self.dice.below(6) > 0 {
            return Some(tokio::time::timeout(PATIENCE, call).await.expect("a call hangs"));
        }
        let leaves = Duration::from_millis(self.dice.below(5));
        tokio::time::timeout(leaves, call).await.ok()
    }

    /// Appends to an extent until a call fails or the extent is sealed.
    async fn fill(&self, extent: ExtentId) {
        let kind = *self.dice.pick(&[ExtentKind::Data, ExtentKind::Log]).unwrap();
        if !matches!(self.or_cancel(self.node.create(extent, kind, ONE)).await, Some(Ok(()))) {
            return;
        }
        let (mut offset, mut deferred) = (0, Vec::new());
        for _ in 0..self.dice.below(40) {
            let limit = *self.dice.pick(&[200, 4_000, 20_000, 100_000]).unwrap();
            let bytes =
                payload(self.payloads.fetch_add(1, Ordering::Relaxed), 1 + self.dice.below(limit));
            let durable = self.dice.below(3) > 0;
            let durability = if durable { Durability::Durable } else { Durability::Deferred };
            let payloads = vec![vec![bytes.clone()]];
            let request = AppendRequest {
                extent,
                epoch: ONE,
                offset: ExtentOffset::new(offset),
                payloads,
                durability,
            };
            let Some(Ok(appended)) = self.or_cancel(self.node.append(request)).await else { break };
            offset = appended.end.get();
            deferred.push((appended.locations[0], bytes));
            let flushed = !durable
                && self.dice.below(3) == 0
                && matches!(self.or_cancel(self.node.flush(extent, ONE)).await, Some(Ok(())));
            if durable || flushed {
                self.promised.add(std::mem::take(&mut deferred));
            }
            self.disturb().await;
        }
        if self.dice.below(4) > 0
            && let Some(Ok(_)) = self.or_cancel(self.node.seal(extent, ONE)).await
        {
            self.promised.add(deferred);
        }
    }

    /// Reads and frees random stored locations.
    async fn disturb(&self) {
        if let Some((location, bytes)) = self.promised.any(&self.dice)
            && let Some(Ok(read)) =
                self.or_cancel(self.node.read(&location, 0..location.len.get())).await
        {
            assert_eq!(read.concat(), bytes);
        }
        if self.dice.below(3) == 0
            && let Some(location) = self.promised.take(&self.dice)
        {
            let _answer = self.or_cancel(self.node.free(&[location])).await;
        }
    }

    async fn work(self, number: u64) {
        for round in 0..6 {
            if self.sim.is_down() {
                return;
            }
            self.fill(ExtentId::new(1 + number + round * WRITERS)).await;
        }
    }
}

async fn open(disk: Arc<dyn Disk>, seed: u64) -> Arc<CapacityNode> {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(seed)),
        tasks: Tasks::new(),
    };
    let metrics = CapacityMetrics::default();
    CapacityNode::open(vec![disk], env, CapacityConfig::small(), metrics).await.unwrap()
}

async fn once(seed: u64, crash: bool) {
    let sim = SimDisk::new(seed, DISK_BYTES);
    let node = open(sim.disk(), seed).await;
    let promised = Arc::new(Promised::default());
    let payloads = Arc::new(AtomicU64::new(1));
    if crash {
        sim.crash_at(sim.operations() + 20 + Dice::new(seed).below(1_500));
    }
    let callers = (0..WRITERS).map(|number| {
        let caller = Caller {
            node: Arc::clone(&node),
            sim: sim.clone(),
            dice: Dice::new(seed * WRITERS + number),
            promised: Arc::clone(&promised),
            payloads: Arc::clone(&payloads),
        };
        caller.work(number)
    });
    join_all(callers).await;
    if !crash {
        let extents = verify(&node, &promised, seed).await;
        for extent in extents {
            assert_eq!(node.scrub(extent).await.unwrap().corrupt, vec![], "seed {seed}");
        }
        tokio::time::timeout(PATIENCE, node.shutdown()).await.expect("the shutdown hangs");
    }
    drop(node);
    let node = open(sim.restart_after_power_cut(), seed).await;
    verify(&node, &promised, seed).await;
    tokio::time::timeout(PATIENCE, node.shutdown()).await.expect("the shutdown hangs");
}

async fn verify(node: &CapacityNode, promised: &Promised, seed: u64) -> BTreeSet<ExtentId> {
    let all = promised.0.lock().unwrap().clone();
    let mut extents = BTreeSet::new();
    for (location, bytes) in all {
        extents.insert(location.extent);
        match node.read(&location, 0..location.len.get()).await {
            Ok(read) => assert_eq!(read.concat(), bytes, "seed {seed}: {location:?}"),
            Err(error) => panic!("seed {seed}: {location:?}: {error}"),
        }
    }
    extents
}

#[test]
fn acknowledged_bytes_survive_cancelled_calls() {
    for seed in 0..40 {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(once(seed, seed % 3 > 0));
    }
}
