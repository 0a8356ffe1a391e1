//! The side of the node that has the copies.

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
use super::error::CallFailed;
use super::member::frames_bytes;
use super::member::places_of;
use super::member::read_bytes;
use super::member::split_frames;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::FramePart;
use crate::capacity::FramedAppend;
use crate::capacity::Member;
use crate::capacity::extent::part::is_sane;
use crate::rpc::Incoming;
use crate::rpc::Method;
use crate::rpc::Refusal;
use crate::rpc::Reply;
use crate::rpc::Service;

/// The upper byte of the methods of a member.
pub const SERVICE: u8 = 1;

/// Carries out the calls of other nodes on a member of this one.
#[derive(Debug)]
pub struct MemberService {
    member: Arc<dyn Member>,
}

impl MemberService {
    /// The service of a member.
    #[must_use]
    pub fn new(member: Arc<dyn Member>) -> Self {
        Self { member }
    }

    async fn append(&self, call: Incoming) -> Result<Reply, Refusal> {
        let AppendCall { copy, epoch, offset, durability } = call.decode::<Append>()?;
        let append = FramedAppend { copy, epoch, offset, frames: vec![call.payload], durability };
        answered::<Append, _>(self.member.append(append).await)
    }

    async fn read(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let ReadCall { location, range } = call.decode::<Read>()?;
        // Before memory is taken for them.
        if !is_sane(&location, &range) || read_bytes(&location, &range) > call.answer_bytes_max {
            return Err(Refusal::Malformed);
        }
        let parts = match self.member.read(&location, range).await {
            Ok(parts) => parts,
            Err(error) => return answered::<Read, _>(Err(error)),
        };
        let lengths = parts.iter().map(lengths_of).collect();
        let pieces = parts.into_iter().flat_map(|part| [part.head, part.chunks]).collect();
        Ok(Reply::of::<Read>(&Ok(lengths), pieces))
    }

    async fn frames(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let FramesCall { extent, from, bytes_max } = call.decode::<Frames>()?;
        if frames_bytes(bytes_max) > call.answer_bytes_max {
            return Err(Refusal::Malformed);
        }
        match self.member.frames(extent, from, bytes_max).await {
            Ok(frames) => {
                let places = places_of(&frames);
                let pieces = frames.into_iter().map(|frame| frame.bytes).collect();
                Ok(Reply::of::<Frames>(&Ok(places), pieces))
            }
            Err(error) => answered::<Frames, _>(Err(error)),
        }
    }

    async fn extend(&self, call: Incoming) -> Result<Reply, Refusal> {
        let ExtendCall { copy, epoch, frames, dead_to } = call.decode::<Extend>()?;
        let frames = split_frames(&frames, call.payload).ok_or(Refusal::Malformed)?;
        let added = Extension { frames, dead_to };
        answered::<Extend, _>(self.member.extend(copy, epoch, added).await)
    }
}

/// The answer to a call without a payload.
fn answered<M, T>(outcome: Result<T, Error>) -> Result<Reply, Refusal>
where
    M: Method<Answer = Outcome<T>>,
{
    Ok(Reply::of::<M>(&outcome.map_err(CallFailed::from), Vec::new()))
}

/// Rounded up.
fn millis(left: Duration) -> u64 {
    u64::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// No part of a frame has 4 GiB.
fn lengths_of(part: &FramePart) -> PartLengths {
    let length = |bytes: &Bytes| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    PartLengths { head: length(&part.head), chunks: length(&part.chunks) }
}

#[async_trait]
impl Service for MemberService {
    fn is_read(&self, method: u16) -> bool {
        let reads = [
            Read::NUMBER,
            Frames::NUMBER,
            Copy::NUMBER,
            Fenced::NUMBER,
            Dead::NUMBER,
            Report::NUMBER,
            LeaseLeft::NUMBER,
            NoteDamage::NUMBER,
        ];
        reads.contains(&method)
    }

    async fn serve(&self, call: Incoming) -> Result<Reply, Refusal> {
        let member = &self.member;
        match call.method {
            Append::NUMBER => self.append(call).await,
            Flush::NUMBER => {
                let FlushCall { extent, epoch, end } = call.decode::<Flush>()?;
                answered::<Flush, _>(member.flush(extent, epoch, end).await)
            }
            Read::NUMBER => self.read(&call).await,
            Frames::NUMBER => self.frames(&call).await,
            Fence::NUMBER => {
                let FenceCall { copy, epoch } = call.decode::<Fence>()?;
                answered::<Fence, _>(member.fence(copy, epoch).await)
            }
            Extend::NUMBER => self.extend(call).await,
            SealAt::NUMBER => {
                let SealAtCall { extent, epoch, len } = call.decode::<SealAt>()?;
                answered::<SealAt, _>(member.seal_at(extent, epoch, len).await)
            }
            Copy::NUMBER => answered::<Copy, _>(member.copy(call.decode::<Copy>()?).await),
            Fenced::NUMBER => {
                let logs = call.decode::<Fenced>()?;
                answered::<Fenced, _>(member.fenced(&logs).await)
            }
            Dead::NUMBER => answered::<Dead, _>(member.dead(call.decode::<Dead>()?).await),
            Free::NUMBER => {
                let locations = call.decode::<Free>()?;
                // Others would overflow.
                if !locations.iter().all(|location| is_sane(location, &(0..0))) {
                    return Err(Refusal::Malformed);
                }
                answered::<Free, _>(member.free(&locations).await)
            }
            Retain::NUMBER => {
                let RetainCall { extent, live, audited } = call.decode::<Retain>()?;
                answered::<Retain, _>(member.retain(extent, &live, audited).await)
            }
            NoteDamage::NUMBER => {
                let damage = call.decode::<NoteDamage>()?;
                answered::<NoteDamage, _>(member.note_damage(damage).await)
            }
            Remove::NUMBER => answered::<Remove, _>(member.remove(call.decode::<Remove>()?).await),
            Report::NUMBER => answered::<Report, _>(member.report(call.decode::<Report>()?).await),
            LeaseLeft::NUMBER => {
                let left = member.lease_left(call.decode::<LeaseLeft>()?).await;
                answered::<LeaseLeft, _>(left.map(millis))
            }
            GiveBack::NUMBER => {
                let logs = call.decode::<GiveBack>()?;
                answered::<GiveBack, _>(member.give_back(&logs).await)
            }
            _ => Err(Refusal::UnknownMethod),
        }
    }
}
