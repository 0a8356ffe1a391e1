//! The open extents of this process.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::sync::Mutex as AsyncMutex;

use super::At;
use super::ClusterCapacity;
use super::Found;
use super::GroupIds;
use super::ids::group_kind;
use super::not_recorded;
use super::of_another_node;
use crate::capacity::AppendRequest;
use crate::capacity::Appended;
use crate::capacity::CopyId;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::copies::CopyWriter;
use crate::capacity::copies::GivenUp;
use crate::capacity::groups::Followed;
use crate::capacity::groups::GroupState;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::GroupId;
use crate::types::NodeId;

/// Extents that have ended, of which it is remembered that they lost nothing. If a body has bytes
/// in an older one, its members are asked.
const WHOLE_MAX: usize = 4096;

/// The writers of this process, by their extents.
#[derive(Debug, Default)]
pub(super) struct Writers {
    open: Mutex<BTreeMap<ExtentId, Writing>>,
    /// Extents that ended where their writers knew, with everything durable.
    whole: Mutex<BTreeSet<ExtentId>>,
}

/// An extent that this process writes.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub(super) epoch: Epoch,
    /// In the order of the writer.
    members: Arc<[NodeId]>,
    /// Held while an append is under way.
    pub(super) writer: Arc<AsyncMutex<CopyWriter>>,
}

impl Writers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ExtentId, Writing>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, extent: ExtentId) -> Option<Writing> {
        self.lock().get(&extent).cloned()
    }

    /// The open extents of a group.
    pub(super) fn of_group(&self, group: GroupId) -> Vec<(ExtentId, Writing)> {
        let writers = self.lock();
        let of_group = writers.iter().filter(|(extent, _)| extent.group() == group);
        of_group.map(|(extent, writing)| (*extent, writing.clone())).collect()
    }

    /// The open extents of this process.
    fn all(&self) -> Vec<(ExtentId, Writing)> {
        self.lock().iter().map(|(extent, writing)| (*extent, writing.clone())).collect()
    }

    /// The writer of an extent, which is no longer found here.
    pub(super) fn take(&self, extent: ExtentId) -> Option<Writing> {
        self.lock().remove(&extent)
    }

    /// Removes a writer that has ended, unless there is another one.
    pub(super) fn remove(&self, extent: ExtentId, ended: &Writing) {
        let mut writers = self.lock();
        let known = writers.get(&extent);
        if known.is_some_and(|known| Arc::ptr_eq(&known.writer, &ended.writer)) {
            writers.remove(&extent);
        }
    }

    /// Notes that an extent has ended and lost nothing.
    pub(super) fn note_whole(&self, extent: ExtentId) {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        whole.insert(extent);
        if whole.len() > WHOLE_MAX {
            whole.pop_first();
        }
    }

    fn is_whole(&self, extent: ExtentId) -> bool {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner).contains(&extent)
    }

    /// As [`Self::take`], if its epoch is below this one.
    pub(super) fn take_below(&self, extent: ExtentId, epoch: Epoch) -> Option<Writing> {
        let mut writers = self.lock();
        writers.get(&extent).filter(|writing| writing.epoch < epoch)?;
        writers.remove(&extent)
    }

    /// Whether there was none.
    fn add(&self, extent: ExtentId, writing: Writing) -> bool {
        let mut writers = self.lock();
        if writers.contains_key(&extent) {
            return false;
        }
        writers.insert(extent, writing);
        true
    }
}

impl Writing {
    /// The error of an append. A member that is at fault gets nothing new for a while.
    fn failed(&self, ids: &GroupIds, given_up: GivenUp) -> Error {
        let GivenUp { member, error } = given_up;
        let is_at_fault = match error {
            Error::Poisoned { .. }
            | Error::Ended { .. }
            | Error::OutOfService { .. }
            | Error::NoAnswer { .. }
            | Error::Unreadable { .. }
            | Error::Corrupt { .. } => true,
            // A new owner, a start of the node, or no room, which the table of nodes shows.
            Error::Full
            | Error::Sealed { .. }
            | Error::Fenced { .. }
            | Error::WrongOffset { .. }
            | Error::NoSuchExtent { .. } => false,
        };
        if let Some(node) = member.and_then(|at| self.members.get(at)).filter(|_| is_at_fault) {
            ids.suspect(*node);
        }
        of_another_node(error)
    }
}

impl ClusterCapacity {
    /// Begins an extent. Its copies are created by its first append.
    pub(super) async fn begin(
        &self,
        extent: ExtentId,
        kind: ExtentKind,
        epoch: Epoch,
    ) -> Result<(), Error> {
        let Found { copy, record } = match self.find(extent).await {
            // What nobody has of a closed group is marked as gone. Others may still hold its id.
            Err(Error::NoSuchExtent { .. }) if self.is_gone(extent) => {
                return Err(Error::Sealed { extent });
            }
            found => found?,
        };
        if copy.kind != group_kind(kind) {
            return Err(Error::NoSuchExtent { extent });
        }
        if self.ids.avoids(&record) {
            return Err(Error::NoAnswer { reason: format!("a member of {extent} is passed over") });
        }
        if record.state() == GroupState::Closed {
            return Err(Error::Sealed { extent });
        }
        let mut members = Vec::new();
        for node in record.members() {
            let Some(member) = self.nodes.member(*node) else {
                self.ids.suspect(*node);
                return Err(Error::NoAnswer { reason: format!("node {node} is not known") });
            };
            members.push(member);
        }
        let clock = Arc::clone(&self.env.clock);
        let copy = CopyId { extent, kind };
        let writer = CopyWriter::new(copy, epoch, members).giving_up_by(clock);
        let members = record.members().into();
        let writing = Writing { epoch, members, writer: Arc::new(AsyncMutex::new(writer)) };
        if self.writers.add(extent, writing) { Ok(()) } else { Err(Error::NoSuchExtent { extent }) }
    }

