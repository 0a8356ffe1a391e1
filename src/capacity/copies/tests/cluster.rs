//! Simulated nodes, each with a disk of its own and a connection that is cut. Calls travel as
//! messages over a simulated network.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use crate::capacity::Audited;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CapacityNode;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::FramePart;
use crate::capacity::FramedAppend;
use crate::capacity::LocalMember;
use crate::capacity::Member;
use crate::capacity::OpenExtents;
use crate::capacity::OwnedLog;
use crate::capacity::RawFrame;
use crate::capacity::copies::EndRecord;
use crate::capacity::copies::Recorded;
use crate::capacity::groups::KnownGroups;
use crate::capacity::groups::MemberReport;
use crate::capacity::remote::MemberService;
use crate::capacity::remote::RemoteMember;
use crate::capacity::remote::SERVICE;
use crate::env::Disk;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::env::disk_sim::SimDisk;
use crate::env::net_sim::SimNet;
use crate::env::rand::SeededRand;
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
use crate::types::ExtentOffset;
use crate::types::GroupId;
use crate::types::Incarnation;
use crate::types::Location;
use crate::types::NodeId;
use crate::types::NodeRoles;

const DISK_BYTES: u64 = 64 << 20;

/// Opens a node of a cluster on a disk.
pub(in crate::capacity) async fn open(disk: Arc<dyn Disk>, seed: u64) -> Arc<CapacityNode> {
    let config = CapacityConfig { open_extents: OpenExtents::Close, ..CapacityConfig::small() };
    CapacityNode::open(vec![disk], env(seed), config, CapacityMetrics::default()).await.unwrap()
}

/// Where the caller and the node are in the network between them.
const CALLER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 7000;

const CLUSTER: ClusterIdentity =
    ClusterIdentity { number: ClusterNumber::new(3), id: 1, generation: 1 };

const fn identity(node: u64) -> NodeIdentity {
    NodeIdentity { node: NodeId::new(node), incarnation: Incarnation::new(1) }
}

fn env(seed: u64) -> Env {
    let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(seed)));
    Env { clock, rand, tasks: Tasks::new() }
}

/// How calls to a node go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::capacity) enum Calls {
    /// They are carried out and answered.
    Answered,
    /// They do not arrive.
    Lost,
    /// This many more are answered. The next one is carried out and its answer is lost; later ones
    /// do not arrive.
    CutAfter(u64),
}

/// A node and the connection to it.
#[derive(Debug)]
pub(in crate::capacity) struct Node {
    pub(in crate::capacity) sim: SimDisk,
    seed: u64,
    net: SimNet,
    peer: Arc<RemoteNode>,
    remote: RemoteMember,
    process: Mutex<Option<Process>>,
    /// What the node heeds from its next start on.
    groups: Mutex<Option<Arc<KnownGroups>>>,
    calls: Mutex<Calls>,
    /// Where another settler seals a copy before the next question about it.
    seal_before_copy: Mutex<Option<(Epoch, ExtentOffset)>>,
}

/// One life of a node.
#[derive(Debug)]
struct Process {
    member: LocalMember,
    tasks: Tasks,
}

impl Process {
    async fn start(
        disk: Arc<dyn Disk>,
        seed: u64,
        net: &SimNet,
        groups: Option<Arc<KnownGroups>>,
    ) -> Self {
        let member = LocalMember::new(open(disk, seed).await);
        let member = match groups {
            Some(groups) => member.heeding(groups),
            None => member,
        };
        let service: Arc<dyn Service> = Arc::new(MemberService::new(Arc::new(member.clone())));
        let mut config = ServerConfig::new(identity(2), CLUSTER, [(SERVICE, service)].into());
        config.security = Security::TrustedNetwork;
        let env = env(seed);
        let listener = net.host(SERVER).listen(PORT).unwrap();
        let serving = Server::new(&env, config).run(Box::new(listener));
        drop(env.tasks.spawn("server", serving));
        Self { member, tasks: env.tasks }
    }
}

