//! The disk seam.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error;

use crate::env::DiskTimes;

/// Why a disk operation failed; each variant is a different next step for the caller.
#[derive(Clone, Debug, Error)]
pub enum DiskError {
    /// The path does not exist.
    #[error("{path} does not exist")]
    NotFound {
        /// The path, relative to the disk.
        path: String,
    },
    /// No space is left: free some, then try again. Nothing was written, or garbage beyond the
    /// file's old end.
    #[error("no space left on the disk")]
    Full,
    /// The process or the system has too many files open, and had for as long as the disk waits:
    /// raise the limit, or try again when others are closed. Nothing was done.
    #[error("{action} failed on {path}: too many files are open")]
    TooManyFiles {
        /// What was tried: `open`, `create`, ...
        action: &'static str,
        /// The path, relative to the disk.
        path: String,
    },
    /// A read, write or sync failed; after a failed write or sync the state of the file is unknown.
    #[error("{action} failed on {path}: {kind}")]
    Io {
        /// What was tried: `read`, `write`, `sync`, ...
        action: &'static str,
        /// The path, relative to the disk.
        path: String,
        /// The system's error.
        kind: io::ErrorKind,
    },
    /// Another process has the data directory open.
    #[error("it is in use by {by}")]
    Locked {
        /// The process, such as `process 17 (blockyard)`.
        by: String,
    },
}

impl DiskError {
    /// Whether it may tell that the device or its file system fails, rather than what it was asked
    /// for.
    #[must_use]
    pub fn is_of_device(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::Full
            | Self::TooManyFiles { .. }
            | Self::Locked { .. } => false,
            // The system's code for a failed device has no kind of its own.
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
    /// All of it.
    pub total: u64,
    /// What an unprivileged writer may still use.
    pub available: u64,
    /// Which file system it is: disks with the same number share their space. `None` shares with no
    /// other.
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

    /// Atomically gives a file another name, replacing what had it.
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

    /// How long its writes and syncs took; `None` where nobody measures.
    fn times(&self) -> Option<&DiskTimes>;

    /// The data directory, for log lines; `None` where there is none.
    fn root(&self) -> Option<&Path> {
        None
    }
}

/// An open file. Calls may run at the same time; writes to overlapping ranges must not.
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

    /// [`Self::write_at`] then [`Self::sync`] in one trip to the disk's thread.
    ///
    /// # Errors
    /// As of both.
    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError>;

    /// Makes all bytes written before the call durable (`fdatasync`).
    ///
    /// # Errors
    /// [`DiskError::Io`]: what was written since the last good sync may be lost; never call it
    /// again, poison the disk.
    async fn sync(&self) -> Result<(), DiskError>;

    /// Syncs, then forgets what the system has cached of the file, so that reads come from the
    /// device. For a start after a crash: a sync that failed before it may have left bytes in the
    /// cache that the device never got, marked as written. As far as the system can: what another
    /// process reads meanwhile stays cached.
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

    /// Gives the space of whole 4 KiB pages inside the range back; they read as zeros. The file
    /// keeps its length.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError>;

    /// Cuts or extends the file.
    ///
    /// # Errors
    /// [`DiskError::Full`], [`DiskError::Io`].
    async fn set_len(&self, len: u64) -> Result<(), DiskError>;

    /// Length, bytes.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn len(&self) -> Result<u64, DiskError>;

    /// Bytes of disk space the file takes: less than its length where holes are.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    async fn allocated(&self) -> Result<u64, DiskError>;
}
