//! The capacity trait: one interface for logs, runs and data, in process today, over RPC in a
//! cluster.

use std::fmt::Debug;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error as ThisError;

use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// What an extent is for; decides how space is reserved for it and what may still be written on a
/// nearly full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtentKind {
    /// Blocks of blobs. Refused first when space runs out, so that deletes and commits still work.
    Data,
    /// A partition's log.
    Log,
    /// A sorted run of index rows.
    Run,
}

/// Bytes to store as one location: the pieces one after the other.
pub type Payload = Vec<Bytes>;

/// When an append may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the bytes, and all earlier ones of the extent, are durable.
    Durable,
    /// At once; [`Capacity::flush`] makes it durable. For streaming a large block: many appends,
    /// one sync.
    Deferred,
}

/// An append by the extent's single writer.
#[derive(Debug)]
pub struct AppendRequest {
    /// The extent, open.
    pub extent: ExtentId,
    /// The writer's epoch; lower than the extent's is refused.
    pub epoch: Epoch,
    /// Where the writer believes the extent ends. Any other offset is refused.
    pub offset: ExtentOffset,
    /// One location for each. None may be empty.
    pub payloads: Vec<Payload>,
    /// When to answer.
    pub durability: Durability,
}

/// Where appended payloads lie, and where the extent ends now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// One for each payload, in order.
    pub locations: Vec<Location>,
    /// The offset for the next append.
    pub end: ExtentOffset,
}

/// Whether an extent takes appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentState {
    /// It does.
    Open,
    /// Never again: its length is final.
    Sealed,
}

/// What a node knows of an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentInfo {
    /// The extent.
    pub extent: ExtentId,
    /// What it is for.
    pub kind: ExtentKind,
    /// Open or sealed.
    pub state: ExtentState,
    /// The highest epoch it has seen.
    pub epoch: Epoch,
    /// Logical length, bytes of frames.
    pub len: u64,
    /// Frame bytes freed so far.
    pub freed: u64,
    /// Which of the node's disks holds it.
    pub disk: usize,
}

/// One frame of an extent as a reader of a log sees it.
#[derive(Clone, Debug)]
pub struct LogFrame {
    /// Where the frame starts.
    pub offset: ExtentOffset,
    /// Its payload, verified.
    pub payload: Bytes,
    /// Where the next frame is looked for.
    pub next: ExtentOffset,
}

/// What a scrub found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Frames read and verified.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames whose checksum does not match or which cannot be read: extent and offset. Offset 0
    /// alone where no frame can be found, since the first page or the map is damaged.
    pub corrupt: Vec<(ExtentId, ExtentOffset)>,
}

/// How much of an extent an audit has looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audited {
    /// All of it.
    Whole,
    /// A part.
    Part,
}

/// Why a call failed; each variant is a different next step for the caller.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// The extent takes no more appends: roll to a new one.
    #[error("extent {extent} is sealed")]
    Sealed {
        /// The extent.
        extent: ExtentId,
    },
    /// A higher epoch owns the extent: the caller is no longer the writer and must stop.
    #[error("extent {extent} is fenced at epoch {epoch}")]
    Fenced {
        /// The extent.
        extent: ExtentId,
        /// Its epoch.
        epoch: Epoch,
    },
    /// The extent ends elsewhere: an earlier append failed, or there are two writers. Seal and
    /// roll.
    #[error("extent {extent} ends at {expected}")]
    WrongOffset {
        /// The extent.
        extent: ExtentId,
        /// Where it ends.
        expected: ExtentOffset,
    },
    /// No such extent here (or it exists already, for create).
    #[error("extent {extent} is not here")]
    NoSuchExtent {
        /// The extent.
        extent: ExtentId,
    },
    /// The bytes do not match their checksum, or the frame is not there. Never served.
    #[error("extent {extent} is damaged at {offset}")]
    Corrupt {
        /// The extent.
        extent: ExtentId,
        /// Where the damaged frame starts.
        offset: ExtentOffset,
    },
    /// No space for this kind of extent: free some; reads go on.
    #[error("the disk is full")]
    Full,
    /// A write or sync failed earlier: this disk takes no writes until the program is restarted and
    /// has verified it.
    #[error("disk {disk} is poisoned by a failed write or sync; restart to verify it")]
    Poisoned {
        /// Its number in the store.
        disk: usize,
    },
    /// The task that carried the call out panicked: its outcome is unknown, as after a crash. Seal
    /// and roll.
    #[error("the task of the {doing} ended early; the server's log says why")]
    Ended {
        /// What it did.
        doing: &'static str,
    },
    /// It is not here, but a disk of the store is out of service until the next start, and it may
    /// be there.
    #[error("extent {extent} is not here and may lie on the disk that is out of service")]
    OutOfService {
        /// The extent.
        extent: ExtentId,
    },
    /// A read failed; the bytes may be there all the same.
    #[error("reading extent {extent} failed: {reason}")]
    Unreadable {
        /// The extent.
        extent: ExtentId,
        /// For the operator.
        reason: String,
    },
}

