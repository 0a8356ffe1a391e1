//! Processes with a simulated network between them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::coordinator::Event;
use crate::coordinator::Follows;
use crate::coordinator::Revision;
use crate::coordinator::claim::Holder;
use crate::coordinator::hosts::HostClaim;
use crate::coordinator::hosts::HostClaims;
use crate::coordinator::hosts::host_claim;
use crate::env::Clock;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::env::net_sim::SimNet;
use crate::index::ClusterRequests;
use crate::index::Error;
use crate::index::InFlight;
use crate::index::IndexHost;
use crate::index::LocalRequests;
use crate::index::Processes;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::RunningRequests;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::inflight::REQUESTS_SERVICE;
use crate::index::inflight::RequestsService;
use crate::index::remote::ClusterIndex;
use crate::index::remote::INDEX_SERVICE;
use crate::index::remote::IndexClients;
use crate::index::remote::IndexService;
use crate::index::remote::Peers;
use crate::index::remote::ServedIndex;
use crate::rpc::CallerConfig;
use crate::rpc::ClusterIdentity;
use crate::rpc::NodeIdentity;
use crate::rpc::RemoteNode;
use crate::rpc::Security;
use crate::rpc::Server;
use crate::rpc::ServerConfig;
use crate::rpc::Service;
use crate::types::ClusterNumber;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::NodeRoles;
use crate::types::PartitionId;

const CLUSTER: ClusterIdentity =
    ClusterIdentity { number: ClusterNumber::new(5), id: 1, generation: 1 };
const PORT: u16 = 7000;
/// How long a router asks.
const PATIENCE: Duration = Duration::from_secs(10);

/// The partition, at a node.
pub(super) const fn target_at(node: u64) -> Target {
    let host = HostId::of(NodeId::new(node), 0);
    Target { partition: PartitionId::new(1), epoch: Epoch::new(2), host }
}

pub(super) fn identity(node: u64, incarnation: u64) -> NodeIdentity {
    NodeIdentity { node: NodeId::new(node), incarnation: Incarnation::new(incarnation) }
}

fn address(node: NodeId) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(node.get()).unwrap()).into()
}

/// What all processes share: the network, sessions, and who serves the index.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) clock: Arc<SimClock>,
    pub(super) net: SimNet,
    sessions: Arc<Mutex<BTreeSet<NodeIdentity>>>,
    /// How many sessions have begun.
    begun: Arc<AtomicU64>,
    /// The node that serves the partition.
    serving: Arc<Mutex<u64>>,
    claims: Arc<HostClaims>,
}

impl World {
    pub(super) fn new() -> Self {
        let (clock, net) = (Arc::new(SimClock::new()), SimNet::new(1));
        let (sessions, begun, serving, claims) = Default::default();
        Self { clock, net, sessions, begun, serving, claims }
    }

    pub(super) fn begin_session(&self, process: NodeIdentity) {
        self.sessions.lock().unwrap().insert(process);
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end_session(&self, process: NodeIdentity) {
        self.sessions.lock().unwrap().remove(&process);
    }

    /// All hear that this node serves the partition, and no other one any.
    pub(super) fn is_served_by(&self, node: u64) {
        self.serve_at(&[node]);
        *self.serving.lock().unwrap() = node;
    }

    /// All hear that these nodes serve partitions, and no others.
    pub(super) fn serve_at(&self, nodes: &[u64]) {
        let revision = Revision(self.claims.revision().0 + 1);
        let gone = self.claims.all().into_iter().map(|claim| claim.holder.node);
        let gone = gone.filter(|node| !nodes.contains(&node.get()));
        let gone = gone.map(|node| Event { key: host_claim(node), value: None, revision });
        let new = nodes.iter().copied().map(NodeId::new);
        let put = |node| {
            let holder = Holder { node, incarnation: Incarnation::new(1) };
            Event { key: host_claim(node), value: Some(holder.encode()), revision }
        };
        self.claims.take(gone.chain(new.map(put)).collect());
    }

    /// The partition, where it is served.
    pub(super) fn target(&self) -> Target {
        target_at(*self.serving.lock().unwrap())
    }

    /// The claim of a node.
    pub(super) fn claim(&self, node: u64) -> HostClaim {
        self.claims.get(NodeId::new(node)).unwrap()
    }

    pub(super) async fn sleep(&self, millis: u64) {
        self.clock.sleep(Duration::from_millis(millis)).await;
    }
}

#[async_trait]
impl IndexClients for World {
    fn all(&self) -> Vec<NodeIdentity> {
        self.sessions.lock().unwrap().iter().copied().collect()
    }

