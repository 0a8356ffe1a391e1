//! Tasks that panic: no call waits forever, and a disk that cannot continue is poisoned with a log
//! line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::disks::{env, run, store};
use super::node::ONE;
use super::payload;
use crate::capacity::disk::store::path_of;
use crate::capacity::extent::header::DATA_AT;
use crate::capacity::*;
use crate::env::disk_sim::SimDisk;
use crate::env::{Disk, DiskError, DiskFile, DiskTimes, Space};
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// The operations that panic, once each.
#[derive(Clone, Debug, Default)]
struct Traps {
    journal: Arc<AtomicBool>,
    extents: Arc<AtomicBool>,
    /// The sync of a folder.
    names: Arc<AtomicBool>,
}

/// A disk whose files panic when a trap is set.
#[derive(Clone, Debug)]
struct Trapped<T: ?Sized> {
    inner: Arc<T>,
    traps: Traps,
    /// That of this file.
    armed: Arc<AtomicBool>,
}

type Answer<T> = Result<T, DiskError>;

impl<T: ?Sized> Trapped<T> {
    fn spring(&self) {
        assert!(!self.armed.swap(false, Ordering::AcqRel), "sprung");
    }

    fn file(&self, path: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let traps = self.traps.clone();
        let armed = if path == "journal" { &traps.journal } else { &traps.extents };
        Arc::new(Trapped { inner: file, armed: Arc::clone(armed), traps })
    }
}

#[async_trait]
impl Disk for Trapped<dyn Disk> {
    async fn open(&self, path: &str) -> Answer<Arc<dyn DiskFile>> {
        Ok(self.file(path, self.inner.open(path).await?))
    }
    async fn create(&self, path: &str) -> Answer<Arc<dyn DiskFile>> {
        Ok(self.file(path, self.inner.create(path).await?))
    }
    async fn rename(&self, from: &str, to: &str) -> Answer<()> {
        self.inner.rename(from, to).await
    }
    async fn remove(&self, path: &str) -> Answer<()> {
        self.inner.remove(path).await
    }
    async fn list(&self, folder: &str) -> Answer<Vec<String>> {
        self.inner.list(folder).await
    }
    async fn sync_dir(&self, folder: &str) -> Answer<()> {
        assert!(!self.traps.names.swap(false, Ordering::AcqRel), "sprung");
        self.inner.sync_dir(folder).await
    }
    async fn space(&self) -> Answer<Space> {
        self.inner.space().await
    }
    fn times(&self) -> Option<&DiskTimes> {
        self.inner.times()
    }
}

#[async_trait]
impl DiskFile for Trapped<dyn DiskFile> {
    async fn read_at(&self, offset: u64, len: usize) -> Answer<Bytes> {
        self.inner.read_at(offset, len).await
    }
    async fn write_at(&self, offset: u64, pieces: Vec<Bytes>) -> Answer<()> {
        self.spring();
        self.inner.write_at(offset, pieces).await
    }
    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Answer<()> {
        self.spring();
        self.inner.write_sync(offset, pieces).await
    }
    async fn sync(&self) -> Answer<()> {
        self.inner.sync().await
    }
    async fn drop_cache(&self) -> Answer<()> {
        self.inner.drop_cache().await
    }
    async fn allocate(&self, offset: u64, len: u64) -> Answer<()> {
        self.inner.allocate(offset, len).await
    }
    async fn punch_hole(&self, offset: u64, len: u64) -> Answer<()> {
        self.inner.punch_hole(offset, len).await
    }
    async fn set_len(&self, len: u64) -> Answer<()> {
        self.inner.set_len(len).await
    }
    async fn len(&self) -> Answer<u64> {
        self.inner.len().await
    }
    async fn allocated(&self) -> Answer<u64> {
        self.inner.allocated().await
    }
}

struct Rig {
    node: Arc<CapacityNode>,
    env: crate::env::Env,
    traps: Traps,
    sim: SimDisk,
}

