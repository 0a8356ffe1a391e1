//! What a node knows of the groups of its cluster. It keeps the records in its own store: what is
//! closed or gone stays so, also if the coordinator loses it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::time::Duration;

use bytes::Bytes;

use crate::capacity::groups::record::{GroupRecord, GroupState};
use crate::capacity::groups::store::{Error, GroupAt};
use crate::capacity::groups::{Followed, GroupFollower};
use crate::coordinator;
use crate::coordinator::{Coordinator, Op, Revision};
use crate::env::Clock;
use crate::types::ExtentId;
use crate::types::Generation;
use crate::types::GroupId;
use crate::types::NodeId;

/// Keys in the node's own store: this, then the group's id as 16 hex digits.
const PREFIX: &str = "followed/group/";
/// Records that one transaction stores.
const BATCH: usize = 64;
/// How long a node waits after it could not store what it knows.
const PAUSE: Duration = Duration::from_secs(1);

/// The groups of a cluster, as one node knows them.
#[derive(Debug)]
pub struct KnownGroups {
    node: NodeId,
    /// Of this node alone.
    own: Arc<dyn Coordinator>,
    groups: Arc<GroupFollower>,
    /// What the node has in its own store.
    noted: RwLock<BTreeMap<GroupId, GroupRecord>>,
}

/// Whether a node may create a copy of an extent for its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayCreate {
    /// It may.
    Yes,
    /// The group is closed, or the node is no member of it.
    Closed,
    /// The extent is gone, or its group was never made.
    Gone,
}

impl KnownGroups {
    /// Reads what the node has stored.
    ///
    /// # Errors
    /// Those of its own store. [`coordinator::Error::Corrupt`] if a record cannot be read.
    pub async fn open(
        node: NodeId,
        own: Arc<dyn Coordinator>,
        groups: Arc<GroupFollower>,
    ) -> Result<Self, coordinator::Error> {
        let mut noted = BTreeMap::new();
        for (key, entry) in own.range(PREFIX.as_bytes()).await?.entries {
            let record = GroupRecord::decode(&entry.value).map_err(|why| {
                let reason = format!("{} is no record of a group: {why}", key.escape_ascii());
                coordinator::Error::Corrupt { reason }
            })?;
            noted.insert(record.id(), record);
        }
        Ok(Self { node, own, groups, noted: RwLock::new(noted) })
    }

