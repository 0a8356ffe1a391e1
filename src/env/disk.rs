//! The interface of a disk.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error;

use crate::env::DiskTimes;

/// Why a disk operation failed. Each variant demands another reaction of the caller.
#[derive(Clone, Debug, Error)]
pub enum DiskError {
    /// The path does not exist.
    #[error("{path} does not exist")]
    NotFound {
        /// The path, relative to the disk.
        path: String,
    },
    /// No space is left: free some, then try again. No bytes were written, or only bytes beyond the
    /// old end of the file, whose content is undefined.
    #[error("no space left on the disk")]
    Full,
    /// The process or the system has too many files open, and the disk has already waited for some
    /// to be closed. Raise the limit, or try again later. The operation had no effect.
    #[error("{action} failed on {path}: too many files are open")]
    TooManyFiles {
        /// The operation: `open`, `create`, ...
        action: &'static str,
        /// The path, relative to the disk.
        path: String,
    },
    /// A read, write or sync failed. After a failed write or sync the state of the file is unknown.
    #[error("{action} failed on {path}: {kind}")]
    Io {
        /// The operation: `read`, `write`, `sync`, ...
        action: &'static str,
        /// The path, relative to the disk.
        path: String,
        /// The system's error.
        kind: io::ErrorKind,
    },
    /// Another process uses the data directory.
    #[error("it is in use by {by}")]
    Locked {
        /// The process, such as `process 17 (blockyard)`.
        by: String,
    },
}

impl DiskError {
    /// Whether the device or its file system may be at fault, rather than the request.
    #[must_use]
    pub fn is_of_device(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::Full
            | Self::TooManyFiles { .. }
            | Self::Locked { .. } => false,
            // The system's code for a failed device has no kind, so the other kinds are excluded.
            Self::Io { kind, .. } => ![
                io::ErrorKind::PermissionDenied,
                io::ErrorKind::NotADirectory,
                io::ErrorKind::IsADirectory,
                io::ErrorKind::AlreadyExists,
                io::ErrorKind::InvalidInput,
                io::ErrorKind::OutOfMemory,
                io::ErrorKind::Interrupted,
            ]
            .contains(kind),
        }
    }
}

/// Space of the file system under a disk, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its size.
    pub total: u64,
    /// Bytes that an unprivileged writer may still use.
    pub available: u64,
    /// The number of the file system. Disks with the same number share their space. With `None` the
    /// disk shares its space with no other.
    pub file_system: Option<u64>,
}

/// One data directory: a flat tree of files named by relative paths such as
/// `extents/3f/000000000000003f.x`.
///
/// Durable means: survives power loss. A file's bytes are durable after [`DiskFile::sync`]; a new,
/// renamed or removed name is durable after [`Disk::sync_dir`] of its folder.
#[async_trait]
pub trait Disk: Send + Sync + Debug {
    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], [`DiskError::Io`].
    async fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError>;

    /// Creates an empty file (and its folder), truncating one that exists.
    ///
    /// # Errors
    /// [`DiskError::Full`], [`DiskError::Io`].
    async fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError>;

    /// Atomically gives a file another name and replaces the file that had it.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], [`DiskError::Io`].
    async fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file; one that does not exist counts as removed.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn remove(&self, path: &str) -> Result<(), DiskError>;

    /// Names of the files below a folder, at any depth, sorted; none when the folder does not
    /// exist.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn list(&self, folder: &str) -> Result<Vec<String>, DiskError>;

    /// Makes the names in a folder durable (`""` is the data directory itself).
    ///
    /// # Errors
    /// [`DiskError::Io`]: treat the disk as failed.
    async fn sync_dir(&self, folder: &str) -> Result<(), DiskError>;

    /// Space of the file system.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn space(&self) -> Result<Space, DiskError>;

    /// How long its writes and syncs took; `None` if that is not measured.
    fn times(&self) -> Option<&DiskTimes>;

    /// The data directory, for log lines; `None` for a disk without one.
    fn root(&self) -> Option<&Path> {
        None
    }
}

/// An open file. Calls may run concurrently, except for writes to overlapping ranges.
///
/// Not cancel-safe: a dropped call may still take effect.
#[async_trait]
#[expect(
    clippy::len_without_is_empty,
    reason = "a file is asked for its length, never for emptiness"
)]
pub trait DiskFile: Send + Sync + Debug {
    /// Reads up to `len` bytes at `offset`; fewer only at the end of the file.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, DiskError>;

    /// Writes the pieces one after the other at `offset`, growing the file if needed. Not durable
    /// until [`Self::sync`].
    ///
    /// # Errors
    /// [`DiskError::Full`], [`DiskError::Io`].
    async fn write_at(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError>;

    /// [`Self::write_at`] and then [`Self::sync`], with one switch to a thread of the pool.
    ///
    /// # Errors
    /// The errors of both.
    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError>;

    /// Makes all bytes written before the call durable (`fdatasync`).
    ///
    /// # Errors
    /// [`DiskError::Io`]: the bytes written since the last successful sync may be lost. Do not try
    /// again; poison the disk.
    async fn sync(&self) -> Result<(), DiskError>;

    /// Syncs, then removes the file from the system's cache, so that later reads come from the
    /// device. For a start after a crash: a sync that failed before the crash may have left bytes
    /// in the cache that are marked as written and that the device never got. Pages that another
    /// process reads at the same time may stay in the cache.
    ///
    /// # Errors
    /// [`DiskError::Io`], as of [`Self::sync`].
    async fn drop_cache(&self) -> Result<(), DiskError>;

    /// Reserves space for `offset..offset + len` and grows the file to hold it, so that later
    /// writes there cannot meet a full disk. Reads of reserved bytes give zeros.
    ///
    /// # Errors
    /// [`DiskError::Full`], [`DiskError::Io`].
    async fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError>;

    /// Frees the space of the whole 4 KiB pages inside the range. They read as zeros. The file
    /// keeps its length.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError>;

    /// Shortens or extends the file.
    ///
    /// # Errors
    /// [`DiskError::Full`], [`DiskError::Io`].
    async fn set_len(&self, len: u64) -> Result<(), DiskError>;

    /// Length, bytes.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn len(&self) -> Result<u64, DiskError>;

    /// Bytes of disk space that the file takes. Less than its length if it has holes.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn allocated(&self) -> Result<u64, DiskError>;
}
