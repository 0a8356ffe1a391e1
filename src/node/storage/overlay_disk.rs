//! A disk that keeps writes in memory and leaves the disk below unchanged. A check opens disks that
//! cannot be written to with it: recovery writes the content of the journal and the first pages of
//! extents that were open.
//!
//! Not for a node that serves: nothing becomes durable.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Mutex;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;
use crate::env::DiskTimes;
use crate::env::Space;

const PAGE: u64 = 4096;
const ZEROS: [u8; 4096] = [0; 4096];

/// A disk, and the writes since it was opened.
#[derive(Debug)]
pub(super) struct OverlayDisk {
    below: Arc<dyn Disk>,
    /// Files that were opened, by name. `None`: the file was removed.
    names: Mutex<BTreeMap<String, Option<OverlayEntry>>>,
}

/// A file that was opened.
#[derive(Clone, Debug)]
struct OverlayEntry {
    /// Its name below.
    below: Option<String>,
    written: Arc<Mutex<Written>>,
}

/// The difference to the file below.
#[derive(Debug, Default)]
struct Written {
    len: u64,
    /// The end of the bytes below that still belong to the file.
    below_end: u64,
    pages: BTreeMap<u64, Bytes>,
}

/// A file that exists.
struct Found {
    entry: OverlayEntry,
    below: Option<Arc<dyn DiskFile>>,
}

impl OverlayDisk {
    pub(super) fn over(below: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(Self { below, names: Mutex::default() })
    }

    /// The file of a name, with the open file below.
    async fn find(&self, path: &str) -> Result<Found, DiskError> {
        let missing = || DiskError::NotFound { path: path.to_owned() };
        let mut names = self.names.lock().await;
        match names.get(path) {
            Some(None) => Err(missing()),
            Some(Some(known)) => {
                let below = match &known.below {
                    Some(name) => Some(self.below.open(name).await?),
                    None => None,
                };
                Ok(Found { entry: known.clone(), below })
            }
            None => {
                let below = self.below.open(path).await?;
                let len = below.len().await?;
                let written = Written { len, below_end: len, pages: BTreeMap::new() };
                let written = Arc::new(Mutex::new(written));
                let known = OverlayEntry { below: Some(path.to_owned()), written };
                names.insert(path.to_owned(), Some(known.clone()));
                Ok(Found { entry: known, below: Some(below) })
            }
        }
    }
}

#[async_trait]
impl Disk for OverlayDisk {
    async fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let Found { entry, below } = self.find(path).await?;
        Ok(Arc::new(OverlayFile { below, written: entry.written }))
    }

    async fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let known = OverlayEntry { below: None, written: Arc::default() };
        let written = Arc::clone(&known.written);
        self.names.lock().await.insert(path.to_owned(), Some(known));
        Ok(Arc::new(OverlayFile { below: None, written }))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let Found { entry, .. } = self.find(from).await?;
        let mut names = self.names.lock().await;
        names.insert(from.to_owned(), None);
        names.insert(to.to_owned(), Some(entry));
        Ok(())
    }

    async fn remove(&self, path: &str) -> Result<(), DiskError> {
        self.names.lock().await.insert(path.to_owned(), None);
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, DiskError> {
        let below = self.below.list(folder).await?;
        let names = self.names.lock().await;
        let is_inside = |name: &str| {
            let rest = name.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let old = below.into_iter().filter(|name| !names.contains_key(name));
        let new = names.iter().filter(|(name, known)| known.is_some() && is_inside(name));
        let mut all: Vec<String> = old.chain(new.map(|(name, _)| name.clone())).collect();
        all.sort_unstable();
        Ok(all)
    }

    async fn sync_dir(&self, _folder: &str) -> Result<(), DiskError> {
        Ok(())
    }

    async fn space(&self) -> Result<Space, DiskError> {
        self.below.space().await
    }

    fn times(&self) -> Option<&DiskTimes> {
        self.below.times()
    }

    fn root(&self) -> Option<&Path> {
        self.below.root()
    }
}

/// An open file of an [`OverlayDisk`].
#[derive(Debug)]
struct OverlayFile {
    below: Option<Arc<dyn DiskFile>>,
    written: Arc<Mutex<Written>>,
}

impl OverlayFile {
    /// `len` bytes of the file below, with zeros behind its end.
    async fn old(&self, written: &Written, offset: u64, len: u64) -> Result<Vec<u8>, DiskError> {
        let end = (offset + len).min(written.below_end);
        let mut bytes = Vec::new();
        if let Some(below) = self.below.as_ref().filter(|_| offset < end) {
            bytes = below.read_at(offset, size(end - offset)).await?.into();
        }
        bytes.resize(size(len), 0);
        Ok(bytes)
    }
}

#[async_trait]
impl DiskFile for OverlayFile {
    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, DiskError> {
        let written = self.written.lock().await;
        let end = offset.saturating_add(wide(len)).min(written.len);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let mut bytes = self.old(&written, offset, end - offset).await?;
        for (number, page) in written.pages.range(offset / PAGE..end.div_ceil(PAGE)) {
            let at = number * PAGE;
            let (from, to) = (at.max(offset), (at + PAGE).min(end));
            copy(page, size(from - at), &mut bytes, size(from - offset), size(to - from));
        }
        Ok(bytes.into())
    }

    async fn write_at(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        let mut written = self.written.lock().await;
        let bytes = pieces.concat();
        let end = offset + wide(bytes.len());
        for number in offset / PAGE..end.div_ceil(PAGE) {
            let at = number * PAGE;
            let mut page = match written.pages.get(&number) {
                Some(page) => page.to_vec(),
                None => self.old(&written, at, PAGE).await?,
            };
            let (from, to) = (at.max(offset), (at + PAGE).min(end));
            copy(&bytes, size(from - offset), &mut page, size(from - at), size(to - from));
            written.pages.insert(number, page.into());
        }
        written.len = written.len.max(end);
        Ok(())
    }

    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        self.write_at(offset, pieces).await
    }

    async fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }

    async fn drop_cache(&self) -> Result<(), DiskError> {
        // A disk that takes no writes may refuse the sync that this includes.
        if let Some(below) = &self.below {
            drop(below.drop_cache().await);
        }
        Ok(())
    }

    async fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        let mut written = self.written.lock().await;
        written.len = written.len.max(offset + len);
        Ok(())
    }

    async fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        let mut written = self.written.lock().await;
        for number in offset.div_ceil(PAGE)..(offset + len) / PAGE {
            written.pages.insert(number, Bytes::from_static(&ZEROS));
        }
        Ok(())
    }

    async fn set_len(&self, len: u64) -> Result<(), DiskError> {
        let mut written = self.written.lock().await;
        written.below_end = written.below_end.min(len);
        written.pages.split_off(&len.div_ceil(PAGE));
        let last = len / PAGE;
        if let Some(page) = written.pages.get(&last) {
            let mut page = page.to_vec();
            page.truncate(size(len % PAGE));
            page.resize(ZEROS.len(), 0);
            written.pages.insert(last, page.into());
        }
        written.len = len;
        Ok(())
    }

    async fn len(&self) -> Result<u64, DiskError> {
        Ok(self.written.lock().await.len)
    }

    async fn allocated(&self) -> Result<u64, DiskError> {
        match &self.below {
            Some(below) => below.allocated().await,
            None => self.len().await,
        }
    }
}

