//! The disk of a backup of a serving node. Each call records a step of the backup; after the backup
//! is given up, calls fail. All calls run on threads of their own: the directory may be on a mount
//! that does not answer, and threads that serve requests must not wait for it.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;
use crate::env::DiskTimes;
use crate::env::Space;
use crate::env::Tasks;

use super::attempt::Attempt;

/// State that the disk and its files use.
#[derive(Clone, Debug)]
struct Watch {
    attempt: Arc<Attempt>,
    tasks: Tasks,
}

impl Watch {
    async fn run<T, F>(&self, action: &'static str, path: &str, call: F) -> Result<T, DiskError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DiskError>> + Send + 'static,
    {
        let failed = |kind| DiskError::Io { action, path: path.to_owned(), kind };
        if self.attempt.go_on().is_err() {
            return Err(failed(io::ErrorKind::TimedOut));
        }
        let runtime = Handle::current();
        let done = self.tasks.spawn_blocking(action, move || runtime.block_on(call)).await;
        // If the backup was given up meanwhile, the next call fails.
        drop(self.attempt.go_on());
        done.unwrap_or_else(|_| Err(failed(io::ErrorKind::Interrupted)))
    }
}

/// A disk whose calls are steps of a backup.
#[derive(Debug)]
pub(super) struct WatchedDisk {
    inner: Arc<dyn Disk>,
    watch: Watch,
}

impl WatchedDisk {
    pub(super) fn over(inner: Arc<dyn Disk>, attempt: Arc<Attempt>, tasks: Tasks) -> Arc<dyn Disk> {
        Arc::new(Self { inner, watch: Watch { attempt, tasks } })
    }

    fn file(&self, path: &str, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(WatchedFile { inner, path: path.into(), watch: self.watch.clone() })
    }
}

#[async_trait]
impl Disk for WatchedDisk {
    async fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let (disk, name) = (Arc::clone(&self.inner), path.to_owned());
        let opened = self.watch.run("open", path, async move { disk.open(&name).await }).await;
        opened.map(|inner| self.file(path, inner))
    }

    async fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let (disk, name) = (Arc::clone(&self.inner), path.to_owned());
        let made = self.watch.run("create", path, async move { disk.create(&name).await }).await;
        made.map(|inner| self.file(path, inner))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let (disk, old, new) = (Arc::clone(&self.inner), from.to_owned(), to.to_owned());
        self.watch.run("rename", from, async move { disk.rename(&old, &new).await }).await
    }

    async fn remove(&self, path: &str) -> Result<(), DiskError> {
        let (disk, name) = (Arc::clone(&self.inner), path.to_owned());
        self.watch.run("remove", path, async move { disk.remove(&name).await }).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, DiskError> {
        let (disk, name) = (Arc::clone(&self.inner), folder.to_owned());
        self.watch.run("list", folder, async move { disk.list(&name).await }).await
    }

    async fn sync_dir(&self, folder: &str) -> Result<(), DiskError> {
        let (disk, name) = (Arc::clone(&self.inner), folder.to_owned());
        self.watch.run("sync", folder, async move { disk.sync_dir(&name).await }).await
    }

    async fn space(&self) -> Result<Space, DiskError> {
        let disk = Arc::clone(&self.inner);
        self.watch.run("space", "", async move { disk.space().await }).await
    }

    fn times(&self) -> Option<&DiskTimes> {
        self.inner.times()
    }

    fn root(&self) -> Option<&Path> {
        self.inner.root()
    }
}

#[derive(Debug)]
struct WatchedFile {
    inner: Arc<dyn DiskFile>,
    path: Arc<str>,
    watch: Watch,
}

impl WatchedFile {
    async fn run<T, F, C>(&self, action: &'static str, call: C) -> Result<T, DiskError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DiskError>> + Send + 'static,
        C: FnOnce(Arc<dyn DiskFile>) -> F,
    {
        self.watch.run(action, &self.path, call(Arc::clone(&self.inner))).await
    }
}

#[async_trait]
impl DiskFile for WatchedFile {
    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, DiskError> {
        self.run("read", |file| async move { file.read_at(offset, len).await }).await
    }

    async fn write_at(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        self.run("write", |file| async move { file.write_at(offset, pieces).await }).await
    }

    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        self.run("write", |file| async move { file.write_sync(offset, pieces).await }).await
    }

    async fn sync(&self) -> Result<(), DiskError> {
        self.run("sync", |file| async move { file.sync().await }).await
    }

    async fn drop_cache(&self) -> Result<(), DiskError> {
        self.run("sync", |file| async move { file.drop_cache().await }).await
    }

    async fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.run("allocate", |file| async move { file.allocate(offset, len).await }).await
    }

    async fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.run("punch hole", |file| async move { file.punch_hole(offset, len).await }).await
    }

    async fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.run("set length", |file| async move { file.set_len(len).await }).await
    }

    async fn len(&self) -> Result<u64, DiskError> {
        self.run("stat", |file| async move { file.len().await }).await
    }

    async fn allocated(&self) -> Result<u64, DiskError> {
        self.run("stat", |file| async move { file.allocated().await }).await
    }
}