impl Node {
    pub(in crate::capacity) async fn start(seed: u64) -> Arc<Self> {
        let sim = SimDisk::new(seed, DISK_BYTES);
        let net = SimNet::new(seed);
        let process = Process::start(sim.disk(), seed, &net, None).await;
        let dial = Arc::new(net.host(CALLER));
        let security = Security::TrustedNetwork;
        let (env, node, roles) = (env(seed), identity(1), NodeRoles::ALL);
        let us = CallerConfig { env, dial, security, cluster: CLUSTER, node, roles };
        let peer = Arc::new(RemoteNode::new(&us, NodeId::new(2), &SERVER.to_string(), PORT));
        let remote = RemoteMember::new(Arc::clone(&peer));
        let (process, calls) = (Mutex::new(Some(process)), Mutex::new(Calls::Answered));
        let seal_before_copy = Mutex::default();
        let groups = Mutex::default();
        Arc::new(Self { sim, seed, net, peer, remote, process, groups, calls, seal_before_copy })
    }

    /// Starts again, and heeds what it knows of groups from now on.
    pub(in crate::capacity) async fn heed(&self, groups: Arc<KnownGroups>) {
        *self.groups.lock().unwrap() = Some(groups);
        self.crash(false).await;
    }

    /// The node without its connection.
    pub(in crate::capacity) fn member(&self) -> LocalMember {
        self.process.lock().unwrap().as_ref().unwrap().member.clone()
    }

    /// Breaks the connection, with calls and answers that are on their way.
    pub(in crate::capacity) fn cut(&self) {
        self.net.cut(CALLER, SERVER);
    }

    /// Bytes that went over the connection, in both directions.
    pub(in crate::capacity) fn sent(&self) -> u64 {
        self.net.bytes()
    }

    /// Holds up what the node sends.
    pub(in crate::capacity) fn block(&self) {
        self.net.block(SERVER, CALLER);
    }

    pub(in crate::capacity) fn unblock(&self) {
        self.net.unblock(SERVER, CALLER);
    }

    pub(in crate::capacity) fn set_calls(&self, calls: Calls) {
        *self.calls.lock().unwrap() = calls;
    }

    /// Runs a checkpoint of the node's disk.
    pub(in crate::capacity) async fn checkpoint(&self) -> Result<(), Error> {
        let member = self.member();
        for store in member.node.stores() {
            store.checkpoint().await?;
        }
        Ok(())
    }

    /// Seals a copy at this end between the next fence and the question where it ends.
    pub(in crate::capacity) fn seal_before_copy(&self, epoch: Epoch, end: ExtentOffset) {
        *self.seal_before_copy.lock().unwrap() = Some((epoch, end));
    }

    /// The process ends at once and starts again; with `power` the machine loses power.
    pub(in crate::capacity) async fn crash(&self, power: bool) {
        if let Some(process) = self.process.lock().unwrap().take() {
            process.tasks.stopping().cancel();
        }
        self.net.kill(SERVER);
        let disk = match power {
            true => self.sim.restart_after_power_cut(),
            false => self.sim.restart_after_kill(),
        };
        let groups = self.groups.lock().unwrap().clone();
        let process = Process::start(disk, self.seed, &self.net, groups).await;
        *self.process.lock().unwrap() = Some(process);
        self.peer.disconnect();
    }

    /// Whether the answer of a call arrives, if the call does.
    fn call(&self, extent: ExtentId) -> Result<bool, Error> {
        let cut = Error::Unreadable { extent, reason: "the link is cut".to_owned() };
        let mut calls = self.calls.lock().unwrap();
        match *calls {
            Calls::Answered => Ok(true),
            Calls::Lost => Err(cut),
            Calls::CutAfter(0) => {
                *calls = Calls::Lost;
                Ok(false)
            }
            Calls::CutAfter(left) => {
                *calls = Calls::CutAfter(left - 1);
                Ok(true)
            }
        }
    }

    async fn carry_out<T>(
        &self,
        extent: ExtentId,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let answered = self.call(extent)?;
        let answer = call.await;
        match answered {
            true => answer,
            false => Err(Error::Unreadable { extent, reason: "the answer was lost".to_owned() }),
        }
    }
}

