//! How extents end: fences, seals, removals.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use super::At;
use super::ClusterCapacity;
use super::Found;
use super::SILENCE_MAX;
use super::not_recorded;
use super::of_another_node;
use super::writers::Writing;
use crate::capacity::Audited;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::copies::Patience;
use crate::capacity::copies::Settlement;
use crate::capacity::copies::Settling;
use crate::capacity::copies::Unsettled;
use crate::capacity::groups;
use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupRecord;
use crate::capacity::groups::MemberReport;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// How long a member that failed lately is asked for its copy before an agreement. Without its
/// answer the agreement goes on as without the member.
const SUSPECT_WAIT: Duration = Duration::from_millis(100);

impl From<Unsettled> for Error {
    fn from(unsettled: Unsettled) -> Self {
        match unsettled {
            Unsettled::NotLevel(error) => of_another_node(error),
            Unsettled::NoWitness | Unsettled::NotRecorded(_) | Unsettled::Short { .. } => {
                Self::NoAnswer { reason: unsettled.to_string() }
            }
        }
    }
}

impl ClusterCapacity {
    /// Makes the members that can be reached refuse lower epochs. One that answers suffices: an
    /// append is answered when all members have it. The others go on with it. An earlier owner of a
    /// log answers no read when this returns.
    pub(super) async fn fence_any(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        let Found { copy, record } = self.find(extent).await?;
        drop(self.writers.take_below(extent, epoch));
        let was_owned_here = self.leases.end_below(extent, epoch, self.env.clock.boot_time());
        let mut answers = FuturesUnordered::new();
        for At { member, .. } in self.reachable(&record) {
            let fence = async move { member.fence(copy, epoch).await.map(|_| member) };
            answers.push(self.env.tasks.spawn_part("fence a member", fence));
        }
        let mut failures = self.failures(&record);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(Ok(member)) => {
                    if copy.kind == ExtentKind::Log && !was_owned_here {
                        self.outlive_leases(&*member, extent).await;
                    }
                    return Ok(());
                }
                Ok(Err(error @ Error::Fenced { .. })) => return Err(error),
                Ok(Err(error)) => failures.add(error),
                Err(_) => failures.add(Error::Ended { doing: "fence" }),
            }
        }
        Err(failures.into_error())
    }

    /// Ends an extent: as its writer, if every append was answered; else by agreement.
    pub(super) async fn end(&self, extent: ExtentId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        let Found { copy, record } = self.find(extent).await?;
        let writing = self.writers.get(extent);
        if let Some(writing) = &writing {
            if writing.epoch > epoch {
                return Err(Error::Fenced { extent, epoch: writing.epoch });
            }
            // In a task, as an append.
            let writer = Arc::clone(&writing.writer);
            let sealing = async move { Ok(writer.lock().await.seal().await) };
            match self.in_task("seal members", sealing).await? {
                Ok(end) => {
                    self.writers.note_whole(extent);
                    self.writers.remove(extent, writing);
                    return Ok(end);
                }
                Err(given_up) => tracing::info!(%extent, %given_up, "agreeing on the end"),
            }
        }
        Ok(self.agree(Found { copy, record }, epoch, writing.as_ref()).await?.end)
    }

    /// Agrees on the end of an extent. Notes it if the writer lost nothing by that.
    pub(super) async fn agree(
        &self,
        Found { copy, record }: Found,
        epoch: Epoch,
        writing: Option<&Writing>,
    ) -> Result<Settlement, Error> {
        let extent = copy.extent;
        let reachable = self.reachable(&record);
        let copies = self.copies_at(&reachable, extent).await;
        let is_open = |(_, copy): &&(At, CopyInfo)| copy.state != ExtentState::Sealed;
        let highest = copies.iter().filter(is_open).map(|(_, copy)| copy.epoch).max();
        // Above its writer's: an append may be on its way to a member. Who owns a log has fenced
        // its writer before.
        let above = match (writing, copy.kind) {
            (Some(writing), _) => highest.unwrap_or(writing.epoch).max(writing.epoch).next(),
            // A sealed copy answers to no lower epoch than its own.
            (None, ExtentKind::Data) => {
                let known = copies.iter().map(|(_, copy)| copy.epoch).max();
                highest.map_or(epoch, Epoch::next).max(known.unwrap_or(epoch))
            }
            (None, ExtentKind::Log | ExtentKind::Run) => epoch,
        };
        let copy = of_kind(copy, &copies);
        let settled = self.settle(copy, epoch.max(above), &reachable).await?;
        if let Some(writing) = writing {
            if self.has_kept_all(writing, settled).await {
                self.writers.note_whole(extent);
            }
            self.writers.remove(extent, writing);
        }
        Ok(settled)
    }

    /// Whether everything that was appended is durable on at most one node less than wanted. All
    /// members had it when they answered, and a seal makes it durable.
    async fn has_kept_all(&self, writing: &Writing, settled: Settlement) -> bool {
        let appended = writing.writer.lock().await.end();
        settled.end >= appended && settled.sealed >= self.ids.copies_min()
    }

    /// Agrees on the end of an extent with these members. Those that failed lately are waited for
    /// only while there are too few others.
    pub(super) async fn settle(
        &self,
        copy: CopyId,
        epoch: Epoch,
        members: &[At],
    ) -> Result<Settlement, Unsettled> {
        let suspects = self.ids.suspects();
        let (failed, well): (Vec<_>, Vec<_>) =
            members.iter().partition(|at| suspects.contains(&at.node));
        let patience = Patience {
            clock: &*self.env.clock,
            expected: well.len(),
            enough: self.ids.copies_min(),
        };
        let members = well.into_iter().chain(failed).map(|at| Arc::clone(&at.member)).collect();
        let record = &self.ends;
        Settling { copy, epoch, record, patience: Some(patience) }.run(&members).await
    }

    /// Frees locations on all members that can be reached. One that cannot compares its dead ranges
    /// with the others when it is back.
    pub(super) async fn free_on_all(&self, locations: &[Location]) -> Result<(), Error> {
        let mut of_extents: BTreeMap<ExtentId, Vec<Location>> = BTreeMap::new();
        for location in locations {
            of_extents.entry(location.extent).or_default().push(*location);
        }
        let mut result = Ok(());
        for (extent, locations) in of_extents {
            let freed = self
                .on_all(extent, |at| {
                    let locations = locations.clone();
                    async move { at.member.free(&locations).await }
                })
                .await;
            // The others are freed although some were not.
            result = result.and(freed);
        }
        result
    }

    /// Frees in all copies what is not live. A member that cannot be reached frees it when it asks
    /// the others what they have freed. No member may believe that it knows all frees then: one
    /// that has started again since the audit began may have lost some.
    pub(super) async fn retain_on_all(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
    ) -> Result<(), Error> {
        let part = Audited::Part;
        self.on_all(extent, |at| async move { at.member.retain(extent, live, part).await }).await
    }

    /// Makes a call to all members of an extent that can be reached. It succeeds if it does at one
    /// of them, and is not needed for an extent that is gone.
    pub(super) async fn on_all<F>(
        &self,
        extent: ExtentId,
        call: impl Fn(At) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let record = match self.find(extent).await {
            Ok(Found { record, .. }) => record,
            Err(Error::NoSuchExtent { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let answers = join_all(self.reachable(&record).into_iter().map(call)).await;
        let (mut failures, mut done) = (self.failures(&record), 0);
        for answer in answers {
            match answer {
                Ok(()) => done += 1,
                Err(error) => failures.add(error),
            }
        }
        if done > 0 { Ok(()) } else { Err(failures.into_error()) }
    }

    /// Removes an extent: the record says that it is gone before a copy is removed. A member that
    /// cannot be reached removes its copy when it reads the record.
    pub(super) async fn remove_all(&self, extent: ExtentId) -> Result<(), Error> {
        let Found { copy, record } = match self.find(extent).await {
            Ok(found) => found,
            Err(Error::NoSuchExtent { .. }) => {
                self.ids.forget_unused(extent);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.ids.waits_for_closing(extent, &record) {
            return Err(may_be_created(extent));
        }
        drop(self.writers.take(extent));
        self.stretches.forget(extent);
        self.ids.created(extent);
        let reachable = self.reachable(&record);
        let mut copies = self.copies_at(&reachable, extent).await;
        let are_all_reached = reachable.len() == record.members().len();
        if copies.is_empty() && are_all_reached && self.have_none(&reachable, extent).await {
            if self.ids.is_writer(&record) {
                // It was never used. When its group is closed, it counts as gone.
                return Ok(());
            }
            // The first append of the process that made the group may still be on its way. It is
            // refused once the members know that the group is closed.
            self.ids.wait_for_closing(extent);
            return Err(may_be_created(extent));
        }
        if !is_settled(&record, &copies, extent) {
            // Nobody writes it any more, but only an end that is settled may be forgotten.
            let highest = copies.iter().map(|(_, copy)| copy.epoch).max();
            let epoch = highest.unwrap_or(Epoch::new(0)).next();
            self.settle(of_kind(copy, &copies), epoch, &reachable).await?;
            copies = self.copies_at(&reachable, extent).await;
        }
        let reports = reports(&record, &copies, extent);
        let unused = Extents::of(extent.group(), [extent]).unwrap_or_default();
        let freed = |record: &GroupRecord| record.freed(unused, &reports);
        let changed = groups::change(self.coordinator.as_ref(), extent.group(), &[], freed).await;
        self.groups.note(changed.map_err(|error| not_recorded(&error))?);
        let removed = join_all(reachable.iter().map(|at| at.member.remove(extent))).await;
        for error in removed.into_iter().filter_map(Result::err) {
            tracing::debug!(%extent, %error, "a copy is removed later");
        }
        Ok(())
    }
}

impl ClusterCapacity {
    /// Whether all of these members say that they have no copy.
    async fn have_none(&self, members: &[At], extent: ExtentId) -> bool {
        let answers = join_all(members.iter().map(|at| at.member.copy(extent))).await;
        answers.iter().all(|answer| matches!(answer, Ok(None)))
    }

    /// The copies of an extent on those of these members that answer.
    pub(super) async fn copies_at(&self, members: &[At], extent: ExtentId) -> Vec<(At, CopyInfo)> {
        let suspects = self.ids.suspects();
        let found = members.iter().map(|at| {
            let is_suspect = suspects.contains(&at.node);
            let patience = if is_suspect { SUSPECT_WAIT } else { SILENCE_MAX };
            let copy = self.within(patience, at.node, at.member.copy(extent));
            async move { Some((at.clone(), copy.await.ok()??)) }
        });
        join_all(found).await.into_iter().flatten().collect()
    }
}

/// Why an extent of another process is not released yet.
fn may_be_created(extent: ExtentId) -> Error {
    Error::NoAnswer { reason: format!("{extent} may still be created: its group is closed first") }
}

/// The extent as its copies name it: the group of a run does not say that it is one.
fn of_kind(copy: CopyId, copies: &[(At, CopyInfo)]) -> CopyId {
    let kind = copies.first().map_or(copy.kind, |(_, copy)| copy.kind);
    CopyId { kind, ..copy }
}

fn is_settled(record: &GroupRecord, copies: &[(At, CopyInfo)], extent: ExtentId) -> bool {
    let is_sealed = |(_, copy): &(At, CopyInfo)| copy.state == ExtentState::Sealed;
    record.length(extent).is_some() || copies.iter().any(is_sealed)
}

/// What members say of their copies of one extent. They were asked after the record was read, so
/// they speak of its generation.
fn reports(record: &GroupRecord, copies: &[(At, CopyInfo)], extent: ExtentId) -> Vec<MemberReport> {
    let this = Extents::of(extent.group(), [extent]).unwrap_or_default();
    let report = |(at, copy): &(At, CopyInfo)| {
        let sealed = if copy.state == ExtentState::Sealed { this } else { Extents::NONE };
        MemberReport {
            node: at.node,
            generation: record.generation(),
            has_noted_closed: false,
            absent: Extents::NONE,
            sealed,
            // Nobody asks here.
            whole: Extents::NONE,
        }
    };
    copies.iter().map(report).collect()
}
