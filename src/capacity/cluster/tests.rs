//! Processes that use extents on simulated nodes.

mod calls;
mod frees;
mod heeding;
mod histories;
mod ids;
mod leases;
mod mend;
mod repair;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;

use super::ClusterCapacity;
use super::ClusterParts;
use super::GroupIds;
use super::Nodes;
use crate::capacity::AppendRequest;
use crate::capacity::Appended;
use crate::capacity::Capacity;
use crate::capacity::Durability;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::Member;
use crate::capacity::copies::tests::cluster::Node;
use crate::capacity::groups::GroupAt;
use crate::capacity::groups::GroupFollower;
use crate::capacity::groups::GroupMaker;
use crate::capacity::groups::NodeRow;
use crate::capacity::tests::faults::run;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::coordinator::nodes::NodeState;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::types::ClusterNumber;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Incarnation;
use crate::types::Location;
use crate::types::NodeId;

/// The process of these tests.
const HERE: Incarnation = Incarnation::new(7);
const CLUSTER: ClusterNumber = ClusterNumber::new(3);
const ONE: Epoch = Epoch::new(1);
const TWO: Epoch = Epoch::new(2);

/// The nodes of a cluster, which all processes reach.
#[derive(Debug)]
struct Reached {
    nodes: BTreeMap<NodeId, Arc<Node>>,
    here: Option<NodeId>,
    /// Members of new groups are chosen from these. If there are none, no node is passed over.
    table: Arc<Mutex<Vec<NodeRow>>>,
}

impl Nodes for Reached {
    fn member(&self, node: NodeId) -> Option<Arc<dyn Member>> {
        self.nodes.get(&node).map(|node| Arc::clone(node) as Arc<dyn Member>)
    }

    fn here(&self) -> Option<NodeId> {
        self.here
    }

    fn table(&self) -> Vec<NodeRow> {
        self.table.lock().unwrap().clone()
    }
}

/// Three nodes and a coordinator.
struct Cluster {
    env: Env,
    nodes: BTreeMap<NodeId, Arc<Node>>,
    coordinator: Arc<dyn Coordinator>,
    /// Of the latest process.
    table: Mutex<Arc<Mutex<Vec<NodeRow>>>>,
}

impl Cluster {
    async fn new(seed: u64) -> Self {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(seed)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let mut nodes = BTreeMap::new();
        for number in 1..=3 {
            nodes.insert(NodeId::new(number), Node::start(seed * 10 + number).await);
        }
        let coordinator = Arc::new(SimulatedStore::new().open(&env));
        Self { env, nodes, coordinator, table: Mutex::default() }
    }

    fn node(&self, number: u64) -> &Node {
        &self.nodes[&NodeId::new(number)]
    }

    /// A group on all nodes, of a process that is not here.
    async fn group(&self, kind: ExtentKind) -> GroupAt {
        self.group_of(kind, Incarnation::new(1)).await
    }

    /// A group on all nodes, of this process.
    async fn group_of(&self, kind: ExtentKind, writer: Incarnation) -> GroupAt {
        let maker = GroupMaker::new(Arc::clone(&self.coordinator), CLUSTER, writer);
        let members: Vec<NodeId> = self.nodes.keys().copied().collect();
        maker.make(kind, &members).await.unwrap()
    }

    /// The extents as a process on a node, or on none, reaches them.
    async fn process(&self, here: Option<u64>) -> ClusterCapacity {
        self.process_with(here, Vec::new()).await.0
    }

    /// As [`Self::process_with`], where extents have so many copies.
    async fn process_with_copies(
        &self,
        here: Option<u64>,
        table: Vec<NodeRow>,
        copies: usize,
    ) -> (ClusterCapacity, Arc<GroupIds>) {
        let parts = ClusterParts { copies, ..self.parts(here, table).await };
        let ids = GroupIds::new(parts.clone());
        (ClusterCapacity::new(parts, Arc::clone(&ids)), ids)
    }

    /// As [`Self::process`], with a table of nodes and what makes groups.
    async fn process_with(
        &self,
        here: Option<u64>,
        table: Vec<NodeRow>,
    ) -> (ClusterCapacity, Arc<GroupIds>) {
        self.process_with_copies(here, table, 3).await
    }

    async fn parts(&self, here: Option<u64>, table: Vec<NodeRow>) -> ClusterParts {
        let groups = GroupFollower::start(Arc::clone(&self.coordinator)).await.unwrap();
        let table = Arc::new(Mutex::new(table));
        *self.table.lock().unwrap() = Arc::clone(&table);
        let nodes = Reached { nodes: self.nodes.clone(), here: here.map(NodeId::new), table };
        ClusterParts {
            env: self.env.clone(),
            coordinator: Arc::clone(&self.coordinator),
            groups: Arc::new(groups),
            nodes: Arc::new(nodes),
            cluster: CLUSTER,
            writer: HERE,
            copies: 3,
        }
    }

    /// Changes the table of the latest process.
    fn set_table(&self, table: &[NodeRow]) {
        *self.table.lock().unwrap().lock().unwrap() = table.to_vec();
    }

    /// A table of all nodes, each on a machine of its own.
    fn table(&self) -> Vec<NodeRow> {
        let row = |id: &NodeId| NodeRow {
            id: *id,
            machine: format!("machine-{id}"),
            zone: "zone".to_owned(),
            room: 1 << 40,
            load: 0,
            state: NodeState::Active,
            is_away: false,
        };
        self.nodes.keys().map(row).collect()
    }
}

/// Bytes that differ by seed.
fn payload(seed: u64, len: u64) -> Bytes {
    crate::capacity::tests::payload(seed, len)
}

fn request(extent: ExtentId, offset: ExtentOffset, bytes: &Bytes) -> AppendRequest {
    let payloads = vec![vec![bytes.clone()]];
    AppendRequest { extent, epoch: ONE, offset, payloads, durability: Durability::Durable }
}

/// Appends one payload.
async fn append(
    capacity: &ClusterCapacity,
    extent: ExtentId,
    offset: ExtentOffset,
    bytes: &Bytes,
) -> Result<Appended, Error> {
    capacity.append(request(extent, offset, bytes)).await
}

async fn read(capacity: &ClusterCapacity, location: &Location) -> Result<Bytes, Error> {
    let pieces = capacity.read(location, 0..location.len.get()).await?;
    Ok(pieces.concat().into())
}

/// The payloads of all frames of an extent.
async fn replay(capacity: &ClusterCapacity, extent: ExtentId) -> Result<Vec<Bytes>, Error> {
    let (mut payloads, mut at) = (Vec::new(), ExtentOffset::START);
    while let Some(frame) = capacity.next_frame(extent, at).await? {
        payloads.push(frame.payload);
        at = frame.next;
    }
    Ok(payloads)
}