/// Copies `len` bytes of `from` into `to`.
fn copy(from: &[u8], from_at: usize, to: &mut [u8], to_at: usize, len: usize) {
    let from = from.get(from_at..from_at + len);
    if let (Some(from), Some(to)) = (from, to.get_mut(to_at..to_at + len)) {
        to.copy_from_slice(from);
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::OsDisk;
    use crate::node::testing::env;

    async fn all(disk: &Arc<dyn Disk>, path: &str) -> Vec<u8> {
        let file = disk.open(path).await.unwrap();
        file.read_at(0, 1 << 20).await.unwrap().to_vec()
    }

    /// Against a disk that is written to: both give the same bytes and names, and the one below
    /// the overlay keeps its own.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn overlay_reads_as_a_disk_that_was_written_and_leaves_the_one_below_as_it_was() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let env = env();
        let disks = folders.each_ref().map(|at| OsDisk::open(at.path(), env.tasks.clone()));
        let [below, twin] = disks.map(Result::unwrap);
        let old: Bytes = (0..20_000u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        for disk in [&below, &twin] {
            for name in ["extents/a", "extents/b", "extents/c"] {
                let file = disk.create(name).await.unwrap();
                file.write_at(0, vec![old.clone()]).await.unwrap();
            }
        }
        let overlay = OverlayDisk::over(Arc::clone(&below));
        for disk in [&overlay, &twin] {
            let file = disk.open("extents/a").await.unwrap();
            let pieces = vec![vec![1; 5_000].into(), vec![2; 9_000].into()];
            file.write_sync(3_000, pieces).await.unwrap();
            file.set_len(12_345).await.unwrap();
            file.set_len(14_000).await.unwrap();
            file.write_at(30_000, vec![vec![3; 10].into()]).await.unwrap();
            file.punch_hole(4_000, 5_000).await.unwrap();
            file.allocate(30_000, 9_000).await.unwrap();
            assert_eq!(file.read_at(12_000, 500).await.unwrap().len(), 500);
            file.drop_cache().await.unwrap();
            file.sync().await.unwrap();
            disk.rename("extents/b", "extents/d").await.unwrap();
            disk.remove("extents/c").await.unwrap();
            let new = disk.create("extents/e").await.unwrap();
            new.write_at(10, vec![old.clone()]).await.unwrap();
            disk.sync_dir("extents").await.unwrap();
        }
        let names = overlay.list("extents").await.unwrap();
        assert_eq!(names, twin.list("extents").await.unwrap());
        for name in names {
            assert!(all(&overlay, &name).await == all(&twin, &name).await, "{name}");
        }
        let gone = overlay.open("extents/c").await;
        assert!(matches!(gone, Err(DiskError::NotFound { .. })), "{gone:?}");
        let kept = below.list("extents").await.unwrap();
        assert_eq!(kept, ["extents/a", "extents/b", "extents/c"]);
        for name in kept {
            assert_eq!(all(&below, &name).await, old, "{name}");
        }
        env.tasks.shutdown().await;
    }
}
