//! Tasks that panic: nobody waits for ever, and what cannot go on is stopped loudly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::disks::{env, run, store};
use super::node::ONE;
use super::payload;
use crate::capacity::*;
use crate::env::disk_sim::SimDisk;
use crate::env::{Disk, DiskError, DiskFile, DiskTimes, Space};
use crate::types::ExtentId;

/// A disk whose files panic when they are told to.
#[derive(Clone, Debug)]
struct Trapped<T: ?Sized> {
    inner: Arc<T>,
    armed: Arc<AtomicBool>,
}

type Answer<T> = Result<T, DiskError>;

impl<T: ?Sized> Trapped<T> {
    fn spring(&self) {
        assert!(!self.armed.swap(false, Ordering::AcqRel), "sprung");
    }

    fn file(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(Trapped { inner: file, armed: Arc::clone(&self.armed) })
    }
}

#[async_trait]
impl Disk for Trapped<dyn Disk> {
    async fn open(&self, path: &str) -> Answer<Arc<dyn DiskFile>> {
        Ok(self.file(self.inner.open(path).await?))
    }
    async fn create(&self, path: &str) -> Answer<Arc<dyn DiskFile>> {
        Ok(self.file(self.inner.create(path).await?))
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

async fn trapped() -> (Arc<CapacityNode>, crate::env::Env, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    let inner = SimDisk::new(1, 64 << 20).disk();
    let disk = Arc::new(Trapped { inner, armed: Arc::clone(&armed) });
    let env = env(1);
    let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
    let node = CapacityNode::open(vec![disk], env.clone(), config, metrics).await.unwrap();
    (node, env, armed)
}

async fn append(
    node: &CapacityNode,
    extent: ExtentId,
    offset: u64,
    len: u64,
) -> Result<Appended, Error> {
    let payloads = vec![vec![payload(3, len)]];
    let durability = Durability::Durable;
    let append = node.append(AppendRequest { extent, epoch: ONE, offset, payloads, durability });
    tokio::time::timeout(Duration::from_secs(60), append).await.expect("an append hangs")
}

#[test]
fn panic_of_the_journal_poisons_the_disk_and_is_told() {
    run(async {
        let (node, env, armed) = trapped().await;
        let extent = ExtentId::new(1);
        let first = store(&node, extent, 100).await.unwrap();
        armed.store(true, Ordering::Release);
        let end = end_after(0, &[100]);
        let failed = append(&node, extent, end, 100).await;
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        let again = append(&node, extent, end, 100).await;
        assert!(again.is_err(), "{again:?}");
        assert_eq!(node.read(&first, 0..100).await.unwrap().concat(), payload(1, 100));
        assert!(node.disks()[0].poisoned);
        let stopped = env.tasks.health().stopped();
        assert!(stopped.iter().any(|(task, _)| *task == "journal"), "{stopped:?}");
    });
}

#[test]
fn panic_of_one_append_is_no_poisoned_disk() {
    run(async {
        let (node, _, armed) = trapped().await;
        let (extent, other) = (ExtentId::new(1), ExtentId::new(2));
        store(&node, extent, 100).await.unwrap();
        store(&node, other, 100).await.unwrap();
        armed.store(true, Ordering::Release);
        let end = end_after(0, &[100]);
        let failed = append(&node, extent, end, 500_000).await;
        assert!(matches!(failed, Err(Error::Ended { doing: "append" })), "{failed:?}");
        assert!(!node.disks()[0].poisoned);
        append(&node, other, end, 500_000).await.unwrap();
        node.seal(extent, ONE).await.unwrap();
    });
}
