//! How a node reaches the copies of extents: its own directly, those of others by calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::capacity::Member;
use crate::capacity::cluster::Nodes;
use crate::capacity::groups::NodeRow;
use crate::capacity::remote::RemoteMember;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeLife;
use crate::coordinator::nodes::NodeState;
use crate::coordinator::nodes::NodeTable;
use crate::index::remote::Peers;
use crate::rpc::CallerConfig;
use crate::rpc::RemoteNode;
use crate::types::NodeId;
use crate::types::NodeRoles;

/// The nodes of the cluster, as this one reaches them.
#[derive(Debug)]
pub(super) struct ReachedNodes {
    us: CallerConfig,
    /// The copies of this node, if it has any.
    own: Option<Arc<dyn Member>>,
    table: Arc<NodeTable>,
    others: Mutex<BTreeMap<NodeId, Other>>,
}

/// Another node, where it was last.
#[derive(Debug)]
struct Other {
    host: String,
    port: u16,
    peer: Arc<RemoteNode>,
    member: Arc<RemoteMember>,
}

impl Other {
    fn at(us: &CallerConfig, node: NodeId, life: &NodeLife) -> Self {
        let peer = Arc::new(RemoteNode::new(us, node, &life.host, life.port));
        let member = Arc::new(RemoteMember::new(Arc::clone(&peer)));
        Self { host: life.host.clone(), port: life.port, peer, member }
    }

    fn is_at(&self, life: &NodeLife) -> bool {
        self.host == life.host && self.port == life.port
    }
}

impl ReachedNodes {
    pub(super) fn new(
        us: CallerConfig,
        own: Option<Arc<dyn Member>>,
        table: Arc<NodeTable>,
    ) -> Self {
        Self { us, own, table, others: Mutex::default() }
    }

    /// The way to another node.
    pub(super) fn peer(&self, node: NodeId) -> Option<Arc<RemoteNode>> {
        if node == self.us.node.node {
            return None;
        }
        self.other(node, |other| Arc::clone(&other.peer))
    }

    /// A node that is away is called where it was last: it may only be cut off from the
    /// coordinator.
    fn other<T>(&self, node: NodeId, what: impl FnOnce(&Other) -> T) -> Option<T> {
        let NodeAt { record, life, .. } = self.table.get(node)?;
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if record.state == NodeState::Removed {
            if let Some(gone) = others.remove(&node) {
                gone.peer.disconnect();
            }
            return None;
        }
        if let Some(life) = life
            && others.get(&node).is_none_or(|known| !known.is_at(&life))
            && let Some(moved) = others.insert(node, Other::at(&self.us, node, &life))
        {
            moved.peer.disconnect();
        }
        others.get(&node).map(what)
    }
}

impl Peers for ReachedNodes {
    fn peer(&self, node: NodeId) -> Option<Arc<RemoteNode>> {
        Self::peer(self, node)
    }

    fn name(&self, node: NodeId) -> Option<String> {
        self.table.get(node).map(|at| at.record.name)
    }
}

impl Nodes for ReachedNodes {
    fn member(&self, node: NodeId) -> Option<Arc<dyn Member>> {
        if node == self.us.node.node {
            return self.own.clone();
        }
        self.other(node, |other| Arc::clone(&other.member) as Arc<dyn Member>)
    }

    fn here(&self) -> Option<NodeId> {
        self.own.as_ref().map(|_| self.us.node.node)
    }

    fn table(&self) -> Vec<NodeRow> {
        let has_copies = |at: &NodeAt| {
            let life = at.life.as_ref();
            life.is_none_or(|life| life.roles.has(NodeRoles::CAPACITY))
        };
        let row = |NodeAt { id, record, life }: NodeAt| NodeRow {
            id,
            machine: record.machine,
            zone: record.zone,
            room: life.as_ref().map_or(0, |life| life.room),
            load: life.as_ref().map_or(0, |life| life.load),
            state: record.state,
            is_away: life.is_none(),
        };
        self.table.all().into_iter().filter(has_copies).map(row).collect()
    }
}