/// A capacity node, or all of them.
#[async_trait]
pub trait Capacity: Send + Sync + Debug {
    /// Creates an open extent under an id the coordinator issued. Durable when it returns.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`], [`Error::NoSuchExtent`] when the id exists already.
    async fn create(&self, extent: ExtentId, kind: ExtentKind, epoch: Epoch) -> Result<(), Error>;

    /// Appends payloads at the extent's end. All or nothing is visible to later calls; after an
    /// error the extent must be sealed.
    ///
    /// # Errors
    /// Any of the write errors; nothing acknowledged before is affected.
    async fn append(&self, request: AppendRequest) -> Result<Appended, Error>;

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::NoSuchExtent`].
    async fn flush(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error>;

    /// Reads and verifies payload bytes `range` of a location. The pieces, one after the other, are
    /// exactly the range.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unreadable`], [`Error::OutOfService`], [`Error::NoSuchExtent`].
    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<Bytes>, Error>;

    /// Reads the frame at or after `offset`; `None` at the end. For replaying logs.
    ///
    /// # Errors
    /// As [`Self::read`].
    async fn next_frame(
        &self,
        extent: ExtentId,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error>;

    /// Refuses all lower epochs from now on. Durable when it returns.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the extent's epoch is higher already; the write errors. After
    /// [`Error::Poisoned`] nobody can append either: the disk takes no writes, and its next start
    /// seals the extent.
    async fn fence(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error>;

    /// Ends the extent where its last append ended, for good, and tells where. Durable; idempotent.
    ///
    /// # Errors
    /// [`Error::Fenced`], the write errors.
    async fn seal(&self, extent: ExtentId, epoch: Epoch) -> Result<ExtentOffset, Error>;

    /// Gives the space of these locations back; later reads of them fail. Idempotent. A sealed
    /// extent with nothing left is removed. What lies on other disks than one that fails is freed
    /// all the same.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::OutOfService`]: some of it was not freed.
    async fn free(&self, locations: &[Location]) -> Result<(), Error>;

    /// Removes a whole extent; one that is not here counts as removed. Durable when it returns.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::OutOfService`], [`Error::Ended`]: a restart may find it.
    async fn remove(&self, extent: ExtentId) -> Result<(), Error>;

    /// Frees every frame byte of a sealed extent that is in none of `live` (sorted, disjoint
    /// logical ranges): the audit's verdict. What was not audited counts as live.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::NoSuchExtent`].
    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error>;

    /// The logical range of frame bytes a location covers, headers included: what [`Self::retain`]
    /// takes.
    fn frames_of(&self, location: &Location) -> Range<u64>;

    /// All extents, in id order.
    async fn extents(&self) -> Vec<ExtentInfo>;

    /// Whether these are all there are: no disk of the store is out of service.
    fn is_whole(&self) -> bool {
        true
    }

    /// Reads and verifies every live frame of an extent.
    ///
    /// # Errors
    /// [`Error::NoSuchExtent`].
    async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error>;
}
