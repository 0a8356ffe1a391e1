//! The interface of one node of a cluster: the node is a *member* of the extents that it has copies
//! of. The writer of an extent appends to all members, readers read from one of them, and the
//! manager settles and repairs copies. The rules are those of ADR 0050; `tests/model/extents` walks
//! them.
//!
//! [`Capacity`](crate::capacity::Capacity) is the other interface: extents by id, with all copies
//! behind it. The local node has both.

use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::capacity::Appended;
use crate::capacity::Audited;
use crate::capacity::Damage;
use crate::capacity::Durability;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::FramePart;
use crate::capacity::Payload;
use crate::capacity::RawFrame;
use crate::capacity::extent::frame::Prepared;
use crate::capacity::extent::frame::place;
use crate::capacity::extent::part::PartReader;
use crate::capacity::extent::part::is_sane;
use crate::capacity::extent::part::parts_of;
use crate::capacity::groups::MemberReport;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::GroupId;
use crate::types::Location;

/// An extent, as a call names it that may create the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyId {
    /// The extent.
    pub extent: ExtentId,
    /// Its kind.
    pub kind: ExtentKind,
}

/// An append of frames that the writer has encoded, so that checksums are computed once.
#[derive(Clone, Debug)]
pub struct FramedAppend {
    /// The extent.
    pub copy: CopyId,
    /// The writer's epoch, which the frames name too. An epoch below the copy's is refused.
    pub epoch: Epoch,
    /// Where the writer believes the extent ends. At offset 0 the append creates the copy.
    pub offset: ExtentOffset,
    /// The encoded frames. The pieces are contiguous.
    pub frames: Vec<Bytes>,
    /// When to acknowledge the append.
    pub durability: Durability,
}

impl FramedAppend {
    /// Encodes payloads as the next frames of an extent that ends at `offset`. Returns also where
    /// they will be. None of the payloads may be empty.
    #[must_use]
    pub fn encode(copy: CopyId, epoch: Epoch, at: ExtentOffset, payloads: Vec<Payload>) -> Encoded {
        let prepared = payloads.into_iter().map(Prepared::new).collect();
        let placed = place(prepared, copy.extent, epoch, at);
        let appended = Appended { locations: placed.locations, end: placed.end };
        let durability = Durability::Durable;
        let append = Self { copy, epoch, offset: at, frames: placed.pieces, durability };
        Encoded { append, appended }
    }
}

/// An append, and its result when all members have acknowledged it.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// What the members get.
    pub append: FramedAppend,
    /// Where the payloads lie, and where the extent ends then.
    pub appended: Appended,
}

/// A copy of an extent on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyInfo {
    /// The kind of the extent.
    pub kind: ExtentKind,
    /// Whether it takes appends.
    pub state: ExtentState,
    /// The highest epoch it has seen.
    pub epoch: Epoch,
    /// Where it ends. If the copy is sealed, all copies end there.
    pub end: ExtentOffset,
    /// Whether bytes are known to be missing before the end of the extent. The end of such a copy
    /// must not decide where the extent ends.
    pub incomplete: bool,
}

/// A log and the epoch of the partition that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedLog {
    /// The newest extent of the log.
    pub log: ExtentId,
    /// The owner's epoch.
    pub epoch: Epoch,
}

/// Frames of another copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The frames, in order.
    pub frames: Vec<RawFrame>,
    /// If given, the copy ends there: what follows the last frame is dead.
    pub dead_to: Option<ExtentOffset>,
}

/// One node's copies of extents. A call may be repeated: a change that was made already is answered
/// again, or refused with the end of the copy.
///
/// A member follows the records of groups. It creates no copy of an extent that is gone, and for a
/// writer none in a closed group. It removes what is gone.
///
/// Frames of one call have 15 MiB at most: more is no packet ([`crate::rpc`]).
#[async_trait]
pub trait Member: Send + Sync + Debug {
    /// Verifies frames and appends them. An append that arrives again is answered again if its
    /// bytes are the same. The writer sends the second append of an extent after the first, which
    /// creates the copy, was answered. Returns the end of the append.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the frames do not match their checksums or their place; all write
    /// errors. [`Error::Sealed`] also if the copy is closed. [`Error::OutOfService`] of a new copy
    /// too, while a disk is out of service: a copy may be on that disk.
    async fn append(&self, append: FramedAppend) -> Result<ExtentOffset, Error>;

    /// Makes everything below `end` durable, which the writer has appended.
    ///
    /// # Errors
    /// [`Error::WrongOffset`] if the copy is shorter, since its node has started again and has lost
    /// bytes; [`Error::Sealed`] if it is closed; [`Error::Fenced`], [`Error::Poisoned`],
    /// [`Error::NoSuchExtent`].
    async fn flush(&self, extent: ExtentId, epoch: Epoch, end: ExtentOffset) -> Result<(), Error>;

    /// The parts of frames that have payload bytes `range` of a location. The reader verifies them
    /// with [`verify`].
    ///
    /// # Errors
    /// As [`Capacity::read`](crate::capacity::Capacity::read).
    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<FramePart>, Error>;

    /// Whole frames from `from` on, in order, until they have `bytes_max` bytes, 8 MiB at most, or
    /// the next one is damaged: at least one. No frame means that the copy has none there. The
    /// receiver verifies them. For the replay of logs and for copies.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the first of them is damaged; as [`Self::read`].
    async fn frames(
        &self,
        extent: ExtentId,
        from: ExtentOffset,
        bytes_max: u64,
    ) -> Result<Vec<RawFrame>, Error>;