/// A node whose last disk has such traps.
async fn trapped(others: &[SimDisk]) -> Rig {
    trapped_by(1, others).await
}

async fn trapped_by(seed: u64, others: &[SimDisk]) -> Rig {
    let (traps, sim) = (Traps::default(), SimDisk::new(seed, 64 << 20));
    let armed = Arc::default();
    let disk = Arc::new(Trapped { inner: sim.disk(), armed, traps: traps.clone() });
    let env = env(1);
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    let mut disks: Vec<Arc<dyn Disk>> = others.iter().map(SimDisk::disk).collect();
    disks.push(disk);
    let node = CapacityNode::open(disks, env.clone(), config, metrics).await.unwrap();
    Rig { node, env, traps, sim }
}

async fn append(
    node: &CapacityNode,
    extent: ExtentId,
    offset: u64,
    len: u64,
) -> Result<Appended, Error> {
    let payloads = vec![vec![payload(3, len)]];
    let durability = Durability::Durable;
    let append = node.append(AppendRequest {
        extent,
        epoch: ONE,
        offset: ExtentOffset::new(offset),
        payloads,
        durability,
    });
    tokio::time::timeout(Duration::from_secs(60), append).await.expect("an append hangs")
}

#[test]
fn panic_of_the_journal_poisons_the_disk_and_is_reported() {
    run(async {
        let Rig { node, env, traps, .. } = trapped(&[]).await;
        let extent = ExtentId::new(1);
        let first = store(&node, extent, 100).await.unwrap();
        traps.journal.store(true, Ordering::Release);
        let end = end_after(ExtentOffset::START, &[100]);
        let failed = append(&node, extent, end.get(), 100).await;
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        let again = append(&node, extent, end.get(), 100).await;
        assert!(again.is_err(), "{again:?}");
        assert_eq!(node.read(&first, 0..100).await.unwrap().concat(), payload(1, 100));
        assert!(node.disks()[0].poisoned);
        let stopped = env.tasks.health().stopped();
        assert!(stopped.iter().any(|(task, _)| *task == "journal"), "{stopped:?}");
    });
}

#[test]
fn panic_of_one_append_does_not_poison_the_disk() {
    run(async {
        let Rig { node, traps, .. } = trapped(&[]).await;
        let (extent, other) = (ExtentId::new(1), ExtentId::new(2));
        store(&node, extent, 100).await.unwrap();
        store(&node, other, 100).await.unwrap();
        traps.extents.store(true, Ordering::Release);
        let end = end_after(ExtentOffset::START, &[100]);
        let failed = append(&node, extent, end.get(), 500_000).await;
        assert!(matches!(failed, Err(Error::Ended { doing: "append" })), "{failed:?}");
        assert!(!node.disks()[0].poisoned);
        append(&node, other, end.get(), 500_000).await.unwrap();
        node.seal(extent, ONE).await.unwrap();
    });
}

/// The seal gives reserved space back before it writes its slot.
#[test]
fn extent_whose_seal_panicked_has_space_for_what_is_acknowledged() {
    run(async {
        let Rig { node, traps, sim, .. } = trapped(&[]).await;
        let extent = ExtentId::new(1);
        store(&node, extent, 50_000).await.unwrap();
        traps.extents.store(true, Ordering::Release);
        let failed = node.seal(extent, ONE).await;
        assert!(matches!(failed, Err(Error::Ended { doing: "seal" })), "{failed:?}");
        let file = sim.disk().open(&path_of(extent)).await.unwrap();
        let end = end_after(ExtentOffset::START, &[50_000]);
        assert!(
            file.allocated().await.unwrap() < DATA_AT + end.get() + 10_000,
            "nothing was given back"
        );
        // Short enough for the journal.
        let end = append(&node, extent, end.get(), 10_000).await.unwrap().end;
        assert!(file.allocated().await.unwrap() >= DATA_AT + end.get());
        node.seal(extent, ONE).await.unwrap();
    });
}

