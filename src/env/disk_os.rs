//! The disk of a real machine: one directory of a local file system.
//!
//! Reads of cached bytes and small buffered writes run on the calling thread. All other calls run
//! on the blocking pool, with one switch of threads each.

#![expect(clippy::disallowed_methods, reason = "the seam")]

mod calls;
mod folders;

use std::fs;
use std::fs::File;
use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;
use crate::env::DiskTimes;
use crate::env::Space;
use crate::env::Tasks;
use crate::env::lock_holder;
use crate::env::system;
use crate::env::system::Refusal;
use crate::env::system::Room;
use crate::env::system::sync_folder;

use calls::Cached;
use calls::allocate;
use calls::data_sync;
use calls::forget;
use calls::punch;
use calls::read_cached;
use calls::read_rest;
use calls::write_all;
pub use folders::make_folder;
use folders::{create_folder, list_into, sync_name};

/// Reads of up to this many bytes are first tried from the page cache on the calling thread.
/// Copying more takes longer than a switch to the pool and would block a thread of the runtime.
const INLINE_READ_BYTES_MAX: usize = 128 * 1024;

/// Buffered writes of up to this many bytes run on the calling thread: they only copy into the page
/// cache. Measured on ext4 with a loop of syncs on the same file: 256 KiB take 28 us (median) and
/// 0.2 ms (99 %), 4 KiB take 5 us and 39 us.
const INLINE_WRITE_BYTES_MAX: usize = 256 * 1024;

/// Pauses before work is tried again while too many files are open: 10 s together.
const FILE_PAUSES_MS: [u64; 12] = [1, 2, 5, 20, 100, 500, 1_000, 1_000, 1_372, 2_000, 2_000, 2_000];

/// The unit of holes: the kernel frees whole pages only.
const PAGE_BYTES: u64 = 4096;

/// The file in the data directory that a process locks while it uses the directory. It is not a
/// path of the disk.
pub const LOCK_NAME: &str = "lock";

/// A data directory. It is locked against other processes until the disk and all its files are
/// dropped.
#[derive(Debug)]
pub struct OsDisk {
    root: PathBuf,
    lock: Arc<File>,
    tasks: Tasks,
    /// Held while folders are made, so that a folder that exists is durable for all callers.
    folders: Arc<Mutex<()>>,
    times: Arc<DiskTimes>,
}

impl OsDisk {
    /// Creates the directory if needed and locks it. Blocks; meant for the start of the program.
    ///
    /// # Errors
    /// [`DiskError::Locked`] if another process uses it, [`DiskError::Full`], [`DiskError::Io`].
    pub fn open(root: &Path, tasks: Tasks) -> Result<Arc<dyn Disk>, DiskError> {
        Self::open_locked_by(root, LOCK_NAME, tasks)
    }

