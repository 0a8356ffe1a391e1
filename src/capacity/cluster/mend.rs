//! Mends damaged copies of this node from other copies: one frame after the other, or, if no frame
//! of a copy can be found, the whole copy.

use std::sync::Arc;

use super::At;
use super::ClusterCapacity;
use super::Found;
use super::not_recorded;
use super::readers::FRAMES_BYTES;
use super::readers::Failures;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Error;
use crate::capacity::ExtentState;
use crate::capacity::LocalMember;
use crate::capacity::Member;
use crate::capacity::RawFrame;
use crate::capacity::copies::EndRecord;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// The damage lies at most so far behind the place that was noted: a read that failed may have
/// covered several frames.
const SEARCHED: u64 = 4 << 20;

/// Why a copy was not mended with the frames of another one.
enum Unmended {
    /// The other copy is damaged too, or does not answer.
    Other(Error),
    /// No frame of this copy can be found.
    Lost,
    /// The disk does not take the bytes, or the node cannot.
    Here(Error),
}

impl ClusterCapacity {
    /// Mends what is found damaged in the copies of this node, for ever.
    ///
    /// Cancel safe: what is being mended may stay damaged until the next scrub.
    pub async fn mend_local(&self, local: &LocalMember) {
        let (damages, clock) = (local.damages(), Arc::clone(&self.env.clock));
        loop {
            let damage = damages.next(&*clock).await;
            let Damage { extent, offset } = damage;
            match self.mend(damage, local).await {
                Ok(frames) => {
                    damages.resolve(damage);
                    if frames > 0 {
                        tracing::warn!(%extent, %offset, frames, "a damaged copy was mended");
                    }
                }
                Err(error) => match damages.put_off(damage, &*clock) {
                    0 => tracing::error!(
                        %extent, %offset, %error,
                        "a damaged copy cannot be mended now; it is tried again"
                    ),
                    tries => tracing::debug!(%extent, %offset, tries, %error, "not mended yet"),
                },
            }
        }
    }

    /// Mends the local copy from a place on. Returns how many frames were mended.
    ///
    /// # Errors
    /// If no other copy could be read there, or the disk does not take the bytes.
    pub(super) async fn mend(&self, damage: Damage, local: &LocalMember) -> Result<u64, Error> {
        let extent = damage.extent;
        // Before anybody else is asked.
        let own = local.copy(extent).await?;
        if own.is_some_and(|own| damage.offset >= own.end) {
            return Ok(0);
        }
        let found = match self.find(extent).await {
            // It is gone.
            Err(Error::NoSuchExtent { .. }) => return Ok(0),
            found => found?,
        };
        let Some(own) = own else { return self.make_again(found, local).await };
        // An open copy is mended once it is sealed: the scrub finds the damage again. Repair
        // completes one that is incomplete.
        if own.state != ExtentState::Sealed || own.incomplete {
            return Ok(0);
        }
        let mut failures = Failures::default();
        for other in self.others(&found) {
            if let Err(error) = self.is_whole(&other, extent, own.end).await {
                failures.add(error);
                continue;
            }
            match mend_from(&*other.member, damage, local).await {
                Ok(frames) => return Ok(frames),
                Err(Unmended::Other(error)) => failures.add(error),
                Err(Unmended::Here(error)) => return Err(error),
                Err(Unmended::Lost) => return self.replace(found, own, local).await,
            }
        }
        Err(failures.into_error())
    }

    /// The other members that can be reached.
    pub(super) fn others(&self, found: &Found) -> Vec<At> {
        let here = self.nodes.here();
        let mut others = self.reachable(&found.record);
        others.retain(|at| Some(at.node) != here);
        others
    }

    /// # Errors
    /// Unless the member has a sealed copy with all bytes of an extent that ends there.
    async fn is_whole(&self, at: &At, extent: ExtentId, end: ExtentOffset) -> Result<(), Error> {
        let copy = self.soon(at.node, at.member.copy(extent)).await?;
        let is_whole = |copy: &CopyInfo| {
            copy.state == ExtentState::Sealed && !copy.incomplete && copy.end == end
        };
        if copy.as_ref().is_some_and(is_whole) {
            return Ok(());
        }
        let reason = format!("node {} has no whole copy of {extent}", at.node);
        Err(Error::NoAnswer { reason })
    }

    /// Replaces the local copy, of which no frame can be found, by a new one with the frames of
    /// another copy. Returns how many that has.
    async fn replace(
        &self,
        found: Found,
        own: CopyInfo,
        local: &LocalMember,
    ) -> Result<u64, Error> {
        let (extent, end) = (found.copy.extent, own.end);
        let mut failures = Failures::default();
        let mut source = None;
        for other in self.others(&found) {
            let whole = self.is_whole(&other, extent, end).await;
            let counted = match whole {
                Ok(()) => count_frames(&*other.member, extent).await,
                Err(error) => Err(error),
            };
            match counted {
                Ok(counted) => {
                    source = Some(counted);
                    break;
                }
                Err(error) => failures.add(error),
            }
        }
        let Some((frames, first)) = source else { return Err(failures.into_error()) };
        // From now on nobody takes the missing copy for one of an extent without bytes.
        let recorded = self.ends.record(extent, end).await;
        let recorded = recorded.map_err(|reason| Error::NoAnswer { reason })?;
        if recorded != end {
            return Err(Error::Corrupt { extent, offset: recorded });
        }
        // Its file may have come back.
        if let Some(first) = first
            && !local.mend(extent, vec![first]).await?.is_lost
        {
            return Err(Error::NoAnswer { reason: "the copy can be read again".to_owned() });
        }
        tracing::warn!(%extent, "no frame of a copy can be found: it is made again");
        local.remove(extent).await?;
        self.pull_again(found, end, local).await?;
        Ok(frames.max(1))
    }

