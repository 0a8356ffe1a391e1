//! The capacity trait: one interface for logs, runs and data, in process today, over RPC in a
//! cluster.

use std::fmt::Debug;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// The use of an extent. The kind determines how much space is reserved at a time, and how much
/// space must stay available for an append to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExtentKind {
    /// Blocks of blobs. Refused first when space runs out, so that deletes and commits still work.
    Data,
    /// A partition's log.
    Log,
    /// A sorted run of index rows.
    Run,
}

/// Bytes to store as one location: the concatenation of the pieces.
pub type Payload = Vec<Bytes>;

/// When an append may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Durability {
    /// After the bytes, and all earlier ones of the extent, are durable.
    Durable,
    /// Before the bytes are durable; [`Capacity::flush`] makes them durable. A large block is
    /// streamed as many such appends and one sync.
    Deferred,
}

/// An append by the extent's single writer.
#[derive(Debug)]
pub struct AppendRequest {
    /// The extent. It must be open.
    pub extent: ExtentId,
    /// The writer's epoch. An epoch below the extent's is refused.
    pub epoch: Epoch,
    /// Where the writer believes the extent ends. Any other offset is refused.
    pub offset: ExtentOffset,
    /// Each becomes one location. None may be empty.
    pub payloads: Vec<Payload>,
    /// When to acknowledge the append.
    pub durability: Durability,
}

/// The locations of appended payloads, and the new end of the extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// One for each payload, in order.
    pub locations: Vec<Location>,
    /// The offset for the next append.
    pub end: ExtentOffset,
}

/// Whether an extent takes appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExtentState {
    /// It takes appends.
    Open,
    /// It takes no appends, and its length is not decided yet. A copy that its node found open at a
    /// start is in this state until all nodes that have copies agree on the length.
    Closed,
    /// It takes no more appends: its length is final.
    Sealed,
}

/// The state of an extent on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentInfo {
    /// The extent.
    pub extent: ExtentId,
    /// Its kind.
    pub kind: ExtentKind,
    /// Open or sealed.
    pub state: ExtentState,
    /// The highest epoch it has seen.
    pub epoch: Epoch,
    /// Logical length: bytes of frames and padding.
    pub len: u64,
    /// Frame bytes freed so far.
    pub freed: u64,
    /// Which of the node's disks holds it.
    pub disk: usize,
}

/// One frame of an extent, for the reader of a log.
#[derive(Clone, Debug)]
pub struct LogFrame {
    /// Where the frame starts.
    pub offset: ExtentOffset,
    /// Its payload, verified.
    pub payload: Bytes,
    /// The offset from which to read the next frame.
    pub next: ExtentOffset,
}

/// The result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Frames read and verified.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Extent and offset of each damaged frame: its checksum does not match, or no frame is there.
    /// If the first page or the map of an extent is damaged, none of its frames can be found, and
    /// the only entry is offset 0.
    pub corrupt: Vec<(ExtentId, ExtentOffset)>,
}

/// How much of an extent an audit has covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Audited {
    /// The whole extent.
    Whole,
    /// A part of it.
    Part,
}