    /// As [`Self::open`], for a directory that is also used otherwise. Only a process that locks
    /// the same file is kept out.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn open_locked_by(
        root: &Path,
        lock_name: &str,
        tasks: Tasks,
    ) -> Result<Arc<dyn Disk>, DiskError> {
        Ok(Arc::new(Self::lock(root, lock_name, tasks)?))
    }

    fn lock(root: &Path, lock_name: &str, tasks: Tasks) -> Result<Self, DiskError> {
        let shown = root.display().to_string();
        let root = std::path::absolute(root).map_err(|error| failed("open", &shown, &error))?;
        create_folder(&root)
            .and_then(|()| sync_name(&root))
            .map_err(|error| failed("create", &shown, &error))?;
        let lock = open_lock(&root, &root.join(lock_name));
        let lock = lock.map_err(|error| failed("open", lock_name, &error))?;
        match lock.try_lock() {
            Ok(()) => {
                let (lock, folders, times) = (Arc::new(lock), Arc::default(), Arc::default());
                Ok(Self { root, lock, tasks, folders, times })
            }
            Err(TryLockError::WouldBlock) => {
                Err(DiskError::Locked { by: lock_holder::name(&lock) })
            }
            Err(TryLockError::Error(error)) => Err(failed("lock", lock_name, &error)),
        }
    }

    /// Runs blocking work on the pool. Its error names `path`. Work is tried again while the
    /// process or the system has too many files open: connections are closed in time, and a disk is
    /// poisoned if the file of an extent cannot be opened for writing. The pauses occupy no thread
    /// of the pool, since the syncs of all disks need these threads.
    async fn run<T, F>(&self, action: &'static str, path: &str, work: F) -> Result<T, DiskError>
    where
        T: Send + 'static,
        F: Fn(&Path) -> io::Result<T> + Send + Sync + 'static,
    {
        let work = Arc::new((self.root.join(path), work));
        let once = || {
            let work = Arc::clone(&work);
            pooled(&self.tasks, action, path, move || work.1(&work.0))
        };
        for pause in FILE_PAUSES_MS {
            match once().await {
                Err(DiskError::TooManyFiles { .. }) => {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                done => return done,
            }
        }
        once().await
    }

    async fn file(
        &self,
        action: &'static str,
        path: &str,
        new: bool,
    ) -> Result<Arc<dyn DiskFile>, DiskError> {
        let folders = Arc::clone(&self.folders);
        let file = self.run(action, path, move |full| open_file(full, new, &folders)).await?;
        Ok(Arc::new(OsFile {
            file: Arc::new(file),
            path: path.into(),
            tasks: self.tasks.clone(),
            times: Arc::clone(&self.times),
            _lock: Arc::clone(&self.lock),
        }))
    }
}

#[async_trait]
impl Disk for OsDisk {
    async fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.file("open", path, false).await
    }

    async fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.file("create", path, true).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let target = self.root.join(to);
        let folders = Arc::clone(&self.folders);
        self.run("rename", from, move |full| {
            create_parent(&target, &folders)?;
            fs::rename(full, &target)
        })
        .await
    }

    async fn remove(&self, path: &str) -> Result<(), DiskError> {
        self.run("remove", path, |full| match fs::remove_file(full) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        })
        .await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, DiskError> {
        let root = self.root.clone();
        self.run("list", folder, move |full| {
            let mut names = Vec::new();
            list_into(&root, full, &mut names)?;
            names.retain(|name| name != LOCK_NAME);
            names.sort_unstable();
            Ok(names)
        })
        .await
    }

    async fn sync_dir(&self, folder: &str) -> Result<(), DiskError> {
        let times = Arc::clone(&self.times);
        // A folder that does not exist has no names to lose.
        self.run("sync", folder, move |full| match timed_sync(&times, || sync_folder(full)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        })
        .await
        .map_err(|error| sync_failed(error, folder))
    }

    async fn space(&self) -> Result<Space, DiskError> {
        let lock = Arc::clone(&self.lock);
        pooled(&self.tasks, "space", "", move || {
            let Room { total, available } = system::room(&lock)?;
            Ok(Space { file_system: system::device(&lock.metadata()?), total, available })
        })
        .await
    }

    fn times(&self) -> Option<&DiskTimes> {
        Some(&self.times)
    }

    fn root(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

/// An open file of an [`OsDisk`].
#[derive(Debug)]
struct OsFile {
    file: Arc<File>,
    path: Arc<str>,
    tasks: Tasks,
    times: Arc<DiskTimes>,
    _lock: Arc<File>,
}

impl OsFile {
    async fn run<T, F>(&self, action: &'static str, work: F) -> Result<T, DiskError>
    where
        T: Send + 'static,
        F: FnOnce(&File) -> io::Result<T> + Send + 'static,
    {
        let file = Arc::clone(&self.file);
        pooled(&self.tasks, action, &self.path, move || work(&file)).await
    }
}

#[async_trait]
impl DiskFile for OsFile {
    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, DiskError> {
        let mut bytes = Vec::new();
        if len <= INLINE_READ_BYTES_MAX {
            match read_cached(&self.file, offset, len) {
                Ok(Cached::All(found)) => return Ok(found.into()),
                Ok(Cached::Start(found)) => bytes = found,
                Err(error) => return Err(failed("read", &self.path, &error)),
            }
        }
        self.run("read", move |file| read_rest(file, offset, len, bytes)).await.map(Bytes::from)
    }

    async fn write_at(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        if pieces.iter().map(Bytes::len).sum::<usize>() <= INLINE_WRITE_BYTES_MAX {
            return timed_write(&self.times, || write_all(&self.file, offset, &pieces))
                .map_err(|error| failed("write", &self.path, &error));
        }
        let times = Arc::clone(&self.times);
        self.run("write", move |file| timed_write(&times, || write_all(file, offset, &pieces)))
            .await
    }

    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        let times = Arc::clone(&self.times);
        // The outer result is that of the write, the inner one that of the sync. Only a write may
        // report a full disk.
        let synced = self
            .run("write", move |file| {
                timed_write(&times, || write_all(file, offset, &pieces))?;
                Ok(timed_sync(&times, || data_sync(file)))
            })
            .await?;
        synced.map_err(|error| sync_failed(failed("sync", &self.path, &error), &self.path))
    }

    async fn sync(&self) -> Result<(), DiskError> {
        let times = Arc::clone(&self.times);
        self.run("sync", move |file| timed_sync(&times, || data_sync(file)))
            .await
            .map_err(|error| sync_failed(error, &self.path))
    }

    async fn drop_cache(&self) -> Result<(), DiskError> {
        self.run("sync", |file| {
            data_sync(file)?;
            forget(file)
        })
        .await
        .map_err(|error| sync_failed(error, &self.path))
    }

    async fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        if len == 0 {
            return Ok(());
        }
        self.run("allocate", move |file| allocate(file, offset, len)).await
    }

    async fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        let start = offset.next_multiple_of(PAGE_BYTES);
        let end = (offset + len) / PAGE_BYTES * PAGE_BYTES;
        if start >= end {
            return Ok(());
        }
        self.run("punch hole", move |file| punch(file, start, end - start)).await
    }

    async fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.run("set length", move |file| file.set_len(len)).await
    }

    async fn len(&self) -> Result<u64, DiskError> {
        // The inode is in memory while the file is open, so this needs no switch to the pool.
        self.file
            .metadata()
            .map(|found| found.len())
            .map_err(|error| failed("stat", &self.path, &error))
    }

    async fn allocated(&self) -> Result<u64, DiskError> {
        self.file
            .metadata()
            .map(|found| system::allocated(&found))
            .map_err(|error| failed("stat", &self.path, &error))
    }
}

