//! What the processes of an index see of each other.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use blockyard::coordinator::claim::Holder;
use blockyard::coordinator::claim::WatchHolder;
use blockyard::env::Clock;
use blockyard::env::Env;
use blockyard::env::Tasks;
use blockyard::index::Error;
use blockyard::index::FollowedMap;
use blockyard::index::IndexHost;
use blockyard::index::PartitionControl;
use blockyard::index::PartitionCounts;
use blockyard::index::Processes;
use blockyard::index::Read;
use blockyard::index::Target;
use blockyard::index::remote::ClusterIndex;
use blockyard::index::remote::ClusterPartitions;
use blockyard::index::remote::IndexClients;
use blockyard::index::remote::Peers;
use blockyard::index::remote::ServedIndex;
use blockyard::manager::MovesPartitions;
use blockyard::rpc::CallerConfig;
use blockyard::rpc::NodeIdentity;
use blockyard::rpc::RemoteNode;
use blockyard::types::HostId;
use blockyard::types::Incarnation;
use blockyard::types::NodeId;

use super::LOOKS_EVERY;
use crate::nodes::CapacityNodes;
use crate::nodes::SERVERS;

/// The processes that have a session: the front end, and those that serve.
#[derive(Clone, Debug)]
pub(super) struct Alive(pub(super) Arc<Mutex<BTreeSet<NodeIdentity>>>);

impl Alive {
    pub(super) fn has(&self, process: NodeIdentity) -> bool {
        self.0.lock().unwrap().contains(&process)
    }

    pub(super) fn begin(&self, process: NodeIdentity) {
        self.0.lock().unwrap().insert(process);
    }

    pub(super) fn end(&self, process: NodeIdentity) {
        self.0.lock().unwrap().remove(&process);
    }

    pub(super) fn writers(&self) -> BTreeSet<Incarnation> {
        self.0.lock().unwrap().iter().map(|process| process.incarnation).collect()
    }
}

/// The sessions, as one process sees them.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) alive: Alive,
    pub(super) front: NodeIdentity,
    pub(super) here: NodeIdentity,
}

#[async_trait]
impl IndexClients for Sessions {
    /// The others have no requests of clients.
    fn all(&self) -> Vec<NodeIdentity> {
        vec![self.front, self.here]
    }

    fn has(&self, process: NodeIdentity) -> bool {
        self.alive.has(process)
    }

    async fn refresh(&self) -> Result<(), Error> {
        if self.alive.has(self.here) {
            return Ok(());
        }
        Err(Error::Unavailable("the session of this process has ended".to_owned()))
    }
}

/// The processes whose requests the process that serves asks about.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) served: Arc<ServedIndex>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) front: Arc<RemoteNode>,
}

#[async_trait]
impl Processes for Known {
    async fn all(&self) -> Result<Vec<NodeIdentity>, Error> {
        Ok(self.served.index_clients(&*self.sessions))
    }

    /// The front end has one life, and only it copies.
    async fn settled(&self) -> Result<(BTreeSet<NodeIdentity>, u64), Error> {
        self.sessions.refresh().await?;
        let with_session: BTreeSet<NodeIdentity> = self.sessions.all().into_iter().collect();
        let all: BTreeSet<NodeIdentity> = self.all().await?.into_iter().collect();
        if all != with_session {
            return Err(Error::NoAnswer("a process comes or goes".to_owned()));
        }
        Ok((with_session, 0))
    }

    fn peer(&self, process: NodeIdentity) -> Option<Arc<RemoteNode>> {
        (process == self.sessions.front).then(|| Arc::clone(&self.front))
    }
}

/// How a process calls those that serve.
#[derive(Debug)]
pub(super) struct Servers(BTreeMap<NodeId, Arc<RemoteNode>>);

impl Servers {
    pub(super) fn of(nodes: &CapacityNodes, caller: &CallerConfig) -> Arc<Self> {
        let others = SERVERS.into_iter().filter(|node| *node != caller.node.node.get());
        let peer = |node| (NodeId::new(node), nodes.peer(caller, node));
        Arc::new(Self(others.map(peer).collect()))
    }
}

impl Peers for Servers {
    fn peer(&self, node: NodeId) -> Option<Arc<RemoteNode>> {
        self.0.get(&node).cloned()
    }

    fn name(&self, _: NodeId) -> Option<String> {
        None
    }
}

/// Says that a process is gone when it has no session.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) alive: Alive,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl WatchHolder for Gone {
    async fn gone(&self, holder: Holder) {
        let Holder { node, incarnation } = holder;
        while self.alive.has(NodeIdentity { node, incarnation }) {
            self.clock.sleep(LOOKS_EVERY).await;
        }
    }
}

/// Moves partitions by calls.
#[derive(Debug)]
pub(super) struct Moves {
    index: Arc<ClusterIndex>,
    map: Arc<FollowedMap>,
    tasks: Tasks,
}

impl Moves {
    pub(super) fn new(index: ClusterIndex, map: &Arc<FollowedMap>, env: &Env) -> Self {
        Self { index: Arc::new(index), map: Arc::clone(map), tasks: env.tasks.clone() }
    }

    /// As a node has it: what silent processes said last is not known.
    fn partitions(&self) -> ClusterPartitions {
        let (index, map) = (Arc::clone(&self.index), Arc::clone(&self.map));
        ClusterPartitions::new(index, map, self.tasks.clone())
    }
}

#[async_trait]
impl MovesPartitions for Moves {
    fn takes(&self, _: NodeId) -> bool {
        true
    }

    async fn asked(&self, target: Target) -> Result<(), Error> {
        self.index.read(target, Read::DeadContainers).await.map(|_| ())
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), Error> {
        self.partitions().give(target, to).await
    }

    async fn counts(&self) -> Vec<PartitionCounts> {
        self.partitions().counts().await.unwrap_or_default()
    }
}
