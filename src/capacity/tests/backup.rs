//! Copies of extents to another node's disk, with a power failure of that disk at any operation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::disks::{env, open, run, store};
use super::drain::{LEN, all_there, used};
use super::node::ONE;
use super::payload;
use crate::capacity::*;
use crate::env::Disk;
use crate::env::disk_sim::SimDisk;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

const DISK_BYTES: u64 = 64 << 20;

/// A node that takes copies of the extents of `from`.
async fn target(disk: Arc<dyn Disk>, from: &CapacityNode) -> Result<Arc<CapacityNode>, OpenError> {
    let config = CapacityConfig { store: from.store_id(), ..CapacityConfig::small() };
    CapacityNode::open(vec![disk], env(5), config, CapacityMetrics::default()).await
}

/// Seals and copies everything. Returns the bytes copied.
async fn copy_all(from: &Arc<CapacityNode>, to: &Arc<CapacityNode>) -> Result<u64, Error> {
    let mut copied = 0;
    for info in from.extents().await {
        from.seal_for_copy(info.extent).await?;
        copied += from.copy_extent_to(info.extent, to, None).await?.unwrap_or(0);
    }
    Ok(copied)
}

#[test]
fn copies_have_what_is_alive_and_are_made_once() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, mut stored) = used(&sims).await;
        let sim = SimDisk::new(3, DISK_BYTES);
        let to = target(sim.disk(), &node).await.unwrap();
        assert!(copy_all(&node, &to).await.unwrap() > 6 * LEN);
        all_there(&to, &stored).await;
        assert_eq!(copy_all(&node, &to).await.unwrap(), 0);
        // A free or a fence of an extent does not require another copy.
        let (freed, _) = stored.iter().next().map(|(id, at)| (*id, *at)).unwrap();
        node.free(&[stored.remove(&freed).unwrap()]).await.unwrap();
        let fenced = *stored.keys().next_back().unwrap();
        node.fence(fenced, Epoch::new(9)).await.unwrap();
        assert_eq!(copy_all(&node, &to).await.unwrap(), 0);
        to.shutdown().await;
        drop(to);
        let to = target(sim.restart_after_kill(), &node).await.unwrap();
        assert_eq!(copy_all(&node, &to).await.unwrap(), 0, "nor after a restart");
        all_there(&to, &stored).await;
    });
}

#[test]
fn copies_of_small_extents_keep_the_pace_too() {
    run(async {
        const PACE: u64 = 100_000;
        let sim = SimDisk::new(1, DISK_BYTES);
        let config = CapacityConfig { compact_bytes_per_second: PACE, ..CapacityConfig::small() };
        let (env, metrics) = (env(4), CapacityMetrics::default());
        let clock = Arc::clone(&env.clock);
        let node = CapacityNode::open(vec![sim.disk()], env, config, metrics).await.unwrap();
        for id in 1..=20 {
            store(&node, ExtentId::new(id), LEN).await.unwrap();
        }
        let to = target(SimDisk::new(3, DISK_BYTES).disk(), &node).await.unwrap();
        let begun = clock.monotonic();
        let copied = copy_all(&node, &to).await.unwrap();
        assert!(copied > 20 * LEN, "{copied}");
        let least = Duration::from_secs(copied / PACE);
        let took = clock.monotonic() - begun;
        assert!(took >= least, "{copied} bytes in {took:?} of at least {least:?}");
    });
}

#[test]
fn a_part_of_an_extent_is_copied_alone_and_the_rest_later() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, stored) = used(&sims).await;
        let to = target(SimDisk::new(3, DISK_BYTES).disk(), &node).await.unwrap();
        let (extent, location) = stored.first_key_value().unwrap();
        node.seal_for_copy(*extent).await.unwrap();
        let none = node.copy_extent_to(*extent, &to, Some(Vec::new())).await.unwrap();
        assert_eq!(none, Some(0));
        assert!(to.read(location, 0..LEN).await.is_err());
        let part = vec![node.frames_of(location)];
        assert!(node.copy_extent_to(*extent, &to, Some(part)).await.unwrap() > Some(LEN));
        let one: BTreeMap<ExtentId, Location> = [(*extent, *location)].into();
        all_there(&to, &one).await;
        assert_eq!(node.copy_extent_to(*extent, &to, None).await.unwrap(), Some(0), "it was all");
    });
}

