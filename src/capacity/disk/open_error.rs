//! Why a node or one of its disks cannot be opened.

use thiserror::Error as ThisError;

use crate::capacity::journal::replay::JournalError;
use crate::env::DiskError;

/// Why a node or one of its disks cannot be opened. Each message names the disk by its place in the
/// list.
#[derive(Clone, Debug, ThisError)]
pub enum OpenError {
    /// The list of disks is empty.
    #[error("no data directory given")]
    NoDisks,
    /// Reading or writing a disk failed.
    #[error("disk {disk}: {error}")]
    Disk {
        /// Which.
        disk: usize,
        /// Why.
        error: DiskError,
    },
    /// A new disk has too little room for its journal.
    #[error(
        "disk {disk}: a new disk needs {needed} bytes for its journal and {available} are free: \
         free some, or set a smaller --journal-bytes"
    )]
    NoRoom {
        /// Which.
        disk: usize,
        /// Bytes of the journal.
        needed: u64,
        /// Bytes free.
        available: u64,
    },
    /// A disk of the store is too full to be recovered.
    #[error(
        "disk {disk}: recovery needs at least {needed} bytes and {available} are free: free some, \
         then start again"
    )]
    Full {
        /// Which.
        disk: usize,
        /// Bytes that could not be written.
        needed: u64,
        /// Bytes free.
        available: u64,
    },
    /// A newer or unknown release wrote it.
    #[error(
        "disk {disk} has format {found}, and this release reads up to format {newest}: it was \
         written by a newer release, so run that release"
    )]
    FormatVersion {
        /// Which.
        disk: usize,
        /// Its version.
        found: u32,
        /// The newest format that this program reads.
        newest: u32,
    },
    /// Its `format` file cannot be parsed.
    #[error(
        "disk {disk}: the file `format` is damaged; restore it from a backup, or write it anew \
         after that of another disk"
    )]
    FormatDamaged {
        /// Which.
        disk: usize,
    },
    /// It belongs to another store than the disks before it.
    #[error(
        "disk {disk} belongs to another store than the disks before it: give the disks of one store"
    )]
    OtherStore {
        /// Which.
        disk: usize,
    },
    /// A disk is given twice, or a disk of the store is not given.
    #[error(
        "the store's disks are numbered 0 to {highest}, but the disks given are not exactly these"
    )]
    DiskSet {
        /// The highest number seen.
        highest: usize,
    },
    /// It holds extents but has no `format` file.
    #[error(
        "disk {disk} holds extents but no file `format`: restore that file. Nothing on the disk \
         was changed"
    )]
    NoFormat {
        /// Which.
        disk: usize,
    },
    /// Its journal cannot be replayed.
    #[error("disk {disk}: {error}")]
    Journal {
        /// Which.
        disk: usize,
        /// Why.
        error: JournalError,
    },
}

impl OpenError {
    /// The place in the list of the disk that the error concerns, if it is one disk.
    #[must_use]
    pub const fn disk(&self) -> Option<usize> {
        match self {
            Self::NoDisks | Self::DiskSet { .. } => None,
            Self::Disk { disk, .. }
            | Self::NoRoom { disk, .. }
            | Self::Full { disk, .. }
            | Self::FormatVersion { disk, .. }
            | Self::FormatDamaged { disk }
            | Self::OtherStore { disk }
            | Self::NoFormat { disk }
            | Self::Journal { disk, .. } => Some(*disk),
        }
    }

    /// Whether the disk's `format` file exists and cannot be read or parsed. Then it is not known
    /// which disk of which store it is.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Disk { error, .. } => error.is_of_device(),
            Self::FormatDamaged { .. } => true,
            Self::NoDisks
            | Self::DiskSet { .. }
            | Self::NoRoom { .. }
            | Self::Full { .. }
            | Self::FormatVersion { .. }
            | Self::OtherStore { .. }
            | Self::NoFormat { .. }
            | Self::Journal { .. } => false,
        }
    }
}
