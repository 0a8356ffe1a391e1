//! Errors of the index, in two levels: the variant of [`Error`] determines how the caller reacts;
//! [`Refused`], [`Full`] and [`Damage`] give the reason.

use std::fmt::Debug;

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::types::ContentEtag;
use crate::types::Outcome;
use crate::types::PartitionId;
use crate::types::RetentionMode;
use crate::types::VersionId;

/// How a lease prevents a request. Source: Lease Blob, Lease Container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
pub enum LeaseRefusal {
    /// An id was sent but there is no lease.
    #[error("there is no lease")]
    NotPresent,
    /// An id was sent but the lease has run out or was broken.
    #[error("the lease is lost")]
    Lost,
    /// The id is not the holder's.
    #[error("the lease has another id")]
    Mismatch,
    /// There is a lease but no id was sent.
    #[error("the lease's id is missing")]
    Missing,
    /// There is no lease to act on.
    #[error("there is no lease to act on")]
    NothingToActOn,
    /// The id is not that of the lease to act on.
    #[error("the lease to act on has another id")]
    ActsOnOther,
    /// Another client holds it.
    #[error("there is a lease already")]
    AlreadyPresent,
    /// Acquire of a lease that is breaking.
    #[error("the lease is breaking and cannot be acquired")]
    BreakingNotAcquired,
    /// Change of a lease that is breaking.
    #[error("the lease is breaking and cannot be changed")]
    BreakingNotChanged,
    /// Renew of a lease that was broken.
    #[error("the lease was broken and cannot be renewed")]
    BrokenNotRenewed,
}

/// How the encryption headers of a request differ from how a blob or block is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EncryptionFault {
    /// It is under a customer-provided key, and none came.
    KeyMissing,
    /// A key or scope came, and it is under none.
    NotEncrypted,
    /// It is under another key or scope.
    Mismatch,
}

/// Where there is no space.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
pub enum Full {
    /// On the disks that logs and runs are written to.
    #[error("the disks are full; free some space or add a data directory")]
    Disks,
    /// On the first disk, for the coordinator's file, and why. Space on other disks does not help.
    #[error("the first disk has no space for the coordinator's file; free some space on it ({0})")]
    Coordinator(String),
}

/// Files that a request needs cannot be used until they are repaired or their disk is back. The
/// request changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
pub enum Damage {
    /// Rows whose checksum does not match, or that are malformed: which.
    #[error("index rows are damaged: {0}")]
    Rows(String),
    /// Rows lie on a disk that is out of service until the next start: which.
    #[error("index rows lie on a disk that is out of service: {0}")]
    DiskOut(String),
    /// The partition is out of service since its start: files it needs are damaged, on a disk that
    /// is missing, or could not be used in several tries, which go on.
    #[error(
        "partition {0} is out of service: files it needs are damaged, missing or cannot be used \
         now; `blockyard partitions list` shows which names that concerns and why, `blockyard \
         check` what is damaged"
    )]
    Quarantined(PartitionId),
}