    /// Stores what is new, for ever, and hands over the records after that. The first time all of
    /// them are handed over.
    ///
    /// Cancel safe: another call hands over all of them again.
    pub async fn follow<F>(&self, clock: &dyn Clock, mut heard: impl FnMut(GroupRecord) -> F + Send)
    where
        F: Future<Output = ()> + Send,
    {
        let mut followed = self.groups.followed();
        // By groups: a record that was read or written here may be known before older ones.
        let mut handed_over: BTreeMap<GroupId, Revision> = BTreeMap::new();
        loop {
            followed.mark_unchanged();
            let mut new = self.groups.all();
            new.retain(|at| handed_over.get(&at.record.id()) != Some(&at.revision));
            if let Err(error) = self.note(&new).await {
                tracing::warn!(%error, "what this node knows of groups could not be stored");
                clock.sleep(PAUSE).await;
                continue;
            }
            for at in new {
                handed_over.insert(at.record.id(), at.revision);
                heard(at.record).await;
            }
            if followed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Stores records. They are noted when this returns.
    async fn note(&self, new: &[GroupAt]) -> Result<(), coordinator::Error> {
        let merged = |at: &GroupAt| {
            let noted = self.noted(at.record.id());
            let next = merged(noted.as_ref(), &at.record);
            (noted.as_ref() != Some(&next)).then_some(next)
        };
        let new: Vec<GroupRecord> = new.iter().filter_map(merged).collect();
        for some in new.chunks(BATCH) {
            let put = |record: &GroupRecord| Op::Put(key(record.id()), record.encode());
            let puts: Vec<Op> = some.iter().map(put).collect();
            self.own.txn(&[], &puts).await?;
            let mut noted = self.noted.write().unwrap_or_else(PoisonError::into_inner);
            for record in some {
                noted.insert(record.id(), record.clone());
            }
        }
        Ok(())
    }

    /// The record of a group that the node has stored.
    #[must_use]
    pub fn noted(&self, group: GroupId) -> Option<GroupRecord> {
        self.noted.read().unwrap_or_else(PoisonError::into_inner).get(&group).cloned()
    }

    /// The extents of which the node is to have a copy and whose ends are recorded, as far as it
    /// has stored that.
    #[must_use]
    pub fn ended_here(&self) -> Vec<ExtentId> {
        let noted = self.noted.read().unwrap_or_else(PoisonError::into_inner);
        let here = noted.values().filter(|record| record.has_member(self.node));
        here.flat_map(|record| record.with_length().in_group(record.id())).collect()
    }

    /// The newest of what is known of a group.
    fn newest(&self, group: GroupId) -> Option<GroupRecord> {
        match self.groups.get(group) {
            Followed::Record(at) => Some(at.record),
            Followed::Unread(_) | Followed::Unknown => self.noted(group),
        }
    }

    /// Whether an extent is known to be gone. What was noted counts for ever, also if the
    /// coordinator has lost it.
    #[must_use]
    pub fn is_gone(&self, extent: ExtentId) -> bool {
        let group = extent.group();
        let records = [self.newest(group), self.noted(group)];
        records.into_iter().flatten().any(|record| record.is_gone(extent))
    }

    /// Whether the first append of an extent may create a copy here. A group that is not known is
    /// read.
    ///
    /// # Errors
    /// The record is not known and cannot be read.
    pub async fn may_create(&self, extent: ExtentId) -> Result<MayCreate, Error> {
        if self.newest(extent.group()).is_none() {
            self.groups.find(extent.group()).await?;
        }
        Ok(self.may_create_now(extent))
    }

    /// As [`Self::may_create`], by what is known. Of a group that is not known, nothing may be
    /// created.
    #[must_use]
    pub fn may_create_now(&self, extent: ExtentId) -> MayCreate {
        let group = extent.group();
        let Some(record) = self.newest(group) else { return MayCreate::Gone };
        if self.is_gone(extent) {
            return MayCreate::Gone;
        }
        let is_open = record.state() == GroupState::Open && record.has_member(self.node);
        let noted = self.noted(group).map(|record| record.state());
        if is_open && noted != Some(GroupState::Closed) {
            MayCreate::Yes
        } else {
            MayCreate::Closed
        }
    }

    /// The node.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// The record of a group, read again; `None` if it cannot be read.
    pub async fn read(&self, group: GroupId) -> Option<GroupRecord> {
        let read = self.groups.read(group).await;
        let read = read.inspect_err(|error| tracing::debug!(%error, "a group is not read"));
        Some(read.ok()??.record)
    }

    /// The generation of a group that the node has stored, and whether it has stored that the group
    /// is closed.
    #[must_use]
    pub fn noted_state(&self, group: GroupId) -> Option<(Generation, bool)> {
        let record = self.noted(group)?;
        Some((record.generation(), record.state() == GroupState::Closed))
    }
}

/// What is noted when a record arrives. A group is closed for ever, and an extent is gone for ever,
/// whatever a coordinator says that was restored from an older state.
fn merged(noted: Option<&GroupRecord>, record: &GroupRecord) -> GroupRecord {
    let Some(noted) = noted else { return record.clone() };
    let newer = if record.generation() < noted.generation() { noted } else { record };
    let newer = newer.with_gone(noted.gone().with(record.gone()));
    let closed = [noted.state(), record.state()].contains(&GroupState::Closed);
    if closed { newer.closed() } else { newer }
}

fn key(group: GroupId) -> Bytes {
    format!("{PREFIX}{group}").into()
}

#[cfg(test)]
mod tests;