    fn has(&self, process: NodeIdentity) -> bool {
        self.sessions.lock().unwrap().contains(&process)
    }

    async fn refresh(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// How a process sees the others.
#[derive(Debug)]
struct Seen {
    world: World,
    peers: Vec<Arc<RemoteNode>>,
    index: Mutex<Option<Arc<ClusterIndex>>>,
}

impl Seen {
    fn peer(&self, node: NodeId) -> Option<Arc<RemoteNode>> {
        self.peers.iter().find(|peer| peer.node() == node).cloned()
    }
}

impl Peers for Seen {
    fn peer(&self, node: NodeId) -> Option<Arc<RemoteNode>> {
        Self::peer(self, node)
    }

    fn name(&self, node: NodeId) -> Option<String> {
        Some(format!("node-{node}"))
    }
}

#[async_trait]
impl Processes for Seen {
    async fn all(&self) -> Result<Vec<NodeIdentity>, Error> {
        let index = self.index.lock().unwrap().clone().unwrap();
        index.index_clients(&self.world).await
    }

    async fn settled(&self) -> Result<(BTreeSet<NodeIdentity>, u64), Error> {
        let with_session = self.world.all().into_iter().collect();
        Ok((with_session, self.world.begun.load(Ordering::SeqCst)))
    }

    fn peer(&self, process: NodeIdentity) -> Option<Arc<RemoteNode>> {
        Self::peer(self, process.node)
    }
}

/// One life of a node with a front end.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) identity: NodeIdentity,
    pub(super) served: Arc<ServedIndex>,
    pub(super) index: Arc<ClusterIndex>,
    pub(super) inflight: InFlight,
    pub(super) requests: Arc<dyn RunningRequests>,
    world: World,
    tasks: Tasks,
    net: SimNet,
}

/// The nodes of a world.
const NODES: u64 = 3;

impl Process {
    /// Begins a life with a session.
    pub(super) fn start(world: &World, node: u64, incarnation: u64) -> Self {
        let identity = identity(node, incarnation);
        let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
        let rand = Arc::new(SeededRand::new(node));
        let env = Env { clock: Arc::clone(&clock), rand, tasks: Tasks::new() };
        let net = world.net.host(address(identity.node));
        let served = Arc::new(ServedIndex::new(identity));
        let inflight = InFlight::default();
        let own = LocalRequests::new(inflight.clone(), Arc::clone(&clock));
        let sessions = Arc::new(world.clone());
        let index = IndexService::new(Arc::clone(&served), sessions, Arc::clone(&clock));
        let asked = RequestsService { requests: own.clone(), incarnation: identity.incarnation };
        let services = [
            (INDEX_SERVICE, Arc::new(index) as Arc<dyn Service>),
            (REQUESTS_SERVICE, Arc::new(asked) as Arc<dyn Service>),
        ];
        let mut config = ServerConfig::new(identity, CLUSTER, services.into());
        config.security = Security::TrustedNetwork;
        let listener = net.listen(PORT).unwrap();
        drop(env.tasks.spawn("server", Server::new(&env, config).run(Box::new(listener))));
        let us = CallerConfig {
            env: env.clone(),
            dial: Arc::new(net),
            security: Security::TrustedNetwork,
            cluster: CLUSTER,
            node: identity,
            roles: NodeRoles::ALL,
        };
        let others = (1..=NODES).filter(|other| *other != node).map(NodeId::new);
        let peer = |node| Arc::new(RemoteNode::new(&us, node, &address(node).to_string(), PORT));
        let peers = others.map(peer).collect();
        let seen = Seen { world: world.clone(), peers, index: Mutex::default() };
        let seen = Arc::new(seen);
        let peers = Arc::clone(&seen) as Arc<dyn Peers>;
        let (here, others) = (NodeId::new(node), (Arc::clone(&world.claims), peers));
        let index = Arc::new(ClusterIndex::new((here, Arc::clone(&served)), others, clock));
        *seen.index.lock().unwrap() = Some(Arc::clone(&index));
        let requests = ClusterRequests::shared(identity, own, seen, env.tasks.clone());
        world.begin_session(identity);
        let (tasks, net, world) = (env.tasks, world.net.clone(), world.clone());
        Self { identity, served, index, inflight, requests, world, tasks, net }
    }