async fn pooled<T, F>(
    tasks: &Tasks,
    action: &'static str,
    path: &str,
    work: F,
) -> Result<T, DiskError>
where
    T: Send + 'static,
    F: FnOnce() -> io::Result<T> + Send + 'static,
{
    match tasks.spawn_blocking(action, work).await {
        Ok(result) => result.map_err(|error| failed(action, path, &error)),
        // The work panicked, or the runtime is being shut down. The outcome is unknown.
        Err(_) => {
            Err(DiskError::Io { action, path: path.to_owned(), kind: io::ErrorKind::Interrupted })
        }
    }
}

fn failed(action: &'static str, path: &str, error: &io::Error) -> DiskError {
    let kind = match system::kind(error) {
        Some(Refusal::ReadOnly) => io::ErrorKind::ReadOnlyFilesystem,
        Some(Refusal::TooManyFiles) => {
            return DiskError::TooManyFiles { action, path: path.to_owned() };
        }
        None => error.kind(),
    };
    if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        DiskError::Full
    } else if kind == io::ErrorKind::NotFound {
        DiskError::NotFound { path: path.to_owned() }
    } else {
        DiskError::Io { action, path: path.to_owned(), kind }
    }
}

fn timed_write<T>(times: &DiskTimes, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    times.wrote(begun.elapsed());
    done
}

fn timed_sync<T>(times: &DiskTimes, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    times.synced(begun.elapsed());
    done
}

/// The error of a failed sync. If a sync fails for lack of space, bytes are lost that the file
/// system had accepted, so this is never [`DiskError::Full`].
fn sync_failed(error: DiskError, path: &str) -> DiskError {
    match error {
        DiskError::Full => DiskError::Io {
            action: "sync",
            path: path.to_owned(),
            kind: io::ErrorKind::StorageFull,
        },
        DiskError::NotFound { .. }
        | DiskError::TooManyFiles { .. }
        | DiskError::Io { .. }
        | DiskError::Locked { .. } => error,
    }
}

/// Syncs a file and removes it from the system's cache, before a library opens it.
/// [`DiskFile::drop_cache`] says why. Blocks.
///
/// # Errors
/// The system's.
pub fn forget_cached(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    data_sync(&file)?;
    forget(&file)
}

/// Free bytes of the file system on which a file is or would be made. Blocks.
///
/// # Errors
/// The system's.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(system::room_at(folder.unwrap_or(Path::new(".")))?.available)
}

/// Opens the lock file. On a read-only file system without a lock file, the folder is locked
/// instead.
fn open_lock(root: &Path, path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    match system::private(&mut options).open(path) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::open(root),
            opened => opened,
        },
        opened => opened,
    }
}

/// Opens a file. On a file system that became read-only after an error, an existing file is opened
/// for reading.
fn open_file(full: &Path, new: bool, folders: &Mutex<()>) -> io::Result<File> {
    if new {
        create_parent(full, folders)?;
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(new).truncate(new);
    match system::private(&mut options).open(full) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem && !new => File::open(full),
        opened => opened,
    }
}

fn create_parent(full: &Path, folders: &Mutex<()>) -> io::Result<()> {
    let _one = folders.lock().unwrap_or_else(PoisonError::into_inner);
    full.parent().map_or(Ok(()), create_folder)
}

#[cfg(test)]
mod tests;
