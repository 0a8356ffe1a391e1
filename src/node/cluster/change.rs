//! What operators want of the nodes of a cluster.

use std::sync::Arc;

use crate::capacity::groups;
use crate::coordinator::Coordinator;
use crate::coordinator::cluster::ClusterRecord;
use crate::coordinator::nodes;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeState;
use crate::coordinator::nodes::NodeTable;
use crate::env::Env;
use crate::node::error::NodeError;
use crate::types::NodeId;

use super::coordinator::connect;
use super::settings::CoordinatorSettings;
use super::status::not_read;

/// A change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Its copies are moved to other nodes, and it gets no new ones.
    Drain,
    /// It takes new copies again.
    Activate,
    /// It is no part of the cluster any more, for ever. Its process ends.
    Remove {
        /// Whether it is removed although it has copies, which are made again elsewhere.
        lost: bool,
    },
}

/// Sets what is wanted of a node, by its name.
///
/// # Errors
/// [`NodeError::NoSuchName`]; [`NodeError::HasCopies`] of a node that is not lost; others of the
/// coordinator.
pub async fn change(
    settings: &CoordinatorSettings,
    name: &str,
    wanted: Wanted,
    env: &Env,
) -> Result<NodeAt, NodeError> {
    let coordinator = connect(settings, env).await?;
    ClusterRecord::read(&*coordinator).await?;
    let table = NodeTable::start(Arc::clone(&coordinator)).await?;
    let mut named = table.all().into_iter().filter(|at| at.record.name == name);
    let at = named.next().ok_or_else(|| NodeError::NoSuchName { name: name.to_owned() })?;
    let state = match wanted {
        Wanted::Drain => NodeState::Draining,
        Wanted::Activate => NodeState::Active,
        Wanted::Remove { lost } => {
            let groups = groups_of(&*coordinator, at.id).await?;
            if groups > 0 && !lost {
                return Err(NodeError::HasCopies { name: name.to_owned(), groups });
            }
            NodeState::Removed
        }
    };
    if at.record.state == NodeState::Removed && state != NodeState::Removed {
        return Err(NodeError::NoSuchName { name: name.to_owned() });
    }
    nodes::set_state(&*coordinator, at.id, state).await?;
    let record = nodes::NodeRecord { state, ..at.record };
    Ok(NodeAt { record, ..at })
}

/// In how many groups a node has copies.
async fn groups_of(coordinator: &dyn Coordinator, node: NodeId) -> Result<usize, NodeError> {
    let all = groups::read_all(coordinator).await?;
    let mut count = 0;
    for (group, stored) in all.groups {
        let record = stored.record.map_err(|why| not_read(group, why))?;
        let is_empty = groups::Extents::ALL.without(record.gone()).is_empty();
        if record.has_member(node) && !is_empty {
            count += 1;
        }
    }
    Ok(count)
}
