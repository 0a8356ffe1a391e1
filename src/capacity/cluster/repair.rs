//! Repair of a group: every extent gets all its copies again after nodes were lost, drained, or
//! away when the group was made. Only a closed group whose extents have all ended changes its
//! members (ADR 0050), so a step comes only when the one before has been reported by the members.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use super::At;
use super::ClusterCapacity;
use super::not_recorded;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Error;
use crate::capacity::ExtentState;
use crate::capacity::groups;
use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupRecord;
use crate::capacity::groups::GroupState;
use crate::capacity::groups::MemberReport;
use crate::capacity::groups::NodeRow;
use crate::capacity::groups::Refusal;
use crate::capacity::groups::Want;
use crate::capacity::groups::place;
use crate::types::ExtentId;
use crate::types::GroupId;
use crate::types::Incarnation;
use crate::types::NodeId;

use super::ids::ROOM_MIN;

/// What is known of nodes and writers, as repair needs it.
#[derive(Clone, Debug)]
pub struct Present {
    /// The nodes that may have copies.
    pub table: Vec<NodeRow>,
    /// Those whose copies are replaced: lost for good, removed, or being drained.
    pub leaving: BTreeSet<NodeId>,
    /// The writers that live.
    pub writers: BTreeSet<Incarnation>,
}

/// What a step of repair has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The group is closed and as it should be.
    Done,
    /// Its writer lives, and looks after it.
    Written,
    /// Something was changed; there may be more to do.
    Changed,
    /// Copies were completed: so many bytes, at most.
    Pulled(u64),
    /// It waits for a node, for the end of an extent, or for a place for a copy.
    Waits(&'static str),
}

impl ClusterCapacity {
    /// Takes the next step for a group.
    ///
    /// # Errors
    /// As of the members and the coordinator; the step is tried again later.
    pub async fn repair(&self, group: GroupId, present: &Present) -> Result<Step, Error> {
        let found = self.groups.find(group).await.map_err(|error| not_recorded(&error))?;
        let Some(record) = found.map(|at| at.record) else { return Ok(Step::Done) };
        let kept = Extents::ALL.without(record.gone());
        if kept.is_empty() {
            return Ok(Step::Done);
        }
        if record.state() == GroupState::Open {
            if present.writers.contains(&record.writer()) {
                return Ok(Step::Written);
            }
            return self.change_group(group, |record| Ok(record.closed())).await;
        }
        let (reports, silent) = self.reports_of(&record).await;
        let unused = record.without_unused(&reports);
        if unused.is_ok_and(|next| next != record) {
            return self.change_group(group, |record| record.without_unused(&reports)).await;
        }
        let (leaving, stay): (Vec<NodeId>, Vec<NodeId>) =
            record.members().iter().partition(|node| present.leaving.contains(node));
        if !record.unsettled(&reports).is_empty() {
            let is_to_change = stay.len() < self.ids.copies() || !leaving.is_empty();
            return Ok(match is_to_change && self.end_own(group).await {
                true => Step::Changed,
                false => Step::Waits("an extent has no end yet"),
            });
        }
        let lacking = lacking(&stay, kept, &reports);
        for extent in lacking.in_group(group) {
            if let Some(bytes) = self.complete(extent, &record, &stay).await? {
                return Ok(Step::Pulled(bytes));
            }
        }
        // A full node cannot complete its copies: another one gets them, too.
        let is_full = |node: &NodeId| {
            let row = present.table.iter().find(|row| row.id == *node);
            row.is_some_and(|row| row.room < ROOM_MIN)
        };
        let counting = stay.iter().filter(|node| lacking.is_empty() || !is_full(node)).count();
        if counting < self.ids.copies() {
            return self.join_one(&record, (&stay, kept), &reports, present).await;
        }
        if !lacking.is_empty() {
            return Ok(Step::Waits("a member cannot complete its copies"));
        }
        if let Some(why) = silent.filter(|_| !are_all_heard(&stay, &reports)) {
            return Ok(Step::Waits(why));
        }
        if leaving.is_empty() {
            return Ok(Step::Done);
        }
        let copies = self.ids.copies();
        tracing::info!(%group, ?leaving, "the copies of nodes are replaced");
        self.change_group(group, |record| record.left(&leaving, copies, &reports)).await
    }

    /// Adds a member to a group.
    async fn join_one(
        &self,
        record: &GroupRecord,
        (stay, kept): (&[NodeId], Extents),
        reports: &[MemberReport],
        present: &Present,
    ) -> Result<Step, Error> {
        let group = record.id();
        let random = self.env.rand.next_u64();
        let find = |room_min| Place { room_min }.candidate(record, stay, &present.table, random);
        let none = Step::Waits("there is no other machine with room");
        // Asking how large the group is costs a call for each extent.
        if find(ROOM_MIN).is_none() {
            return Ok(none);
        }
        let Some(node) = find(ROOM_MIN + self.bytes_of(record, kept, reports).await) else {
            return Ok(none);
        };
        tracing::info!(%group, %node, "a node gets copies of a group");
        self.change_group(group, |record| record.joined(node, reports)).await
    }

    /// Ends the extents of a group that this process writes, whose writers go on in other groups.
    /// Those of which an append was not answered are ended by their owners. Returns whether there
    /// were any.
    async fn end_own(&self, group: GroupId) -> bool {
        let mut has_ended = false;
        for (extent, writing) in self.writers.of_group(group) {
            let writer = Arc::clone(&writing.writer);
            let sealing = async move { Ok(writer.lock().await.seal().await) };
            if let Ok(Ok(end)) = self.in_task("seal members", sealing).await {
                self.writers.note_whole(extent);
                tracing::debug!(%extent, %end, "an extent ends, since its group is repaired");
                self.writers.remove(extent, &writing);
                has_ended = true;
            }
        }
        has_ended
    }