    /// Makes the copy refuse all lower epochs, and everything that was appended durable. If there
    /// is no copy, an empty one is created, so that a late writer does not create it. A sealed copy
    /// stays as it is. Returns where the copy ends. Durable when the call returns.
    ///
    /// # Errors
    /// [`Error::Fenced`] if the epoch of the copy is already higher; the write errors.
    async fn fence(&self, copy: CopyId, epoch: Epoch) -> Result<ExtentOffset, Error>;

    /// Adds frames of another copy that begin where this one ends. The copy may be closed. Without
    /// a copy, one is created that counts as incomplete until it is sealed. Durable when the call
    /// returns. Returns where the copy ends now.
    ///
    /// # Errors
    /// [`Error::WrongOffset`] if the first frame lies before the end of the copy;
    /// [`Error::Corrupt`] if a frame does not match its checksums or its place, or no extent can
    /// be so long; [`Error::Sealed`]; the write errors.
    async fn extend(
        &self,
        copy: CopyId,
        epoch: Epoch,
        added: Extension,
    ) -> Result<ExtentOffset, Error>;

    /// Seals the copy at the length of the extent, and cuts off what is beyond. Durable when the
    /// call returns.
    ///
    /// # Errors
    /// [`Error::WrongOffset`] if the copy is shorter, or sealed at another length;
    /// [`Error::Fenced`], the write errors.
    async fn seal_at(&self, extent: ExtentId, epoch: Epoch, len: ExtentOffset)
    -> Result<(), Error>;

    /// The copy; `None` if the node has none.
    ///
    /// # Errors
    /// [`Error::OutOfService`] if the copy may be on a disk that is out of service.
    async fn copy(&self, extent: ExtentId) -> Result<Option<CopyInfo>, Error>;

    /// What the node says of its copies of a group's extents.
    ///
    /// # Errors
    /// [`Error::OutOfService`] while a disk is out of service: copies may be on it.
    /// [`Error::NoAnswer`] if the node has not noted the record of the group yet.
    async fn report(&self, group: GroupId) -> Result<MemberReport, Error>;

    /// Those of these logs that their owner may no longer serve from: all but those of which this
    /// node has an open and complete copy at exactly this epoch. For the others the answer is a
    /// read lease ([`ReadLeases`](crate::capacity::ReadLeases)).
    ///
    /// # Errors
    /// [`Error::NoAnswer`]: the node gives no lease, but need not have been fenced.
    async fn fenced(&self, logs: &[OwnedLog]) -> Result<Vec<ExtentId>, Error>;

    /// For how long an owner of this log may still rely on a read lease that the node has given.
    /// Who has fenced the log waits for that long before it serves.
    ///
    /// # Errors
    /// [`Error::NoAnswer`]: wait for [`LEASE_WAIT`](crate::capacity::LEASE_WAIT).
    async fn lease_left(&self, log: ExtentId) -> Result<Duration, Error>;

    /// The owner of these logs does not rely on its read leases any more.
    ///
    /// # Errors
    /// [`Error::NoAnswer`]: the leases end by themselves.
    async fn give_back(&self, logs: &[OwnedLog]) -> Result<(), Error>;

    /// The dead ranges of a copy, in order.
    ///
    /// # Errors
    /// [`Error::NoSuchExtent`], [`Error::OutOfService`].
    async fn dead(&self, extent: ExtentId) -> Result<Vec<Range<u64>>, Error>;

    /// Frees locations, as [`Capacity::free`](crate::capacity::Capacity::free) does.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::OutOfService`]: some locations were not freed.
    async fn free(&self, locations: &[Location]) -> Result<(), Error>;

    /// Frees what `live` does not cover, as [`Capacity::retain`](crate::capacity::Capacity::retain)
    /// does.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::NoSuchExtent`].
    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error>;

    /// A reader found this place of the copy damaged. The node looks there, and has it mended.
    ///
    /// # Errors
    /// [`Error::NoAnswer`]: the scrub finds it later.
    async fn note_damage(&self, damage: Damage) -> Result<(), Error>;

    /// Removes the copy. A copy that does not exist counts as removed.
    ///
    /// # Errors
    /// As [`Capacity::remove`](crate::capacity::Capacity::remove).
    async fn remove(&self, extent: ExtentId) -> Result<(), Error>;
}

/// Verifies the answer of [`Member::read`]. The concatenated pieces are exactly bytes `range` of
/// the location's payload.
///
/// # Errors
/// [`Error::Corrupt`]: read from another member.
pub fn verify(
    location: &Location,
    range: &Range<u64>,
    parts: &[FramePart],
) -> Result<Vec<Bytes>, Error> {
    let corrupt = |offset| Error::Corrupt { extent: location.extent, offset };
    if !is_sane(location, range) {
        return Err(corrupt(location.offset));
    }
    let mut reader = PartReader::new(location);
    let mut wanted = parts_of(location, range);
    for part in parts {
        let want = wanted.next().ok_or_else(|| corrupt(location.offset))?;
        reader.take(&want, part.clone()).map_err(corrupt)?;
    }
    if let Some(missing) = wanted.next() {
        return Err(corrupt(missing.frame.offset));
    }
    let pieces = reader.finish(range).map_err(corrupt)?;
    Ok(pieces.into_iter().map(|piece| piece.into_bytes()).collect())
}
