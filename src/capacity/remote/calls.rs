//! The calls of a member, as messages. `api-spec/capacity-calls.md` describes them.

use std::ops::Range;

use serde::Deserialize;
use serde::Serialize;

use super::error::CallFailed;
use crate::capacity::Audited;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Durability;
use crate::capacity::OwnedLog;
use crate::capacity::groups::MemberReport;
use crate::rpc::Method;
use crate::rpc::messages_in;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::GroupId;
use crate::types::Location;

/// What a call ends with.
pub(super) type Outcome<T> = Result<T, CallFailed>;

macro_rules! method {
    ($(#[$doc:meta])* $name:ident = $number:literal, $call:ty => $answer:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name;

        impl Method for $name {
            const NUMBER: u16 = $number;
            type Call = $call;
            type Answer = Outcome<$answer>;
        }
    };
}

method! {
    /// Appends the frames that are the payload. Answers with the end of the append.
    Append = 0x0101, AppendCall => ExtentOffset
}
method! {
    /// Makes appended bytes durable.
    Flush = 0x0102, FlushCall => ()
}
method! {
    /// Reads parts of frames: their lengths, and their bytes as the payload.
    Read = 0x0103, ReadCall => Vec<PartLengths>
}
method! {
    /// Reads whole frames: their places, and their bytes as the payload.
    Frames = 0x0104, FramesCall => Vec<FramePlace>
}
method! {
    /// Fences a copy. Answers with its end.
    Fence = 0x0105, FenceCall => ExtentOffset
}
method! {
    /// Adds the frames that are the payload. Answers with the end of the copy.
    Extend = 0x0106, ExtendCall => ExtentOffset
}
method! {
    /// Seals a copy at a length.
    SealAt = 0x0107, SealAtCall => ()
}
method! {
    /// The state of a copy.
    Copy = 0x0108, ExtentId => Option<CopyInfo>
}
method! {
    /// Which of these logs are fenced.
    Fenced = 0x0109, Vec<OwnedLog> => Vec<ExtentId>
}
method! {
    /// The dead ranges of a copy.
    Dead = 0x010A, ExtentId => Vec<Range<u64>>
}
method! {
    /// Frees locations.
    Free = 0x010B, Vec<Location> => ()
}
method! {
    /// Frees what these ranges do not cover.
    Retain = 0x010C, RetainCall => ()
}
method! {
    /// Removes a copy.
    Remove = 0x010D, ExtentId => ()
}

method! {
    /// What the node says of its copies of a group.
    Report = 0x010E, GroupId => MemberReport
}
method! {
    /// For how long a read lease of a log may still be relied on: milliseconds, rounded up.
    LeaseLeft = 0x010F, ExtentId => u64
}
method! {
    /// Gives read leases back.
    GiveBack = 0x0110, Vec<OwnedLog> => ()
}
method! {
    /// A reader found this place damaged.
    NoteDamage = 0x0111, Damage => ()
}

/// A call of [`Append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AppendCall {
    pub copy: CopyId,
    pub epoch: Epoch,
    pub offset: ExtentOffset,
    pub durability: Durability,
}

/// A call of [`Flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FlushCall {
    pub extent: ExtentId,
    pub epoch: Epoch,
    pub end: ExtentOffset,
}

/// A call of [`Read`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReadCall {
    pub location: Location,
    pub range: Range<u64>,
}

/// The lengths of the two pieces of a part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartLengths {
    pub head: u32,
    pub chunks: u32,
}

/// A call of [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FramesCall {
    pub extent: ExtentId,
    pub from: ExtentOffset,
    pub bytes_max: u64,
}

/// Where a frame of a payload lies in its extent, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FramePlace {
    pub offset: ExtentOffset,
    pub bytes: u32,
}

/// A call of [`Fence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FenceCall {
    pub copy: CopyId,
    pub epoch: Epoch,
}

/// A call of [`Extend`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExtendCall {
    pub copy: CopyId,
    pub epoch: Epoch,
    pub frames: Vec<FramePlace>,
    pub dead_to: Option<ExtentOffset>,
}

/// A call of [`SealAt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SealAtCall {
    pub extent: ExtentId,
    pub epoch: Epoch,
    pub len: ExtentOffset,
}

/// A call of [`Retain`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RetainCall {
    pub extent: ExtentId,
    pub live: Vec<Range<u64>>,
    pub audited: Audited,
}

/// Decodes bytes as the message of each call and of each answer. Returns how many took them. For
/// the fuzz target.
pub(in crate::capacity) fn decode_any(bytes: &[u8]) -> usize {
    let taken = [
        messages_in::<Append>(bytes),
        messages_in::<Flush>(bytes),
        messages_in::<Read>(bytes),
        messages_in::<Frames>(bytes),
        messages_in::<Fence>(bytes),
        messages_in::<Extend>(bytes),
        messages_in::<SealAt>(bytes),
        messages_in::<Copy>(bytes),
        messages_in::<Fenced>(bytes),
        messages_in::<Dead>(bytes),
        messages_in::<Free>(bytes),
        messages_in::<Retain>(bytes),
        messages_in::<Remove>(bytes),
        messages_in::<Report>(bytes),
        messages_in::<LeaseLeft>(bytes),
        messages_in::<GiveBack>(bytes),
        messages_in::<NoteDamage>(bytes),
    ];
    taken.iter().sum()
}
