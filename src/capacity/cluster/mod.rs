//! [`Capacity`](super::Capacity) of a cluster: extents by id, whose copies are on the members of
//! their groups. Index, front end and reclaim use it as they use a local node.
//!
//! - `nodes.rs`: where the members of a group are found;
//! - `ids.rs`: the groups that this process makes, and whose extents it creates;
//! - `writers.rs`: the open extents of this process, and appends to them;
//! - `readers.rs`: reads, from the first member that can answer; `latencies.rs`: when the next one
//!   is asked too;
//! - `ends.rs`: fences, seals and removals;
//! - `leases.rs`: whether the owner of a log may answer reads;
//! - `settler.rs`: the end of copies that nobody else seals;
//! - `mend.rs`: damaged copies of this node; `frees.rs`: frees that they have missed;
//! - `repair.rs`: new members for groups whose nodes are gone;
//! - `as_capacity.rs`: all of that behind the trait.
//!
//! Invariants: those of `copies/` · a replay ends where all agree that the extent ends ·
//! an extent is marked as gone before a copy of it is removed.

mod as_capacity;
mod ends;
mod frees;
mod ids;
mod latencies;
mod leases;
mod mend;
mod nodes;
mod readers;
mod repair;
mod settler;
#[cfg(test)]
mod tests;
mod writers;

pub use ids::{ClusterParts, GroupIds};
pub use nodes::Nodes;
pub use repair::{Present, Step};
pub use settler::Settled;

use std::sync::Arc;
use std::time::Duration;

use crate::capacity::CopyId;
use crate::capacity::Error;
use crate::capacity::Member;
use crate::capacity::copies::GroupEnds;
use crate::capacity::groups;
use crate::capacity::groups::Followed;
use crate::capacity::groups::GroupFollower;
use crate::capacity::groups::GroupRecord;
use crate::coordinator::Coordinator;
use crate::env::Env;
use crate::types::ExtentId;
use crate::types::NodeId;

use latencies::Latencies;
use leases::HeldLeases;
use readers::{Failures, Stretches};
use writers::Writers;

/// The extents of a cluster.
#[derive(Debug)]
pub struct ClusterCapacity {
    env: Env,
    coordinator: Arc<dyn Coordinator>,
    groups: Arc<GroupFollower>,
    nodes: Arc<dyn Nodes>,
    ends: GroupEnds,
    ids: Arc<GroupIds>,
    writers: Writers,
    stretches: Stretches,
    latencies: Latencies,
    leases: HeldLeases,
}

/// A member of an extent's group, if it can be reached.
#[derive(Clone, Debug)]
struct At {
    node: NodeId,
    member: Arc<dyn Member>,
}

/// An extent with what its group's record says.
#[derive(Debug)]
struct Found {
    copy: CopyId,
    record: GroupRecord,
}

impl ClusterCapacity {
    /// The extents of a cluster, as this process reaches them.
    #[must_use]
    pub fn new(parts: ClusterParts, ids: Arc<GroupIds>) -> Self {
        let ClusterParts { env, coordinator, groups, nodes, .. } = parts;
        let ends = GroupEnds::new(Arc::clone(&coordinator));
        Self {
            env,
            coordinator,
            groups,
            nodes,
            ends,
            ids,
            writers: Writers::default(),
            stretches: Stretches::default(),
            latencies: Latencies::default(),
            leases: HeldLeases::default(),
        }
    }

    /// Finds the group of an extent.
    ///
    /// # Errors
    /// [`Error::NoSuchExtent`] also if it is gone; [`Error::NoAnswer`] if the record is not known
    /// and cannot be read.
    async fn find(&self, extent: ExtentId) -> Result<Found, Error> {
        let found = self.groups.find(extent.group()).await;
        let found = found.map_err(|error| Error::NoAnswer { reason: error.to_string() })?;
        let record = found.ok_or(Error::NoSuchExtent { extent })?.record;
        if record.is_gone(extent) {
            return Err(Error::NoSuchExtent { extent });
        }
        Ok(Found { copy: CopyId { extent, kind: record.kind() }, record })
    }

    /// Whether an extent is known to be gone.
    fn is_gone(&self, extent: ExtentId) -> bool {
        let known = self.groups.get(extent.group());
        matches!(known, Followed::Record(at) if at.record.is_gone(extent))
    }

    /// The members that can be reached: the one of this process first, and last those that
    /// failed lately.
    fn reachable(&self, record: &GroupRecord) -> Vec<At> {
        let (here, suspects) = (self.nodes.here(), self.ids.suspects());
        let at = |node: &NodeId| Some(At { node: *node, member: self.nodes.member(*node)? });
        let mut reachable: Vec<At> = record.members().iter().filter_map(at).collect();
        reachable.sort_by_key(|at| (suspects.contains(&at.node), Some(at.node) != here));
        reachable
    }

    /// What is known before the members are asked: those that cannot be reached do not answer.
    fn failures(&self, record: &GroupRecord) -> Failures {
        let mut failures = Failures::default();
        for node in record.members() {
            if self.nodes.member(*node).is_none() {
                failures.add(Error::NoAnswer { reason: format!("node {node} is not known") });
            }
        }
        failures
    }
}

/// A member that works answers a question within this time.
const SILENCE_MAX: Duration = Duration::from_millis(500);

impl ClusterCapacity {
    /// The answer of a member, unless it is silent. A member that does not answer is passed over
    /// for a while.
    async fn soon<T>(
        &self,
        node: NodeId,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.within(SILENCE_MAX, node, call).await
    }

    /// As [`Self::soon`], with another time.
    async fn within<T>(
        &self,
        silence_max: Duration,
        node: NodeId,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            () = self.env.clock.sleep(silence_max) => {
                Err(Error::NoAnswer { reason: "it has been silent for too long".to_owned() })
            }
        };
        if matches!(answer, Err(Error::NoAnswer { .. })) {
            self.ids.suspect(node);
        }
        answer
    }
}

/// What the trouble of another node's disks means here: it does not answer.
fn of_another_node(error: Error) -> Error {
    match error {
        Error::Poisoned { .. }
        | Error::Ended { .. }
        | Error::OutOfService { .. }
        | Error::Unreadable { .. } => Error::NoAnswer { reason: error.to_string() },
        Error::Sealed { .. }
        | Error::Fenced { .. }
        | Error::WrongOffset { .. }
        | Error::NoSuchExtent { .. }
        | Error::Corrupt { .. }
        | Error::Full
        | Error::NoAnswer { .. } => error,
    }
}

/// An error of the coordinator, as one of capacity.
fn not_recorded(error: &groups::Error) -> Error {
    Error::NoAnswer { reason: error.to_string() }
}