#[test]
fn panic_of_the_checkpoints_poisons_the_disk_and_is_reported() {
    run(async {
        let Rig { node, env, traps, .. } = trapped(&[]).await;
        for id in 1..=60 {
            node.create(ExtentId::new(id), ExtentKind::Data, ONE).await.unwrap();
        }
        traps.extents.store(true, Ordering::Release);
        let stopped = || env.tasks.health().stopped().iter().any(|(task, _)| *task == "checkpoint");
        // More bytes than the journal holds.
        for id in 1..=60 {
            if append(&node, ExtentId::new(id), 0, 10_000).await.is_err() {
                break;
            }
        }
        assert!(stopped() && node.disks()[0].poisoned);
        assert!(store(&node, ExtentId::new(2_000), 100).await.is_err());
    });
}

/// A checkpoint that another task runs ends with that task. The journal must not release records
/// that this checkpoint had not yet written to the files.
#[test]
fn checkpoint_that_panicked_in_its_caller_loses_nothing() {
    run(async {
        let Rig { node, env, traps, sim } = trapped(&[]).await;
        let mut stored = Vec::new();
        for id in 1..=5 {
            stored.push(store(&node, ExtentId::new(id), 900).await.unwrap());
        }
        traps.extents.store(true, Ordering::Release);
        let of = Arc::clone(&node);
        let erasing = env.tasks.spawn("erase", async move { of.erase_journals().await });
        assert!(erasing.await.is_err(), "it did not panic");
        assert!(!node.disks()[0].poisoned);
        assert!(node.erase_journals().await.unwrap());
        let node = super::disks::open(vec![sim.restart_after_kill()]).await.unwrap();
        for location in &stored {
            let read = node.read(location, 0..location.len.get()).await.unwrap();
            assert_eq!(read.concat(), payload(location.extent.get(), 900), "{location:?}");
        }
        node.shutdown().await;
    });
}

/// A removed name may be back after a power failure, until the folder is synced.
#[test]
fn removal_that_panicked_before_its_sync_is_made_durable_by_the_next_try() {
    for seed in 0..8 {
        run(async {
            let Rig { node, traps, sim, .. } = trapped_by(seed, &[]).await;
            let extent = ExtentId::new(1);
            store(&node, extent, 100).await.unwrap();
            traps.names.store(true, Ordering::Release);
            let failed = node.remove(extent).await;
            assert!(matches!(failed, Err(Error::Ended { doing: "remove" })), "{failed:?}");
            node.remove(extent).await.unwrap();
            drop(node);
            let node = super::disks::open(vec![sim.restart_after_power_cut()]).await.unwrap();
            assert_eq!(node.extents().await, [], "seed {seed}");
        });
    }
}

#[test]
fn panic_of_a_drain_leaves_the_extent_where_it_is_until_the_next_round() {
    run(async {
        let first = SimDisk::new(2, 64 << 20);
        let Rig { node, traps, .. } = trapped(std::slice::from_ref(&first)).await;
        let mut stored = Vec::new();
        for id in 1..=6 {
            let extent = ExtentId::new(id);
            stored.push(store(&node, extent, 9_000).await.unwrap());
            node.seal(extent, ONE).await.unwrap();
        }
        traps.extents.store(true, Ordering::Release);
        assert!(node.set_draining(0, true));
        let drained = node.drain(0).await.unwrap();
        assert!(drained.error.is_some() && drained.left == 1, "{drained:?}");
        let drained = node.drain(0).await.unwrap();
        assert_eq!((drained.left, drained.error), (0, None));
        for location in &stored {
            let read = node.read(location, 0..location.len.get()).await.unwrap();
            assert_eq!(read.concat(), payload(location.extent.get(), 9_000));
        }
        node.shutdown().await;
    });
}