#[test]
fn a_copy_of_a_part_stays_when_the_rest_is_damaged() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let node = open(sims.iter().map(SimDisk::disk).collect()).await.unwrap();
        let extent = ExtentId::new(1);
        let location = store(&node, extent, LEN).await.unwrap();
        let (epoch, durability) = (ONE, Durability::Durable);
        let payloads = vec![vec![payload(99, 30_000)]];
        let offset = end_after(ExtentOffset::START, &[LEN]);
        let more = AppendRequest { extent, epoch, offset, payloads, durability };
        node.append(more).await.unwrap();
        node.seal(extent, ONE).await.unwrap();
        let flipped = sims.iter().any(|sim| sim.flip("extents/01/0000000000000001.x", 30_000));
        assert!(flipped);
        let to = target(SimDisk::new(3, DISK_BYTES).disk(), &node).await.unwrap();
        let part = || Some(vec![node.frames_of(&location)]);
        for round in 0..3 {
            let refused = node.copy_extent_to(extent, &to, None).await;
            assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
            let copied = node.copy_extent_to(extent, &to, part()).await.unwrap().unwrap();
            assert_eq!(copied > LEN, round == 0, "made once");
            all_there(&to, &[(extent, location)].into()).await;
        }
    });
}

#[test]
fn a_full_disk_or_a_damaged_frame_stops_the_copy_and_nothing_else() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, stored) = used(&sims).await;
        let sim = SimDisk::new(3, 640 << 10);
        let to = target(sim.disk(), &node).await.unwrap();
        sim.set_capacity(300 << 10);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(matches!(copy_all(&node, &to).await, Err(Error::Full)));
        all_there(&node, &stored).await;
        sim.set_capacity(DISK_BYTES);
        tokio::time::sleep(Duration::from_secs(2)).await;
        copy_all(&node, &to).await.unwrap();
        all_there(&to, &stored).await;

        let other = target(SimDisk::new(4, DISK_BYTES).disk(), &node).await.unwrap();
        let damaged = sims.iter().any(|sim| sim.flip("extents/01/0000000000000001.x", 9_000));
        assert!(damaged);
        let refused = node.copy_extent_to(ExtentId::new(1), &other, None).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        assert!(other.extents().await.is_empty(), "an incomplete copy has the extent's name");
        let epoch = ONE;
        node.create(ExtentId::new(60), ExtentKind::Data, epoch).await.unwrap();
    });
}

/// Copies with a power failure of the copy's disk at an operation, then copies again. Returns the
/// number of the disk's operations.
async fn crash_once(crash_at: Option<u64>) -> u64 {
    let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
    let (node, stored) = used(&sims).await;
    let sim = SimDisk::new(3, DISK_BYTES);
    if let Some(operation) = crash_at {
        sim.crash_at(operation);
    }
    let done = match target(sim.disk(), &node).await {
        Ok(to) => copy_all(&node, &to).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    assert!(done.is_ok() || sim.is_down(), "{crash_at:?}: {done:?}");
    let operations = sim.operations();
    all_there(&node, &stored).await;
    let to = target(sim.restart_after_power_cut(), &node).await.unwrap();
    copy_all(&node, &to).await.unwrap_or_else(|error| panic!("{crash_at:?}: {error}"));
    all_there(&to, &stored).await;
    operations
}

#[test]
fn copies_that_are_cut_at_any_operation_are_made_by_the_next_try() {
    let operations = run(crash_once(None));
    assert!(operations > 20, "{operations}");
    for operation in 0..operations {
        run(crash_once(Some(operation)));
    }
}

/// Longer than any call may take on a disk whose operations take 2 ms.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the disk of the copy stalls.
const STALL: Duration = Duration::from_secs(3600);

/// The result of a call that must not wait for the disk of the copy.
async fn at_once<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, call).await.expect("the call waits for the copy")
}

/// A node, one of its sealed extents that is being copied to a stalled disk, and the task of the
/// copy.
struct Stalled {
    node: Arc<CapacityNode>,
    stored: BTreeMap<ExtentId, Location>,
    to: Arc<CapacityNode>,
    copy: tokio::task::JoinHandle<Result<Option<u64>, Error>>,
}

const COPIED: ExtentId = ExtentId::new(1);

impl Stalled {
    async fn new() -> Self {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, stored) = used(&sims).await;
        let sim = SimDisk::new(3, DISK_BYTES);
        let to = target(sim.disk(), &node).await.unwrap();
        sim.stall(STALL);
        let (from, into) = (Arc::clone(&node), Arc::clone(&to));
        let copy = env(6)
            .tasks
            .spawn("test", async move { from.copy_extent_to(COPIED, &into, None).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!copy.is_finished());
        Self { node, stored, to, copy }
    }
}

fn append_to(extent: ExtentId, len: u64) -> AppendRequest {
    let (epoch, durability) = (ONE, Durability::Durable);
    let payloads = vec![vec![payload(98, len)]];
    AppendRequest { extent, epoch, offset: ExtentOffset::START, payloads, durability }
}

#[test]
fn an_append_to_an_extent_that_is_copied_is_refused_at_once() {
    run(async {
        let Stalled { node, copy, .. } = Stalled::new().await;
        for len in [100, 200_000] {
            let refused = at_once(node.append(append_to(COPIED, len))).await;
            assert!(matches!(refused, Err(Error::Sealed { .. })), "{refused:?}");
        }
        assert!(!copy.is_finished());
    });
}

