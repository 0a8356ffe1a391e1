//! What a cluster looks like now, as its coordinator says.

use std::sync::Arc;

use crate::capacity::groups;
use crate::capacity::groups::GroupRecord;
use crate::coordinator;
use crate::coordinator::claim::Holder;
use crate::coordinator::claim::MANAGES_INDEX;
use crate::coordinator::cluster::ClusterRecord;
use crate::coordinator::hosts::HostClaims;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeTable;
use crate::env::Env;
use crate::index::FollowedMap;
use crate::node::error::NodeError;
use crate::types::GroupId;

use super::coordinator::connect;
use super::group_counts::GroupCounts;
use super::group_counts::is_used;
use super::metrics::state_of;
use super::settings::CoordinatorSettings;
use super::unfinished::Unfinished;

/// A cluster and its nodes.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// What the cluster is.
    pub record: ClusterRecord,
    /// Its nodes, by ids.
    pub nodes: Vec<NodeStatus>,
    /// Groups of extents that have bytes, or may get some.
    pub groups: u64,
    /// Those that have fewer copies than the cluster wants, on nodes that are there.
    pub short: u64,
    /// Those that repair has not finished, as the node that serves said last.
    pub unfinished: u64,
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// What is known of it.
    pub at: NodeAt,
    /// Whether it manages the index now.
    pub is_managing: bool,
    /// Whether it serves partitions of the index now.
    pub is_serving: bool,
    /// How many partitions it serves, or is to serve.
    pub partitions: usize,
    /// Groups of which it has copies.
    pub groups: usize,
}

/// Reads the state of a cluster.
///
/// # Errors
/// [`NodeError`].
pub async fn status(settings: &CoordinatorSettings, env: &Env) -> Result<ClusterStatus, NodeError> {
    let coordinator = connect(settings, env).await?;
    let record = ClusterRecord::read(&*coordinator).await?;
    let manages = Holder::of(&*coordinator, MANAGES_INDEX).await?;
    let claims = HostClaims::start(&*coordinator).await?;
    let map = FollowedMap::start(&*coordinator).await?;
    let table = NodeTable::start(Arc::clone(&coordinator)).await?;
    let mut nodes: Vec<NodeStatus> = Vec::new();
    for at in table.all() {
        let is_managing = manages.is_some_and(|holder| holder.node == at.id);
        let is_serving = claims.get(at.id).is_some();
        let partitions = map.all(|one| one.host.node() == at.id).len();
        nodes.push(NodeStatus { at, is_managing, is_serving, partitions, groups: 0 });
    }
    let mut groups: Vec<GroupRecord> = Vec::new();
    for (group, stored) in groups::read_all(&*coordinator).await?.groups {
        groups.push(stored.record.map_err(|why| not_read(group, why))?);
    }
    for node in &mut nodes {
        let has = |group: &&GroupRecord| is_used(group) && group.has_member(node.at.id);
        node.groups = groups.iter().filter(has).count();
    }
    let GroupCounts { all, short } = GroupCounts::of(groups.iter(), &table.all(), record.copies);
    let unfinished = Unfinished::read(&*coordinator).await?.map_or(0, |unfinished| unfinished.0);
    Ok(ClusterStatus { record, nodes, groups: all, short, unfinished })
}

impl NodeStatus {
    /// One word for its state.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        state_of(&self.at)
    }
}

pub(super) fn not_read(group: GroupId, why: groups::Unread) -> coordinator::Error {
    let reason = format!("the record of group {group} cannot be read: {why}");
    coordinator::Error::Corrupt { reason }
}
