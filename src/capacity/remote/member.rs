//! The caller's side.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::calls::Append;
use super::calls::AppendCall;
use super::calls::Copy;
use super::calls::Dead;
use super::calls::Extend;
use super::calls::ExtendCall;
use super::calls::Fence;
use super::calls::FenceCall;
use super::calls::Fenced;
use super::calls::Flush;
use super::calls::FlushCall;
use super::calls::FramePlace;
use super::calls::Frames;
use super::calls::FramesCall;
use super::calls::Free;
use super::calls::GiveBack;
use super::calls::LeaseLeft;
use super::calls::NoteDamage;
use super::calls::Outcome;
use super::calls::PartLengths;
use super::calls::Read;
use super::calls::ReadCall;
use super::calls::Remove;
use super::calls::Report;
use super::calls::Retain;
use super::calls::RetainCall;
use super::calls::SealAt;
use super::calls::SealAtCall;
use crate::capacity::Audited;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::FRAME_PAYLOAD_MAX;
use crate::capacity::FramePart;
use crate::capacity::FramedAppend;
use crate::capacity::Member;
use crate::capacity::OwnedLog;
use crate::capacity::RawFrame;
use crate::capacity::extent::frame::HEAD_MAX;
use crate::capacity::extent::frame::head_len;
use crate::capacity::extent::part::is_sane;
use crate::capacity::extent::part::parts_of;
use crate::capacity::groups::MemberReport;
use crate::rpc::Bounds;
use crate::rpc::Method;
use crate::rpc::RemoteNode;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::GroupId;
use crate::types::Location;

/// How long a call may take. Writers and readers that want to go elsewhere sooner drop the call.
const CALL_TIME: Duration = Duration::from_secs(10);
/// The most bytes of an answer without a payload, but for lists.
const SMALL_ANSWER: u32 = 4 << 10;
/// The most bytes of a list of dead ranges.
const DEAD_ANSWER: u32 = 12 << 20;
/// Payload bytes that one call reads: whole frames.
const READ_BYTES: u64 = 8 * FRAME_PAYLOAD_MAX;
/// Bytes of frames that one call returns, but for the last frame.
const FRAMES_BYTES: u64 = 8 << 20;
/// Frames of which no answer has room for all, if they are full.
const FRAMES_MAX: usize = 64;
/// Locations that one call frees.
const FREED_AT_ONCE: usize = 64 << 10;

/// Another node's copies of extents.
#[derive(Debug)]
pub struct RemoteMember {
    peer: Arc<RemoteNode>,
}

impl RemoteMember {
    /// The copies of a node.
    #[must_use]
    pub const fn new(peer: Arc<RemoteNode>) -> Self {
        Self { peer }
    }

    /// Makes a call. Returns its answer and the payload of that.
    async fn call<M, T>(
        &self,
        call: M::Call,
        payload: Vec<Bytes>,
        answer_bytes_max: u32,
    ) -> Result<(T, Bytes), Error>
    where
        M: Method<Answer = Outcome<T>>,
        M::Call: Sync,
    {
        let bounds = Bounds { time: CALL_TIME, answer_bytes_max };
        let (outcome, payload) = self.peer.call::<M>(&call, payload, bounds).await?;
        Ok((outcome?, payload))
    }

    /// As [`Self::call`], without payloads and with a short answer.
    async fn ask<M, T>(&self, call: M::Call) -> Result<T, Error>
    where
        M: Method<Answer = Outcome<T>>,
        M::Call: Sync,
    {
        self.call::<M, T>(call, Vec::new(), SMALL_ANSWER).await.map(|(answer, _)| answer)
    }

    /// One call of a read. `range` is not longer than [`READ_BYTES`].
    async fn read_once(
        &self,
        location: &Location,
        range: Range<u64>,
    ) -> Result<Vec<FramePart>, Error> {
        let answer_bytes_max = read_bytes(location, &range);
        let call = ReadCall { location: *location, range };
        let (lengths, payload) = self.call::<Read, _>(call, Vec::new(), answer_bytes_max).await?;
        let parts = split_parts(&lengths, payload);
        parts.ok_or(Error::Corrupt { extent: location.extent, offset: location.offset })
    }
}

/// The most bytes of the answer to a read, of a location and a range that are sane.
pub(super) fn read_bytes(location: &Location, range: &Range<u64>) -> u32 {
    let parts = parts_of(location, range)
        .map(|part| head_len(part.frame.len) + (part.chunks.end - part.chunks.start));
    // More than this is not added up.
    let bytes: u64 = parts.take(FRAMES_MAX).sum();
    u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(SMALL_ANSWER)
}

/// The most bytes of the answer to a call for so many bytes of frames. The last frame may exceed
/// them. The places of small frames take a quarter more.
pub(super) fn frames_bytes(bytes_max: u64) -> u32 {
    let bytes_max = bytes_max.min(FRAMES_BYTES);
    let bytes = bytes_max + bytes_max / 4 + FRAME_PAYLOAD_MAX + HEAD_MAX;
    u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(SMALL_ANSWER)
}

/// The parts whose bytes are a payload; `None` if the lengths do not fit.
fn split_parts(lengths: &[PartLengths], mut payload: Bytes) -> Option<Vec<FramePart>> {
    let mut take = |bytes| split(&mut payload, bytes);
    let parts = lengths.iter().map(|part| {
        let head = take(part.head)?;
        Some(FramePart { head, chunks: take(part.chunks)? })
    });
    let parts = parts.collect::<Option<_>>()?;
    payload.is_empty().then_some(parts)
}