#[async_trait]
impl Member for Node {
    async fn append(&self, append: FramedAppend) -> Result<ExtentOffset, Error> {
        self.carry_out(append.copy.extent, self.remote.append(append)).await
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch, end: ExtentOffset) -> Result<(), Error> {
        self.carry_out(extent, self.remote.flush(extent, epoch, end)).await
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<FramePart>, Error> {
        self.carry_out(location.extent, self.remote.read(location, range)).await
    }

    async fn frames(
        &self,
        extent: ExtentId,
        from: ExtentOffset,
        bytes_max: u64,
    ) -> Result<Vec<RawFrame>, Error> {
        self.carry_out(extent, self.remote.frames(extent, from, bytes_max)).await
    }

    async fn fence(&self, copy: CopyId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        self.carry_out(copy.extent, self.remote.fence(copy, epoch)).await
    }

    async fn extend(
        &self,
        copy: CopyId,
        epoch: Epoch,
        added: Extension,
    ) -> Result<ExtentOffset, Error> {
        self.carry_out(copy.extent, self.remote.extend(copy, epoch, added)).await
    }

    async fn seal_at(
        &self,
        extent: ExtentId,
        epoch: Epoch,
        len: ExtentOffset,
    ) -> Result<(), Error> {
        self.carry_out(extent, self.remote.seal_at(extent, epoch, len)).await
    }

    async fn copy(&self, extent: ExtentId) -> Result<Option<CopyInfo>, Error> {
        let seal = self.seal_before_copy.lock().unwrap().take();
        if let Some((epoch, end)) = seal {
            self.member().seal_at(extent, epoch, end).await?;
        }
        self.carry_out(extent, self.remote.copy(extent)).await
    }

    async fn report(&self, group: GroupId) -> Result<MemberReport, Error> {
        self.carry_out(group.first(), self.remote.report(group)).await
    }

    async fn fenced(&self, logs: &[OwnedLog]) -> Result<Vec<ExtentId>, Error> {
        let Some(first) = logs.first() else { return Ok(Vec::new()) };
        self.carry_out(first.log, self.remote.fenced(logs)).await
    }

    async fn lease_left(&self, log: ExtentId) -> Result<Duration, Error> {
        self.carry_out(log, self.remote.lease_left(log)).await
    }

    async fn give_back(&self, logs: &[OwnedLog]) -> Result<(), Error> {
        let Some(first) = logs.first() else { return Ok(()) };
        self.carry_out(first.log, self.remote.give_back(logs)).await
    }

    async fn dead(&self, extent: ExtentId) -> Result<Vec<Range<u64>>, Error> {
        self.carry_out(extent, self.remote.dead(extent)).await
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        let Some(first) = locations.first() else { return Ok(()) };
        self.carry_out(first.extent, self.remote.free(locations)).await
    }

    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error> {
        self.carry_out(extent, self.remote.retain(extent, live, audited)).await
    }

    async fn note_damage(&self, damage: Damage) -> Result<(), Error> {
        self.carry_out(damage.extent, self.remote.note_damage(damage)).await
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        self.carry_out(extent, self.remote.remove(extent)).await
    }
}

/// Recorded ends, in memory.
#[derive(Debug, Default)]
pub(in crate::capacity) struct Ends {
    pub(in crate::capacity) ends: Mutex<BTreeMap<ExtentId, ExtentOffset>>,
    pub(in crate::capacity) members_changed: bool,
}

#[async_trait]
impl EndRecord for Ends {
    async fn recorded(&self, extent: ExtentId) -> Result<Recorded, String> {
        let end = self.ends.lock().unwrap().get(&extent).copied();
        Ok(Recorded { end, members: 3, members_changed: self.members_changed })
    }

    async fn record(&self, extent: ExtentId, end: ExtentOffset) -> Result<ExtentOffset, String> {
        Ok(*self.ends.lock().unwrap().entry(extent).or_insert(end))
    }
}