    /// Appends in a task: a caller that goes does not leave the extent with an unknown end.
    pub(super) async fn append_to(&self, request: AppendRequest) -> Result<Appended, Error> {
        let AppendRequest { extent, epoch, offset, payloads, durability } = request;
        let writing = self.writing(extent, epoch)?;
        let ids = Arc::clone(&self.ids);
        self.in_task("append to members", async move {
            let mut writer = writing.writer.lock().await;
            if writer.end() != offset {
                return Err(Error::WrongOffset { extent, expected: writer.end() });
            }
            let appended = writer.append_with(payloads, durability).await;
            // Created, or never used again.
            if offset == ExtentOffset::START {
                ids.created(extent);
            }
            appended.map_err(|given_up| writing.failed(&ids, given_up))
        })
        .await
    }

    /// Makes what was appended durable on all members. If one of them is lost, the others agree on
    /// the end, and it suffices that they have everything: what a client sent cannot be sent again.
    pub(super) async fn flush_all(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        let Some(writing) = self.writers.get(extent) else {
            return self.was_flushed(extent).await;
        };
        if writing.epoch > epoch {
            return Err(Error::Fenced { extent, epoch: writing.epoch });
        }
        let (ids, of_task) = (Arc::clone(&self.ids), writing.clone());
        let flushed = self.in_task("flush members", async move {
            let flushed = of_task.writer.lock().await.flush().await;
            flushed.map_err(|given_up| of_task.failed(&ids, given_up))
        });
        match flushed.await {
            Err(error) if !matches!(error, Error::Fenced { .. }) => {
                tracing::info!(%extent, %error, "agreeing on the end, since a flush failed");
                let found = self.find(extent).await?;
                let agreed = self.agree(found, epoch, Some(&writing)).await;
                // Somebody else may have agreed meanwhile.
                match agreed {
                    _ if self.writers.is_whole(extent) => Ok(()),
                    Err(not_agreed) => Err(not_agreed),
                    Ok(_) => Err(error),
                }
            }
            flushed => flushed,
        }
    }

    /// A clean seal of all copies makes everything durable. If the end was agreed on, bytes may be
    /// cut off.
    async fn was_flushed(&self, extent: ExtentId) -> Result<(), Error> {
        if self.writers.is_whole(extent) {
            return Ok(());
        }
        let Found { record, .. } = self.find(extent).await?;
        let mut sealed = 0;
        for At { node, member } in self.reachable(&record) {
            let copy = self.soon(node, member.copy(extent)).await;
            sealed +=
                usize::from(matches!(copy, Ok(Some(copy)) if copy.state == ExtentState::Sealed));
        }
        let is_sealed = sealed == record.members().len();
        // After that: an agreement is recorded before a copy is sealed.
        let read = self.groups.read(extent.group()).await.map_err(|error| not_recorded(&error))?;
        let is_agreed = read.is_none_or(|at| at.record.length(extent).is_some());
        if is_sealed && !is_agreed { Ok(()) } else { Err(Error::Sealed { extent }) }
    }

    /// Ends the data extents of this process whose groups are to be repaired: their writers go on
    /// in other groups when they append next, and a writer that is idle would hold up the repair.
    /// Logs and runs are ended by their partitions.
    pub async fn leave_groups(&self) {
        let ids: BTreeSet<GroupId> =
            self.writers.all().iter().map(|(extent, _)| extent.group()).collect();
        for group in ids {
            let Followed::Record(at) = self.groups.get(group) else { continue };
            if at.record.kind() != ExtentKind::Data || !self.ids.leaves(&at.record) {
                continue;
            }
            for (extent, writing) in self.writers.of_group(group) {
                match self.end(extent, writing.epoch).await {
                    Ok(end) => tracing::debug!(%extent, %end, "its group is repaired"),
                    Err(error) => tracing::info!(%extent, %error, "it is ended later"),
                }
            }
        }
    }

    fn writing(&self, extent: ExtentId, epoch: Epoch) -> Result<Writing, Error> {
        let writing = self.writers.get(extent).ok_or(Error::Sealed { extent })?;
        if writing.epoch > epoch {
            return Err(Error::Fenced { extent, epoch: writing.epoch });
        }
        Ok(writing)
    }

    pub(super) async fn in_task<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.env.tasks.spawn_part(doing, work).await.unwrap_or(Err(Error::Ended { doing }))
    }
}