#[test]
fn an_append_to_a_sealed_extent_does_not_wait_for_the_lock() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, DISK_BYTES));
        let (node, _) = used(&sims).await;
        let home = node.home(COPIED).unwrap();
        let _compaction = home.extent.changing.lock().await;
        let refused = at_once(node.append(append_to(COPIED, 100))).await;
        assert!(matches!(refused, Err(Error::Sealed { .. })), "{refused:?}");
    });
}

#[test]
fn a_fence_of_an_extent_that_is_copied_is_answered() {
    run(async {
        let Stalled { node, stored, to, copy } = Stalled::new().await;
        at_once(node.fence(COPIED, Epoch::new(9))).await.unwrap();
        assert!(!copy.is_finished());
        assert!(copy.await.unwrap().unwrap() > Some(LEN));
        all_there(&to, &[(COPIED, stored[&COPIED])].into()).await;
    });
}

#[test]
fn a_copy_whose_disk_stalls_ends_when_its_node_stops() {
    run(async {
        let Stalled { node, copy, .. } = Stalled::new().await;
        at_once(node.shutdown()).await;
        at_once(node.env.tasks.shutdown()).await;
        let ended = copy.await.unwrap();
        assert!(matches!(ended, Err(Error::Ended { .. })), "{ended:?}");
    });
}

#[test]
fn an_extent_that_is_copied_can_be_removed_or_moved() {
    run(async {
        let Stalled { node, copy, .. } = Stalled::new().await;
        at_once(node.remove(COPIED)).await.unwrap();
        copy.await.unwrap().unwrap();
        let Stalled { node, stored, to, copy } = Stalled::new().await;
        let disk = node.home(COPIED).unwrap().store.place;
        assert!(node.set_draining(disk, true));
        assert_eq!(at_once(node.drain(disk)).await.unwrap().left, 0);
        assert!(copy.await.unwrap().unwrap() > Some(LEN));
        all_there(&to, &[(COPIED, stored[&COPIED])].into()).await;
    });
}

/// Copies an extent of eight frames. `after` the start of the copy, frees some of them and, if
/// `compact`, compacts the extent. Returns whether the copy had ended before that.
async fn free_meanwhile(after: Duration, compact: bool) -> bool {
    const FRAME: u64 = 300_000;
    let sim = SimDisk::new(1, DISK_BYTES);
    let node = open(vec![sim.disk()]).await.unwrap();
    node.create(COPIED, ExtentKind::Data, ONE).await.unwrap();
    let mut stored = Vec::new();
    let mut offset = 0;
    for seed in 0..8 {
        let payloads = vec![vec![payload(seed, FRAME)]];
        let request =
            AppendRequest { offset: ExtentOffset::new(offset), payloads, ..append_to(COPIED, 1) };
        let appended = node.append(request).await.unwrap();
        offset = appended.end.get();
        stored.push(appended.locations[0]);
    }
    node.seal(COPIED, ONE).await.unwrap();
    let to = target(SimDisk::new(2, DISK_BYTES).disk(), &node).await.unwrap();
    let (from, into) = (Arc::clone(&node), Arc::clone(&to));
    let copy =
        env(6).tasks.spawn("test", async move { from.copy_extent_to(COPIED, &into, None).await });
    tokio::time::sleep(after).await;
    let ended = copy.is_finished();
    let freed = [0, 3, 4, 6, 7];
    let locations: Vec<Location> = freed.iter().map(|number| stored[*number]).collect();
    at_once(node.free(&locations)).await.unwrap();
    if compact {
        let home = node.home(COPIED).unwrap();
        at_once(home.store.compact_if_sparse(&home.extent)).await.unwrap();
    }
    copy.await.unwrap().unwrap();
    for (seed, location) in stored.iter().enumerate().filter(|(seed, _)| !freed.contains(seed)) {
        let read = to.read(location, 0..FRAME).await;
        let read = read.unwrap_or_else(|error| panic!("{after:?}: frame {seed}: {error}"));
        assert_eq!(Bytes::from(read.concat()), payload(seed as u64, FRAME), "{after:?}");
    }
    assert_eq!(to.scrub(COPIED).await.unwrap().corrupt, vec![], "{after:?}");
    assert_eq!(
        node.copy_extent_to(COPIED, &to, None).await.unwrap(),
        Some(0),
        "{after:?}: it was all"
    );
    ended
}

#[test]
fn frame_freed_during_a_copy_is_in_the_copy_whole_or_not_at_all() {
    for compact in [false, true] {
        let ended = |ms| run(free_meanwhile(Duration::from_millis(ms), compact));
        assert!(!ended(0));
        assert!((1..400).any(ended), "the copy never ended");
    }
}