    async fn change_group(
        &self,
        group: GroupId,
        change: impl Fn(&GroupRecord) -> Result<GroupRecord, Refusal> + Send,
    ) -> Result<Step, Error> {
        match groups::change(self.coordinator.as_ref(), group, &[], change).await {
            Ok(at) => {
                self.groups.note(at);
                Ok(Step::Changed)
            }
            // It has changed since it was looked at.
            Err(groups::Error::Refused { .. }) => Ok(Step::Waits("the group has changed")),
            Err(error) => Err(not_recorded(&error)),
        }
    }

    /// What the members that answer say of their copies, and why another one does not.
    async fn reports_of(&self, record: &GroupRecord) -> (Vec<MemberReport>, Option<&'static str>) {
        let members = self.reachable(record);
        let asked =
            members.iter().map(|At { node, member }| self.soon(*node, member.report(record.id())));
        let (mut reports, mut silent) = (Vec::new(), None);
        for answer in join_all(asked).await {
            match answer {
                // Those of another generation say nothing.
                Ok(report) if report.generation == record.generation() => reports.push(report),
                Ok(_) => silent = Some("a member has not followed the record yet"),
                Err(Error::OutOfService { .. }) => {
                    silent = Some("a disk of a member is out of service");
                }
                Err(_) => silent = silent.or(Some("a member does not answer")),
            }
        }
        if silent.is_none() && reports.len() < record.members().len() {
            silent = Some("a member is not known");
        }
        (reports, silent)
    }

    /// How many bytes a copy of the group has, as far as a member that has all of them says.
    async fn bytes_of(&self, record: &GroupRecord, kept: Extents, reports: &[MemberReport]) -> u64 {
        let is_whole = |at: &&At| {
            let mut said = reports.iter().filter(|report| report.node == at.node);
            said.any(|report| report.whole.has_all(kept))
        };
        let reachable = self.reachable(record);
        let Some(At { node, member }) = reachable.iter().find(is_whole) else { return 0 };
        let asked = kept.in_group(record.id()).map(|extent| self.soon(*node, member.copy(extent)));
        let copies = join_all(asked).await.into_iter().flatten().flatten();
        copies.map(|copy| copy.end.get()).sum()
    }

    /// Gives all copies of an extent what they lack. Returns how many bytes it has if a member that
    /// stays has got all of them by that.
    async fn complete(
        &self,
        extent: ExtentId,
        record: &GroupRecord,
        stay: &[NodeId],
    ) -> Result<Option<u64>, Error> {
        let reachable = self.reachable(record);
        let before = self.copies_of(&reachable, extent).await;
        let known = || before.iter().filter_map(|(_, copy)| *copy);
        let Some(first) = known().next() else { return Ok(None) };
        let epoch = known().map(|copy| copy.epoch).max().unwrap_or(first.epoch);
        let members: Vec<At> = before.iter().map(|(at, _)| at.clone()).collect();
        let copy = CopyId { extent, kind: first.kind };
        let settled = match self.settle(copy, epoch, &members).await {
            Ok(settled) => settled,
            Err(error) => {
                tracing::info!(%extent, %error, "copies of an extent are completed later");
                return Ok(None);
            }
        };
        let is_whole = |copy: &Option<CopyInfo>| {
            copy.is_some_and(|copy| copy.state == ExtentState::Sealed && !copy.incomplete)
        };
        let count = |copies: &[(At, Option<CopyInfo>)]| {
            let whole =
                copies.iter().filter(|(at, copy)| stay.contains(&at.node) && is_whole(copy));
            whole.count()
        };
        let after = self.copies_of(&reachable, extent).await;
        Ok((count(&after) > count(&before)).then_some(settled.end.get()))
    }

    /// The copies of an extent on those of these members that answer.
    async fn copies_of(&self, members: &[At], extent: ExtentId) -> Vec<(At, Option<CopyInfo>)> {
        let asked = members.iter().map(|at| async move {
            let copy = self.soon(at.node, at.member.copy(extent)).await.ok()?;
            Some((at.clone(), copy))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}

/// The extents of which a member that stays lacks bytes.
fn lacking(stay: &[NodeId], kept: Extents, reports: &[MemberReport]) -> Extents {
    let of_members = reports.iter().filter(|report| stay.contains(&report.node));
    of_members.fold(Extents::NONE, |lacking, report| lacking.with(kept.without(report.whole)))
}

fn are_all_heard(nodes: &[NodeId], reports: &[MemberReport]) -> bool {
    nodes.iter().all(|node| reports.iter().any(|report| report.node == *node))
}

/// What a new member needs.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Bytes.
    room_min: u64,
}

impl Place {
    /// A node for another copy: on a machine without one, and in a zone without one if there is
    /// one.
    fn candidate(
        self,
        record: &GroupRecord,
        stay: &[NodeId],
        table: &[NodeRow],
        random: u64,
    ) -> Option<NodeId> {
        let rows = || table.iter().filter(|row| stay.contains(&row.id));
        let machines: BTreeSet<&str> = rows().map(|row| row.machine.as_str()).collect();
        let zones: BTreeSet<&str> = rows().map(|row| row.zone.as_str()).collect();
        let is_free =
            |row: &&NodeRow| !machines.contains(row.machine.as_str()) && !record.has_member(row.id);
        let free: Vec<NodeRow> = table.iter().filter(is_free).cloned().collect();
        let is_apart = |row: &&NodeRow| !zones.contains(row.zone.as_str());
        let apart: Vec<NodeRow> = free.iter().filter(is_apart).cloned().collect();
        let want = Want { copies: 1, room_min: self.room_min, random };
        [apart, free].iter().find_map(|rows| place(rows, want).members.first().copied())
    }
}