    /// Makes a copy again that this node has removed, unless nobody knows where its extent ends:
    /// then it was not removed here. Returns how many frames were mended: none.
    async fn make_again(&self, found: Found, local: &LocalMember) -> Result<u64, Error> {
        let Found { copy, .. } = found;
        // The end may have been recorded a moment ago.
        let read = self.groups.read(copy.extent.group()).await;
        let Some(at) = read.map_err(|error| not_recorded(&error))? else { return Ok(0) };
        let record = at.record;
        let is_member = self.nodes.here().is_some_and(|here| record.has_member(here));
        match record.length(copy.extent).filter(|_| is_member) {
            Some(end) => self.pull_again(Found { copy, record }, end, local).await.map(|()| 0),
            None => Ok(0),
        }
    }

    async fn pull_again(
        &self,
        found: Found,
        end: ExtentOffset,
        local: &LocalMember,
    ) -> Result<(), Error> {
        let extent = found.copy.extent;
        let copies = self.copies_at(&self.reachable(&found.record), extent).await;
        // A copy answers to no lower epoch than its own.
        let highest = copies.iter().map(|(_, copy)| copy.epoch).max();
        let nobody = || Error::NoAnswer { reason: format!("no copy of {extent} answers") };
        self.agree(found, highest.ok_or_else(nobody)?, None).await?;
        let is_made = |copy: &CopyInfo| {
            copy.state == ExtentState::Sealed && !copy.incomplete && copy.end == end
        };
        if local.copy(extent).await?.as_ref().is_some_and(is_made) {
            return Ok(());
        }
        Err(Error::NoAnswer { reason: format!("the copy of {extent} is not made again yet") })
    }

    /// Tells the node of a copy that a reader found it damaged.
    pub(super) fn tell_of_damage(&self, member: Arc<dyn Member>, damage: Damage) {
        let telling = async move {
            // If it does not answer, its scrub finds the damage.
            drop(member.note_damage(damage).await);
        };
        drop(self.env.tasks.spawn("tell of damage", telling));
    }
}

/// Mends the local copy with the frames of another one, up to the first that is intact behind the
/// damage. Returns how many were mended.
async fn mend_from(
    other: &dyn Member,
    Damage { extent, offset }: Damage,
    local: &LocalMember,
) -> Result<u64, Unmended> {
    let searched_to = offset + SEARCHED;
    let (mut from, mut mended, mut failed) = (offset, 0, 0);
    loop {
        let frames = other.frames(extent, from, FRAMES_BYTES).await.map_err(Unmended::Other)?;
        let is_in_order = frames.iter().all(|frame| frame.offset >= from);
        let next = frames.last().and_then(|last| last.verified(extent)).map(|last| last.next);
        let Some(next) = next.filter(|_| is_in_order) else {
            if frames.is_empty() {
                break;
            }
            return Err(Unmended::Other(Error::Corrupt { extent, offset: from }));
        };
        let done = match local.mend(extent, frames).await {
            // One of these frames is damaged. Another member may have it.
            Err(error @ Error::Corrupt { .. }) => return Err(Unmended::Other(error)),
            done => done.map_err(Unmended::Here)?,
        };
        if done.is_lost {
            return Err(Unmended::Lost);
        }
        mended += done.frames;
        failed += done.failed;
        let has_passed = mended + failed > 0 && done.intact_at.is_some();
        if has_passed || next > searched_to && done.intact_at.is_some() {
            break;
        }
        from = next;
    }
    if failed > 0 {
        let reason = format!("the disk does not take {failed} frames");
        return Err(Unmended::Here(Error::Unreadable { extent, reason }));
    }
    Ok(mended)
}

/// How many frames a copy has, all of which are intact, and the first one.
async fn count_frames(
    member: &dyn Member,
    extent: ExtentId,
) -> Result<(u64, Option<RawFrame>), Error> {
    let (mut from, mut count, mut first) = (ExtentOffset::START, 0, None);
    loop {
        let frames = member.frames(extent, from, FRAMES_BYTES).await?;
        if frames.is_empty() {
            return Ok((count, first));
        }
        for frame in frames {
            let corrupt = || Error::Corrupt { extent, offset: frame.offset };
            let good = frame.verified(extent).filter(|good| good.offset >= from);
            from = good.ok_or_else(corrupt)?.next;
            count += 1;
            first.get_or_insert(frame);
        }
    }
}
