//! Makes groups: one transaction takes the ids of 64 extents and writes the record of their group.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::capacity::api::ExtentKind;
use crate::capacity::extent::header::kind_code;
use crate::capacity::groups::record::GroupRecord;
use crate::capacity::groups::store::{self, Error, GroupAt};
use crate::coordinator;
use crate::coordinator::counter::{CounterAt, EXTENT_IDS, Taken};
use crate::coordinator::{Compare, Coordinator, Op, TxnReply};
use crate::types::ClusterNumber;
use crate::types::ExtentId;
use crate::types::GROUP_EXTENTS;
use crate::types::GroupId;
use crate::types::Incarnation;
use crate::types::NodeId;

/// How often a group is tried to be made. Each try that fails means that another writer took ids,
/// or that the coordinator gave no answer.
const TRIES_MAX: usize = 32;

/// Makes the groups of one writer. There is one in each incarnation: so a group that names the
/// incarnation, and that a transaction of unknown outcome would have made, was made by it.
///
/// Ids that were skipped so that a group begins at a multiple of 64 are used by nobody.
#[derive(Debug)]
pub struct GroupMaker {
    coordinator: Arc<dyn Coordinator>,
    cluster: ClusterNumber,
    writer: Incarnation,
    /// For each kind, the group of a transaction whose outcome is unknown. Locked during a
    /// transaction.
    doubts: Mutex<[Option<GroupId>; 4]>,
}

impl GroupMaker {
    /// Makes groups of a cluster for a writer.
    #[must_use]
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        cluster: ClusterNumber,
        writer: Incarnation,
    ) -> Self {
        Self { coordinator, cluster, writer, doubts: Mutex::default() }
    }

    /// Makes a group whose extents are to be copied to these members. If an earlier call ended
    /// without an answer, this may return the group that it made, with the members of that call.
    ///
    /// Cancel safe: a group that was made meanwhile is returned by a later call.
    ///
    /// # Errors
    /// [`Error::NoMembers`]. [`Error::Coordinator`]; a group may have been made, and a later call
    /// returns it. [`coordinator::Error::Corrupt`] also if the ids that come next have a group
    /// already: the counter was set back. [`Error::Unread`].
    pub async fn make(&self, kind: ExtentKind, members: &[NodeId]) -> Result<GroupAt, Error> {
        let mut doubts = self.doubts.lock().await;
        let doubt = doubts.get_mut(usize::from(kind_code(kind))).expect("a place for each kind");
        let mut rejected = None;
        for _ in 0..TRIES_MAX {
            let coordinator = self.coordinator.as_ref();
            // Before the group in doubt is looked up: if it is made after that, the counter is no
            // longer as it was read here, and the transaction below is rejected.
            let counter = CounterAt::read(coordinator, self.cluster, EXTENT_IDS).await?;
            let found = match *doubt {
                Some(group) => store::read(coordinator, group).await?,
                None => None,
            };
            let is_made = found.is_some();
            if let Some(made) = found.filter(|at| self.has_made(at, kind)) {
                *doubt = None;
                return Ok(made);
            }
            let Taken { ids, when, then } = counter.take(GROUP_EXTENTS, GROUP_EXTENTS)?;
            let group = ExtentId::new(ids.start).group();
            if is_made && rejected.as_ref() == Some(&when) {
                // The counter is as it was, so the transaction was rejected for the record.
                return Err(set_back(group));
            }
            let record = GroupRecord::new(group, kind, members.to_vec(), self.writer)?;
            let key = store::key(group);
            let absent = Compare::Absent(key.clone());
            let put = Op::Put(key, record.encode());
            // Noted first: this call may be cancelled while it waits for the answer.
            *doubt = Some(group);
            match coordinator.txn(&[when.clone(), absent], &[then, put]).await {
                Ok(TxnReply::Committed(revision)) => {
                    *doubt = None;
                    return Ok(GroupAt { record, revision });
                }
                Ok(TxnReply::Rejected(_)) => rejected = Some(when),
                Err(coordinator::Error::Ambiguous) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let reason = "the extents' counter is contended".into();
        Err(coordinator::Error::Unavailable { reason }.into())
    }

    /// Whether a group in doubt was made here.
    fn has_made(&self, at: &GroupAt, kind: ExtentKind) -> bool {
        at.record.writer() == self.writer && at.record.kind() == kind
    }
}

/// The error of a counter that is as it was, although a group has its next ids.
fn set_back(group: GroupId) -> Error {
    let reason = format!("the extents' counter was set back: group {group} has its next ids");
    coordinator::Error::Corrupt { reason }.into()
}

#[cfg(test)]
mod tests;
