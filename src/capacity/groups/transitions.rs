//! All changes of a group's record, as pure functions from record to record (ADR 0050).
//!
//! A function whose change has been made already returns the record as it is. So a transaction
//! whose outcome is unknown is simply tried again.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::capacity::groups::extents::Extents;
use crate::capacity::groups::record::{GroupRecord, GroupState, MEMBERS_MAX};
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Generation;
use crate::types::NodeId;

/// What a member says of its copies of a group's extents. A copy that is marked for removal counts
/// as none here: it is in no set, not even in `absent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReport {
    /// The member.
    pub node: NodeId,
    /// The generation that it had followed when it looked at its copies. Reports of another
    /// generation than the record's say nothing: a node that leaves a group and joins it again may
    /// have removed its copies in between.
    pub generation: Generation,
    /// Whether it has durably noted that the group is closed. It creates no extent then.
    pub has_noted_closed: bool,
    /// The extents that it never had, or had as the only member and removed. What it may have lost,
    /// as with a disk, is not among them.
    pub absent: Extents,
    /// The extents that are sealed here, so that their end is settled.
    pub sealed: Extents,
    /// The sealed ones of which it has all bytes, durably.
    pub whole: Extents,
}

/// Why a record is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum Refusal {
    /// The extent is of another group.
    #[error("extent {0} is of another group")]
    NotOfGroup(ExtentId),
    /// Close it first.
    #[error("the group is open")]
    Open,
    /// Another end was recorded first. All adopt that one.
    #[error("the end of extent {extent} is settled at {end}")]
    Settled {
        /// The extent.
        extent: ExtentId,
        /// Its end.
        end: ExtentOffset,
    },
    /// The extent is gone: it has no end, and what is left of it is removed.
    #[error("extent {0} is gone")]
    Gone(ExtentId),
    /// The ends of these extents are not settled, as far as the reports say. Settle them first.
    #[error("the ends of some extents are not settled: {0:?}")]
    Unsettled(Extents),
    /// Members have changed. A new member never had anything, so it is too late to decide that
    /// nobody had an extent.
    #[error("members of the group have changed")]
    MembersChanged,
    /// No member reported that it takes no new extents of the group.
    #[error("no member has noted that the group is closed")]
    NotNoted,
    /// The group has [`MEMBERS_MAX`] members.
    #[error("the group has {MEMBERS_MAX} members")]
    Full,
    /// Too few members would be left.
    #[error("the group has no members to spare")]
    TooFew,
    /// This member, which would stay, does not have all bytes, as far as the reports say.
    #[error("node {0} does not have all bytes of the group")]
    NotWhole(NodeId),
}

impl GroupRecord {
    /// Closes the group: no extent is created in it any more. Its writer does so when all its ids
    /// are used or when a member is away or draining, the manager when the writer has no session.
    /// Members learn it from the record and note it durably.
    #[must_use]
    pub fn closed(&self) -> Self {
        Self { state: GroupState::Closed, ..self.clone() }
    }

    /// Records where an extent ends whose seal was unclean. The first length wins. The group may be
    /// open or closed.
    ///
    /// Who proposes a length must know that all that was answered is below it. If it settles what
    /// another writer left, each member that it reached is fenced and has all bytes up to it.
    ///
    /// # Errors
    /// [`Refusal::Settled`] with another end, [`Refusal::Gone`], [`Refusal::NotOfGroup`].
    pub fn settled(&self, extent: ExtentId, end: ExtentOffset) -> Result<Self, Refusal> {
        if !self.has(extent) {
            return Err(Refusal::NotOfGroup(extent));
        }
        if self.is_gone(extent) {
            return Err(Refusal::Gone(extent));
        }
        let mut next = self.clone();
        let end_now = *next.lengths.entry(extent.place()).or_insert(end);
        if end_now == end { Ok(next) } else { Err(Refusal::Settled { extent, end: end_now }) }
    }

    /// Marks extents as gone of which no byte is used any more. The group may be open or closed.
    /// Members remove them then; the length of one that has a length is forgotten.
    ///
    /// Who asks for it must know that no row names a byte, no reader and no writer uses one, and
    /// that its writer is done with it. An extent whose end is not settled may still be written.
    ///
    /// # Errors
    /// [`Refusal::Unsettled`].
    pub fn freed(&self, unused: Extents, reports: &[MemberReport]) -> Result<Self, Refusal> {
        let unsettled = unused.common(self.unsettled(reports));
        if !unsettled.is_empty() {
            return Err(Refusal::Unsettled(unsettled));
        }
        Ok(self.with_gone(unused))
    }