/// Why the state that a request met does not permit it. The partition works, and the same request
/// gets the same answer until that state changes: the client corrects the request.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
pub enum Refused {
    /// No such account.
    #[error("no such account")]
    AccountNotFound,
    /// No such container.
    #[error("no such container")]
    ContainerNotFound,
    /// A container of that name exists.
    #[error("the container exists")]
    ContainerExists,
    /// The container must be empty and is not.
    #[error("the container is not empty")]
    ContainerNotEmpty,
    /// The container is closed already.
    #[error("the container is closed")]
    ContainerClosed,
    /// The container was opened again.
    #[error("the container was opened again")]
    ContainerReopened,
    /// No such blob (one with staged blocks only does not exist either).
    #[error("no such blob")]
    BlobNotFound,
    /// No such blob: its newest version is this delete marker.
    #[error("the blob was deleted")]
    BlobDeleted(VersionId),
    /// The blob has no such version.
    #[error("no such version")]
    VersionNotFound,
    /// The version is a delete marker, which has no content.
    #[error("the version is a delete marker")]
    DeleteMarker(VersionId),
    /// The version is the current blob, which the request may not remove by its version.
    #[error("the version is the current blob")]
    CurrentVersion,
    /// It was not softly deleted, so it cannot be ended before its time.
    #[error("it was not softly deleted")]
    NotSoftlyDeleted,
    /// The blob is not open to the sender, or does not exist.
    #[error("the blob is not open to the sender")]
    NotOpen,
    /// A condition failed; never [`Outcome::Proceed`] and [`Outcome::NotModified`].
    #[error("a condition failed: {0:?}")]
    Condition(Outcome),
    /// A read whose conditions say that the client has it already.
    #[error("not modified")]
    NotModified {
        /// The tag of the content of a blob.
        content_etag: Option<ContentEtag>,
    },
    /// A lease prevents the request.
    #[error("{0}")]
    Lease(#[from] LeaseRefusal),
    /// The version is under a legal hold: it can neither be removed nor changed.
    #[error("the version is under a legal hold")]
    LegalHold,
    /// The version is under a retention of this mode, which would be violated.
    #[error("the version is under a retention")]
    Retained(RetentionMode),
    /// The request protects a version, and its container has no object lock.
    #[error("the container has no object lock")]
    NoObjectLock,
    /// A retention would end before now.
    #[error("the retention is over already")]
    RetentionInPast,
    /// The container has object lock, so it keeps versions.
    #[error("the container has object lock")]
    ObjectLocked,
    /// The container has object lock, so it is deleted only while it is closed.
    #[error("the container has object lock and is not closed")]
    NotClosed,
    /// Object lock needs versions, and the container does not keep them.
    #[error("the container does not keep versions")]
    NotVersioned,
    /// The blob has snapshots, and the request does not say what to do with them.
    #[error("the blob has snapshots")]
    SnapshotsPresent,
    /// The blob is in the archive.
    #[error("the blob is in the archive")]
    Archived,
    /// The blob is on its way out of the archive.
    #[error("the blob is on its way out of the archive")]
    Rehydrating,
    /// Blobs of this kind do not have this tier.
    #[error("blobs of this kind do not have this tier")]
    TierOfKind,
    /// The tier is lower than the one that was set.
    #[error("the tier is lower than the one that was set")]
    LowerTier,
    /// The blob is longer than the tier permits.
    #[error("the blob is longer than the tier permits")]
    TierTooSmall,
    /// The blob would be longer than its tier permits.
    #[error("the blob would be longer than its tier permits")]
    BeyondTier,
    /// The request's encryption headers do not fit the blob or block.
    #[error("encryption: {0:?}")]
    Encryption(EncryptionFault),
    /// The range starts past the end; the blob's length.
    #[error("the range starts past the end, {len}")]
    InvalidRange {
        /// The blob's length.
        len: u64,
    },
    /// A block list names a block that is not there.
    #[error("the block list names an unknown block")]
    UnknownBlock,
    /// The block id's length differs from the blob's other blocks.
    #[error("the block id's length differs from the blob's other blocks")]
    BlockIdLength,
    /// The blob is of a kind the operation does not know.
    #[error("the blob is of another kind")]
    WrongKind,
    /// The blob is an incremental copy, which only Incremental Copy Blob changes.
    #[error("the blob is an incremental copy")]
    Incremental,
    /// The blob is not an incremental copy of this source.
    #[error("the blob is no incremental copy of this source")]
    OtherIncrement,
    /// The blob has this or a later snapshot of the source.
    #[error("the blob has this or a later snapshot of the source")]
    EarlierIncrement,
    /// The blob is the destination of a copy that is pending.
    #[error("a copy into the blob is pending")]
    CopyPending,
    /// No copy into the blob is pending.
    #[error("no copy into the blob is pending")]
    NoPendingCopy,
    /// Another copy into the blob is pending.
    #[error("another copy into the blob is pending")]
    OtherCopy,
    /// The append blob is sealed.
    #[error("the blob is sealed")]
    Sealed,
    /// The append blob does not end where it was demanded to; it ends at `len`.
    #[error("the blob ends at {len}")]
    AppendPosition {
        /// The blob's length.
        len: u64,
    },
    /// The append would make the blob longer than was demanded.
    #[error("the blob would be too long")]
    LongerThanAllowed,
    /// The append blob has as many blocks as one may have.
    #[error("too many appended blocks")]
    TooManyAppends,
    /// The pages lie beyond the end of the blob, which is at `len`.
    #[error("the pages lie beyond the end, {len}")]
    InvalidPages {
        /// The blob's length.
        len: u64,
    },
    /// The sequence number is not as demanded.
    #[error("the sequence number is not as demanded")]
    SequenceCondition,
    /// The sequence number cannot grow any more.
    #[error("the sequence number cannot grow")]
    SequenceExhausted,
    /// The snapshot to compare with is newer than what it is compared with.
    #[error("the snapshot to compare with is the newer one")]
    ComparedWithNewer,
    /// There is no snapshot of that time to compare with.
    #[error("there is no such snapshot to compare with")]
    ComparedWithNothing,
    /// The snapshot to compare with is of another making of the blob.
    #[error("the blob was made anew since the snapshot to compare with")]
    MadeAnew,
    /// Too many staged blocks.
    #[error("too many uncommitted blocks")]
    TooManyBlocks,
    /// An upload in parts does not permit it.
    #[error("{0}")]
    Upload(#[from] UploadRefusal),
}

/// Why a change of an upload in parts is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
pub enum UploadRefusal {
    /// No such upload of the blob, or it has ended.
    #[error("no such upload")]
    NotFound,
    /// The list names no parts, or not in the order of their numbers.
    #[error("the parts are not in ascending order")]
    Order,
    /// The upload has no part with this number, or one with another tag or checksum.
    #[error("part {0} was not staged, or has another tag or checksum")]
    UnknownPart(u32),
    /// The list does not name the checksum of this part, which the upload demands.
    #[error("the checksum of part {0} is missing")]
    NoPartChecksum(u32),
    /// The blob has no part with this number.
    #[error("the blob has no such part")]
    NoSuchPart,
    /// A part that is not the last is too small.
    #[error("part {number} has {len} bytes, which is too few")]
    SmallPart {
        /// Its number.
        number: u32,
        /// Its bytes.
        len: u64,
    },
    /// The parts have another length together than the request says.
    #[error("the parts have {len} bytes together")]
    Length {
        /// Their bytes.
        len: u64,
    },
    /// The request names another kind of checksum than the upload has.
    #[error("the upload has another kind of checksum")]
    ChecksumKind,
    /// The checksum of all parts is not the one that the request says.
    #[error("the checksum of the content is another one")]
    Checksum,
}

/// Why a request has no answer. Each variant is a different next step of the caller; all but
/// [`Self::Refused`] are about the partition and not about the request.
#[derive(Clone, Debug, PartialEq, Eq, ThisError, Serialize, Deserialize)]
pub enum Error {
    /// The partition is not here, not at this epoch, or does not own the key. The caller reads the
    /// map again and retries.
    #[error("wrong partition")]
    WrongPartition,
    /// Too much is queued. The caller retries later.
    #[error("the partition is overloaded")]
    Overloaded,
    /// No space for the index's own rows. Nothing was written. The caller retries when an operator
    /// has freed space.
    #[error(transparent)]
    Full(#[from] Full),
    /// Files are damaged or missing. Nothing was written. The caller retries when an operator has
    /// repaired them.
    #[error(transparent)]
    Corrupt(#[from] Damage),
    /// The partition cannot serve now (stopping, or its disk is poisoned). A change may or may not
    /// have happened: the caller reads the state before it retries.
    #[error("the partition is unavailable: {0}")]
    Unavailable(String),
    /// The state of the named resource does not permit the request. The caller reports it to the
    /// client.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// As [`Self::Unavailable`], in a cluster, where another node takes over or comes back: the
    /// client tries again.
    #[error("the cluster does not answer: {0}")]
    NoAnswer(String),
}

impl Error {
    /// Rows that are damaged: which, and how.
    #[must_use]
    pub fn damaged_rows(what: impl Into<String>) -> Self {
        Self::Corrupt(Damage::Rows(what.into()))
    }
}

impl From<UploadRefusal> for Error {
    fn from(refusal: UploadRefusal) -> Self {
        Self::Refused(Refused::Upload(refusal))
    }
}

impl From<LeaseRefusal> for Error {
    fn from(refusal: LeaseRefusal) -> Self {
        Self::Refused(Refused::Lease(refusal))
    }
}