/// The frames whose bytes are a payload; `None` if the lengths do not fit.
pub(super) fn split_frames(places: &[FramePlace], mut payload: Bytes) -> Option<Vec<RawFrame>> {
    let frames = places.iter().map(|place| {
        Some(RawFrame { offset: place.offset, bytes: split(&mut payload, place.bytes)? })
    });
    let frames = frames.collect::<Option<_>>()?;
    payload.is_empty().then_some(frames)
}

fn split(payload: &mut Bytes, bytes: u32) -> Option<Bytes> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= payload.len())?;
    Some(payload.split_to(bytes))
}

/// Where these frames lie, for a message whose payload they are. No frame has 4 GiB.
pub(super) fn places_of(frames: &[RawFrame]) -> Vec<FramePlace> {
    let place = |frame: &RawFrame| FramePlace {
        offset: frame.offset,
        bytes: u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX),
    };
    frames.iter().map(place).collect()
}

#[async_trait]
impl Member for RemoteMember {
    async fn append(&self, append: FramedAppend) -> Result<ExtentOffset, Error> {
        let FramedAppend { copy, epoch, offset, frames, durability } = append;
        let call = AppendCall { copy, epoch, offset, durability };
        self.call::<Append, _>(call, frames, SMALL_ANSWER).await.map(|(end, _)| end)
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch, end: ExtentOffset) -> Result<(), Error> {
        self.ask::<Flush, _>(FlushCall { extent, epoch, end }).await
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<FramePart>, Error> {
        if !is_sane(location, &range) {
            let Location { extent, offset, .. } = *location;
            return Err(Error::Corrupt { extent, offset });
        }
        let mut parts = Vec::new();
        let mut start = range.start;
        loop {
            // Whole frames, so that no frame is in two calls.
            let end = range.end.min((start / FRAME_PAYLOAD_MAX) * FRAME_PAYLOAD_MAX + READ_BYTES);
            parts.append(&mut self.read_once(location, start..end).await?);
            if end == range.end {
                return Ok(parts);
            }
            start = end;
        }
    }

    async fn frames(
        &self,
        extent: ExtentId,
        from: ExtentOffset,
        bytes_max: u64,
    ) -> Result<Vec<RawFrame>, Error> {
        let bytes_max = bytes_max.min(FRAMES_BYTES);
        // The last frame may exceed the limit. Of small frames the places take a quarter more.
        let bytes = bytes_max + bytes_max / 4 + FRAME_PAYLOAD_MAX + HEAD_MAX;
        let answer_bytes_max =
            u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(SMALL_ANSWER);
        let call = FramesCall { extent, from, bytes_max };
        let (places, payload) = self.call::<Frames, _>(call, Vec::new(), answer_bytes_max).await?;
        split_frames(&places, payload).ok_or(Error::Corrupt { extent, offset: from })
    }

    async fn fence(&self, copy: CopyId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        self.ask::<Fence, _>(FenceCall { copy, epoch }).await
    }

    async fn extend(
        &self,
        copy: CopyId,
        epoch: Epoch,
        added: Extension,
    ) -> Result<ExtentOffset, Error> {
        let Extension { frames, dead_to } = added;
        let call = ExtendCall { copy, epoch, frames: places_of(&frames), dead_to };
        let payload = frames.into_iter().map(|frame| frame.bytes).collect();
        self.call::<Extend, _>(call, payload, SMALL_ANSWER).await.map(|(end, _)| end)
    }

    async fn seal_at(
        &self,
        extent: ExtentId,
        epoch: Epoch,
        len: ExtentOffset,
    ) -> Result<(), Error> {
        self.ask::<SealAt, _>(SealAtCall { extent, epoch, len }).await
    }

    async fn copy(&self, extent: ExtentId) -> Result<Option<CopyInfo>, Error> {
        self.ask::<Copy, _>(extent).await
    }

    async fn report(&self, group: GroupId) -> Result<MemberReport, Error> {
        self.ask::<Report, _>(group).await
    }

    async fn fenced(&self, logs: &[OwnedLog]) -> Result<Vec<ExtentId>, Error> {
        // Ten bytes for each that is named.
        let bytes = u32::try_from(logs.len() * 10).unwrap_or(u32::MAX).saturating_add(SMALL_ANSWER);
        self.call::<Fenced, _>(logs.to_vec(), Vec::new(), bytes).await.map(|(fenced, _)| fenced)
    }

    async fn lease_left(&self, log: ExtentId) -> Result<Duration, Error> {
        self.ask::<LeaseLeft, _>(log).await.map(Duration::from_millis)
    }

    async fn give_back(&self, logs: &[OwnedLog]) -> Result<(), Error> {
        self.ask::<GiveBack, _>(logs.to_vec()).await
    }

    async fn dead(&self, extent: ExtentId) -> Result<Vec<Range<u64>>, Error> {
        self.call::<Dead, _>(extent, Vec::new(), DEAD_ANSWER).await.map(|(dead, _)| dead)
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        let mut result = Ok(());
        for some in locations.chunks(FREED_AT_ONCE) {
            let freed = self.ask::<Free, _>(some.to_vec()).await;
            // The others are freed although some were not.
            result = result.and(freed);
        }
        result
    }

    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error> {
        self.ask::<Retain, _>(RetainCall { extent, live: live.to_vec(), audited }).await
    }

    async fn note_damage(&self, damage: Damage) -> Result<(), Error> {
        self.ask::<NoteDamage, _>(damage).await
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        self.ask::<Remove, _>(extent).await
    }
}