    /// Marks as gone what nobody ever had: each extent that is absent at all members that reported,
    /// if one of them has noted that the group is closed. The first append of an extent is answered
    /// when all members have it, so nothing in such an extent was ever answered, and this one
    /// member stops a writer that is late.
    ///
    /// # Errors
    /// [`Refusal::Open`], [`Refusal::MembersChanged`], [`Refusal::NotNoted`].
    pub fn without_unused(&self, reports: &[MemberReport]) -> Result<Self, Refusal> {
        if self.state == GroupState::Open {
            return Err(Refusal::Open);
        }
        if self.generation != Generation::FIRST {
            return Err(Refusal::MembersChanged);
        }
        if !self.current(reports).any(|report| report.has_noted_closed) {
            return Err(Refusal::NotNoted);
        }
        let absent = self.current(reports).map(|report| report.absent);
        let absent = absent.fold(Extents::ALL, Extents::common);
        Ok(self.with_gone(absent.without(self.with_length())))
    }

    /// Adds a member, which then pulls what the others have. Only a closed group whose extents have
    /// all ended may change its members.
    ///
    /// # Errors
    /// [`Refusal::Open`], [`Refusal::Unsettled`], [`Refusal::Full`].
    pub fn joined(&self, node: NodeId, reports: &[MemberReport]) -> Result<Self, Refusal> {
        if self.has_member(node) {
            return Ok(self.clone());
        }
        self.may_change_members(reports)?;
        if self.members.len() >= MEMBERS_MAX {
            return Err(Refusal::Full);
        }
        let mut members = self.members.clone();
        members.push(node);
        Ok(Self { members, generation: self.generation.next(), ..self.clone() })
    }

    /// Removes members when all others have all bytes, and at least `copies` of them are left. The
    /// nodes keep their copies until they have read the record again.
    ///
    /// # Errors
    /// [`Refusal::Open`], [`Refusal::Unsettled`], [`Refusal::TooFew`], [`Refusal::NotWhole`].
    pub fn left(
        &self,
        nodes: &[NodeId],
        copies: usize,
        reports: &[MemberReport],
    ) -> Result<Self, Refusal> {
        if !nodes.iter().any(|node| self.has_member(*node)) {
            return Ok(self.clone());
        }
        self.may_change_members(reports)?;
        let members: Vec<NodeId> =
            self.members.iter().copied().filter(|member| !nodes.contains(member)).collect();
        if members.len() < copies.max(1) {
            return Err(Refusal::TooFew);
        }
        let kept = Extents::ALL.without(self.gone);
        let is_whole = |member: NodeId| {
            let mut said = self.current(reports).filter(|report| report.node == member);
            said.any(|report| report.whole.has_all(kept))
        };
        if let Some(short) = members.iter().find(|member| !is_whole(**member)) {
            return Err(Refusal::NotWhole(*short));
        }
        Ok(Self { members, generation: self.generation.next(), ..self.clone() })
    }

    /// The extents whose ends are not settled, as far as the record and these reports say: none of
    /// them is gone, has a length, or is sealed at a member.
    #[must_use]
    pub fn unsettled(&self, reports: &[MemberReport]) -> Extents {
        let settled = self.gone.with(self.with_length());
        let sealed = self.current(reports).fold(settled, |all, report| all.with(report.sealed));
        Extents::ALL.without(sealed)
    }

    fn may_change_members(&self, reports: &[MemberReport]) -> Result<(), Refusal> {
        if self.state == GroupState::Open {
            return Err(Refusal::Open);
        }
        let unsettled = self.unsettled(reports);
        if unsettled.is_empty() { Ok(()) } else { Err(Refusal::Unsettled(unsettled)) }
    }

    /// The reports that say something about this record.
    fn current<'a>(&self, reports: &'a [MemberReport]) -> impl Iterator<Item = &'a MemberReport> {
        let is_current = |report: &&MemberReport| report.generation == self.generation;
        reports.iter().filter(is_current).filter(|report| self.has_member(report.node))
    }

    /// The record in which these extents are gone. Length and gone exclude each other.
    pub(super) fn with_gone(&self, extents: Extents) -> Self {
        let mut next = self.clone();
        next.gone = next.gone.with(extents);
        next.lengths.retain(|place, _| !extents.has_all(Extents::at(*place)));
        next
    }
}

#[cfg(test)]
mod tests;
