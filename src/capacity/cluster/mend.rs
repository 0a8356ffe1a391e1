//! Mends damaged copies of this node from other copies: one frame after the other, or, if no frame
//! of a copy can be read, the whole copy.

use std::sync::Arc;
use std::time::Duration;

use super::At;
use super::ClusterCapacity;
use super::Found;
use super::readers::FRAMES_BYTES;
use super::readers::Failures;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Error;
use crate::capacity::ExtentState;
use crate::capacity::LocalMember;
use crate::capacity::Member;
use crate::capacity::Mended;
use crate::capacity::copies::EndRecord;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// When damage is looked at again that no other copy could mend.
const AGAIN: Duration = Duration::from_secs(60);

/// Why a copy was not mended.
enum Unmended {
    /// The other copy is damaged too, or does not answer.
    Other(Error),
    /// No frame of this copy can be found.
    Whole,
    /// The disk does not take the bytes.
    Disk(Error),
}

impl ClusterCapacity {
    /// Mends what is found damaged in the copies of this node, for ever.
    ///
    /// Cancel safe: what is being mended may stay damaged until the next scrub.
    pub async fn mend_local(&self, local: &LocalMember) {
        let (damages, clock) = (local.damages(), Arc::clone(&self.env.clock));
        let mut later: Vec<(Duration, Damage)> = Vec::new();
        loop {
            let now = clock.monotonic();
            let wait = later.first().map(|(due, _)| due.saturating_sub(now));
            let damage = tokio::select! {
                biased;
                damage = damages.next() => damage,
                () = clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {
                    later.remove(0).1
                }
            };
            let Damage { extent, offset } = damage;
            match self.mend(damage, local).await {
                Ok(0) => tracing::debug!(%extent, %offset, "nothing has to be mended there"),
                Ok(frames) => tracing::warn!(%extent, %offset, frames, "a damaged copy was mended"),
                Err(error) => {
                    tracing::error!(
                        %extent, %offset, %error,
                        "a damaged copy is not mended yet; it is tried again"
                    );
                    later.push((clock.monotonic() + AGAIN, damage));
                }
            }
        }
    }

    /// Mends the local copy from a damaged frame on, up to the next intact one. Returns how many
    /// frames were mended.
    ///
    /// # Errors
    /// If no other copy could be read there, or the disk does not take the bytes.
    pub(super) async fn mend(&self, damage: Damage, local: &LocalMember) -> Result<u64, Error> {
        let extent = damage.extent;
        let found = match self.find(extent).await {
            // It is gone.
            Err(Error::NoSuchExtent { .. }) => return Ok(0),
            found => found?,
        };
        // An open copy is mended once it is sealed: the scrub finds the damage again. One that is
        // incomplete is completed by repair.
        let is_whole = |copy: &CopyInfo| copy.state == ExtentState::Sealed && !copy.incomplete;
        let Some(own) = local.copy(extent).await?.filter(is_whole) else { return Ok(0) };
        let here = self.nodes.here();
        let mut others = self.reachable(&found.record);
        others.retain(|at| Some(at.node) != here);
        let mut failures = Failures::default();
        for other in &others {
            match mend_from(&*other.member, damage, local).await {
                Ok(frames) => return Ok(frames),
                Err(Unmended::Other(error)) => failures.add(error),
                Err(Unmended::Disk(error)) => return Err(error),
                Err(Unmended::Whole) => return self.replace(found, own, local, &others).await,
            }
        }
        Err(failures.into_error())
    }

    /// Replaces the local copy by a new one with the frames of another copy. Returns how many that
    /// has.
    async fn replace(
        &self,
        found: Found,
        own: CopyInfo,
        local: &LocalMember,
        others: &[At],
    ) -> Result<u64, Error> {
        let (extent, end) = (found.copy.extent, own.end);
        let mut failures = Failures::default();
        let mut frames = None;
        for At { node, member } in others {
            let copy = self.soon(*node, member.copy(extent)).await;
            let is_whole = |copy: &CopyInfo| {
                copy.state == ExtentState::Sealed && !copy.incomplete && copy.end == end
            };
            match copy {
                Ok(copy) if copy.as_ref().is_some_and(is_whole) => {}
                Ok(_) => continue,
                Err(error) => {
                    failures.add(error);
                    continue;
                }
            }
            match count_frames(&**member, extent).await {
                Ok(count) => {
                    frames = Some(count);
                    break;
                }
                Err(error) => failures.add(error),
            }
        }
        let Some(frames) = frames else { return Err(failures.into_error()) };
        // From now on nobody takes the missing copy for one of an extent without bytes.
        let recorded = self.ends.record(extent, end).await;
        let recorded = recorded.map_err(|reason| Error::NoAnswer { reason })?;
        if recorded != end {
            return Err(Error::Corrupt { extent, offset: recorded });
        }
        tracing::warn!(%extent, "no frame of a copy can be read: it is made again");
        local.remove(extent).await?;
        // If that fails, repair goes on when this node has started again.
        let members = self.reachable(&found.record);
        let settled = self.settle(found.copy, own.epoch, &members).await;
        settled.map_err(|error| Error::NoAnswer { reason: error.to_string() })?;
        Ok(frames)
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

/// Mends the local copy with the frames of another one, from a damaged frame on up to the next one
/// that is intact. Returns how many were mended.
async fn mend_from(
    other: &dyn Member,
    Damage { extent, offset }: Damage,
    local: &LocalMember,
) -> Result<u64, Unmended> {
    let (mut from, mut mended) = (offset, 0);
    loop {
        let frames = other.frames(extent, from, FRAMES_BYTES).await.map_err(Unmended::Other)?;
        if frames.is_empty() {
            return Ok(mended);
        }
        for frame in frames {
            let corrupt = || Unmended::Other(Error::Corrupt { extent, offset: frame.offset });
            let next = frame.verified(extent).ok_or_else(corrupt)?.next;
            match local.mend(extent, &frame).await {
                Ok(Mended::Mended) => mended += 1,
                // Behind what was freed here there may be more of the damage.
                Ok(Mended::Left) => {}
                Ok(Mended::Intact) => return Ok(mended),
                Ok(Mended::Lost) => return Err(Unmended::Whole),
                Err(error) => return Err(Unmended::Disk(error)),
            }
            from = next;
        }
    }
}

/// How many frames a copy has, all of which are intact.
async fn count_frames(member: &dyn Member, extent: ExtentId) -> Result<u64, Error> {
    let (mut from, mut count) = (ExtentOffset::START, 0);
    loop {
        let frames = member.frames(extent, from, FRAMES_BYTES).await?;
        if frames.is_empty() {
            return Ok(count);
        }
        for frame in frames {
            let corrupt = || Error::Corrupt { extent, offset: frame.offset };
            from = frame.verified(extent).ok_or_else(corrupt)?.next;
            count += 1;
        }
    }
}