/// Why a call failed. Each variant demands another reaction of the caller.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// The extent takes no more appends. Roll to a new one.
    #[error("extent {extent} is sealed")]
    Sealed {
        /// The extent.
        extent: ExtentId,
    },
    /// A higher epoch owns the extent. The caller is no longer its writer and must stop.
    #[error("extent {extent} is fenced at epoch {epoch}")]
    Fenced {
        /// The extent.
        extent: ExtentId,
        /// Its epoch.
        epoch: Epoch,
    },
    /// The extent ends at another offset: an earlier append failed, or there are two writers. Seal
    /// it and roll.
    #[error("extent {extent} ends at {expected}")]
    WrongOffset {
        /// The extent.
        extent: ExtentId,
        /// Where it ends.
        expected: ExtentOffset,
    },
    /// The extent is not on this node; from [`Capacity::create`]: it exists already.
    #[error("extent {extent} is not here")]
    NoSuchExtent {
        /// The extent.
        extent: ExtentId,
    },
    /// The bytes do not match their checksum, or no frame is there. Such bytes are not served.
    #[error("extent {extent} is damaged at {offset}")]
    Corrupt {
        /// The extent.
        extent: ExtentId,
        /// Where the damaged frame starts.
        offset: ExtentOffset,
    },
    /// The disk has no space for this kind of extent. Free some space. Reads still succeed.
    #[error("the disk is full")]
    Full,
    /// A write or sync failed earlier. The disk takes no writes until a restart has verified it.
    #[error("disk {disk} is poisoned by a failed write or sync; restart to verify it")]
    Poisoned {
        /// Its number in the store.
        disk: usize,
    },
    /// The task that executed the call panicked. The outcome of the call is unknown, as after a
    /// crash. Seal the extent and roll.
    #[error("the task of the {doing} ended early; the server's log says why")]
    Ended {
        /// The operation of the task.
        doing: &'static str,
    },
    /// The extent was not found, but it may lie on a disk of the store that is out of service until
    /// the next start.
    #[error("extent {extent} is not here and may lie on the disk that is out of service")]
    OutOfService {
        /// The extent.
        extent: ExtentId,
    },
    /// Another node did not answer, or was not reached. The call may have been carried out. Readers
    /// ask another member; writers roll.
    #[error("a node did not answer: {reason}")]
    NoAnswer {
        /// The cause, for the operator.
        reason: String,
    },
    /// A read failed. The bytes may be intact.
    #[error("reading extent {extent} failed: {reason}")]
    Unreadable {
        /// The extent.
        extent: ExtentId,
        /// The cause, for the operator.
        reason: String,
    },
}

/// The interface of one capacity node, or of all nodes together.
#[async_trait]
pub trait Capacity: Send + Sync + Debug {
    /// Creates an open extent under an id that the coordinator issued. It is durable when the call
    /// returns.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Poisoned`], [`Error::NoSuchExtent`] if the id exists already.
    async fn create(&self, extent: ExtentId, kind: ExtentKind, epoch: Epoch) -> Result<(), Error>;

    /// Appends payloads at the extent's end. Later calls see all of them or none. After an error
    /// the extent must be sealed.
    ///
    /// # Errors
    /// Any of the write errors. Bytes that were acknowledged before are not affected.
    async fn append(&self, request: AppendRequest) -> Result<Appended, Error>;

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::NoSuchExtent`].
    async fn flush(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error>;

    /// Reads and verifies payload bytes `range` of a location. The concatenated pieces are exactly
    /// the range.
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

    /// Makes the extent refuse all lower epochs. This is durable when the call returns.
    ///
    /// # Errors
    /// [`Error::Fenced`] if the extent's epoch is already higher; the write errors. After
    /// [`Error::Poisoned`] no writer can append either: the disk takes no writes, and its next
    /// start seals the extent.
    async fn fence(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error>;

    /// Makes the end of the last append the final length of the extent, and returns it. Durable
    /// when the call returns; idempotent.
    ///
    /// # Errors
    /// [`Error::Fenced`], the write errors.
    async fn seal(&self, extent: ExtentId, epoch: Epoch) -> Result<ExtentOffset, Error>;

    /// Frees these locations; later reads of them fail. Idempotent. A sealed extent without live
    /// bytes is removed. If one disk fails, locations on other disks are still freed.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::OutOfService`]: some locations were not freed.
    async fn free(&self, locations: &[Location]) -> Result<(), Error>;

    /// Removes a whole extent. An extent that does not exist counts as removed. Durable when the
    /// call returns.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::OutOfService`], [`Error::Ended`]: a restart may find the
    /// extent.
    async fn remove(&self, extent: ExtentId) -> Result<(), Error>;

    /// Frees the bytes of a sealed extent that no range of `live` covers. The audit calls it.
    /// `live` has sorted, disjoint logical ranges, and includes the ranges that were not audited.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::NoSuchExtent`].
    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error>;

    /// The logical range that the frames of a location cover, headers included, as [`Self::retain`]
    /// takes it.
    fn frames_of(&self, location: &Location) -> Range<u64>;

    /// All extents, in id order.
    async fn extents(&self) -> Vec<ExtentInfo>;

    /// Whether [`Self::extents`] returns every extent of the store: no disk is out of service.
    fn is_whole(&self) -> bool {
        true
    }

    /// Whether these are the extents of a cluster: other processes write and free in them too.
    fn is_shared(&self) -> bool {
        false
    }

    /// Reads and verifies every live frame of an extent.
    ///
    /// # Errors
    /// [`Error::NoSuchExtent`].
    async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error>;
}
