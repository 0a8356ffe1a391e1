//! Why a backup or restore failed.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::capacity;
use crate::coordinator;
use crate::index;
use crate::index::CutError;
use crate::node::error::NodeError;
use crate::types::ExtentId;

use super::attempt::GIVE_UP_AFTER;
use super::attempt::GivenUp;

/// Why a backup or restore failed. Each text says what to do.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The directory holds something else.
    #[error("{0} is neither empty nor a backup: name an empty directory, or the last backup")]
    NotEmpty(PathBuf),
    /// The directory to restore to holds something else.
    #[error("{0} is not empty: name an empty or new directory")]
    NotNew(PathBuf),
    /// The directory has a backup of another store.
    #[error(
        "{0} holds a backup of another store, or of this one before it was restored: name another \
         directory"
    )]
    OtherStore(PathBuf),
    /// The backup is incomplete.
    #[error(
        "{0} is not a complete backup: run `blockyard backup` with this directory again, or name \
         another backup"
    )]
    Incomplete(PathBuf),
    /// A version that this program does not know.
    #[error("{path} has version {found}: use the program that wrote it, or a newer one")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version.
        found: u32,
    },
    /// A disk of the store cannot be read.
    #[error(
        "a disk of the store is out of service, and the backup would lack the bytes on it: \
         `blockyard disk list` names it; repair the disk and restart"
    )]
    DiskOut,
    /// A disk of the store takes no writes, so its open extents cannot be sealed.
    #[error(
        "disk {0} of the store takes no writes since a write failed, and its open extents cannot be \
         copied: restart the node, which verifies the disk, and try again"
    )]
    DiskStopped(usize),
    /// An extent of the store that blobs need is gone.
    #[error(
        "extent {extent} is missing, and rows of the store name it: `blockyard check` says which \
         blobs are affected; keep {path}, which may have an older copy of the extent"
    )]
    Lost {
        /// The extent.
        extent: ExtentId,
        /// The directory of the copy.
        path: PathBuf,
    },
    /// The path of the directory is not valid UTF-8, so it cannot be sent to the node.
    #[error("{0} is not UTF-8: name another directory, or stop the node and use --stopped")]
    NotText(PathBuf),
    /// The node, or the program that copies, stops.
    #[error("the node stops: run the command again")]
    Stops,
    /// Its directory does not answer.
    #[error(
        "the directory did not answer for {} minutes: the backup is given up; see whether its disk \
         or mount works, and run the command again",
        GIVE_UP_AFTER.as_secs() / 60
    )]
    GivenUp,
    /// The task that copied an extent panicked.
    #[error("the copy of extent {0} ended early: the log of the program says why")]
    Ended(ExtentId),
    /// An extent of the store is damaged.
    #[error(
        "extent {extent} of the store cannot be copied: {error}; `blockyard check` says which \
         blobs are affected"
    )]
    Damaged {
        /// The extent.
        extent: ExtentId,
        /// Why.
        error: capacity::Error,
    },
    /// A partition of the store cannot be copied.
    #[error("the index of the store cannot be copied: {0}")]
    Index(index::Error),
    /// There is no space for the copy.
    #[error(
        "the disk of {0} is full: free some space, or name a directory on another disk; the store \
         is not affected"
    )]
    Full(PathBuf),
    /// The copy cannot be written.
    #[error("{path} cannot be written: {error}; the store is not affected")]
    Target {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// The copy lacks extents that its rows name.
    #[error("the copy in {path} is incomplete: {reason}; remove the directory and try again")]
    NotWhole {
        /// The directory.
        path: PathBuf,
        /// The missing part.
        reason: String,
    },
    /// A file of the backup.
    #[error("{path}: {error}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The coordinator of the store does not answer.
    #[error("the coordinator's rows cannot be read: {0}")]
    Coordinator(#[from] coordinator::Error),
    /// The store or the copy cannot be opened.
    #[error("{0}")]
    Open(Box<NodeError>),
}

impl From<GivenUp> for BackupError {
    fn from(GivenUp: GivenUp) -> Self {
        Self::GivenUp
    }
}

impl From<CutError> for BackupError {
    fn from(error: CutError) -> Self {
        match error {
            CutError::Stops => Self::Stops,
            CutError::Failed(error) => Self::Index(error),
        }
    }
}

impl From<NodeError> for BackupError {
    fn from(error: NodeError) -> Self {
        Self::Open(Box::new(error))
    }
}