    /// Asks as a router does: wherever the partition is, until it is served.
    async fn ask<T>(&self, ask: impl AsyncFn(Target) -> Result<T, Error>) -> Result<T, Error> {
        let until = self.world.clock.monotonic() + PATIENCE;
        loop {
            match ask(self.world.target()).await {
                Err(Error::WrongPartition) if self.world.clock.monotonic() < until => {
                    self.world.sleep(20).await;
                }
                Err(Error::WrongPartition) => return Err(Error::Overloaded),
                answer => return answer,
            }
        }
    }

    pub(super) async fn read(&self, read: Read) -> Result<ReadReply, Error> {
        self.ask(async |target| self.index.read(target, read.clone()).await).await
    }

    pub(super) async fn write(&self, write: Write) -> Result<WriteReply, Error> {
        self.ask(async |target| self.index.write(target, write.clone()).await).await
    }

    /// The process ends at once. Its session goes on.
    pub(super) fn kill(self) {
        self.tasks.stopping().cancel();
        self.net.kill(address(self.identity.node));
    }

    /// Calls of this process do not arrive, nor answers to it.
    pub(super) fn cut_off(&self) {
        for node in (1..=NODES).map(NodeId::new) {
            self.net.block(address(self.identity.node), address(node));
            self.net.block(address(node), address(self.identity.node));
        }
    }
}

/// A host that answers what it is told to.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) reply: ReadReply,
    pub(super) reads: Mutex<u64>,
    pub(super) writes: Mutex<Vec<Write>>,
    /// Whether writes are answered.
    pub(super) answers: watch::Sender<bool>,
}

impl Partition {
    pub(super) fn new(reply: ReadReply) -> Arc<Self> {
        let answers = watch::Sender::new(true);
        Arc::new(Self { reply, reads: Mutex::default(), writes: Mutex::default(), answers })
    }

    pub(super) fn reads(&self) -> u64 {
        *self.reads.lock().unwrap()
    }

    pub(super) fn writes(&self) -> usize {
        self.writes.lock().unwrap().len()
    }
}

#[async_trait]
impl IndexHost for Partition {
    async fn read(&self, target: Target, _: Read) -> Result<ReadReply, Error> {
        assert_eq!(target.epoch, Epoch::new(2));
        *self.reads.lock().unwrap() += 1;
        Ok(self.reply.clone())
    }

    async fn write_shared(&self, target: Target, write: Arc<Write>) -> Result<WriteReply, Error> {
        assert_eq!((target.partition, target.epoch), (PartitionId::new(1), Epoch::new(2)));
        self.writes.lock().unwrap().push((*write).clone());
        let mut answers = self.answers.subscribe();
        answers.wait_for(|answers| *answers).await.unwrap();
        Ok(WriteReply::Done)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}
