//! The capacity nodes of a simulated cluster. Each has a disk of its own, and is called over a
//! simulated network. They crash, lose their power, and are cut off while clients work.

use std::convert::Infallible;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use blockyard::capacity::CapacityConfig;
use blockyard::capacity::CapacityMetrics;
use blockyard::capacity::CapacityNode;
use blockyard::capacity::CatalogPlace;
use blockyard::capacity::LocalMember;
use blockyard::capacity::Member;
use blockyard::capacity::OpenExtents;
use blockyard::capacity::ReadLeases;
use blockyard::capacity::cluster::ClusterCapacity;
use blockyard::capacity::cluster::ClusterParts;
use blockyard::capacity::cluster::GroupIds;
use blockyard::capacity::cluster::Nodes;
use blockyard::capacity::groups::GroupFollower;
use blockyard::capacity::groups::KnownGroups;
use blockyard::capacity::groups::NodeRow;
use blockyard::capacity::remote::MemberService;
use blockyard::capacity::remote::RemoteMember;
use blockyard::capacity::remote::SERVICE;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::counter;
use blockyard::coordinator::nodes::NodeState;
use blockyard::env::Disk;
use blockyard::env::Env;
use blockyard::env::SimDisk;
use blockyard::env::Tasks;
use blockyard::env::net_sim::SimNet;
use blockyard::node::assembly::Base;
use blockyard::rpc::CallerConfig;
use blockyard::rpc::ClusterIdentity;
use blockyard::rpc::NodeIdentity;
use blockyard::rpc::RemoteNode;
use blockyard::rpc::Security;
use blockyard::rpc::Server;
use blockyard::rpc::ServerConfig;
use blockyard::rpc::Service;
use blockyard::types::ClusterNumber;
use blockyard::types::Incarnation;
use blockyard::types::NodeId;
use blockyard::types::NodeRoles;

use crate::counts::Counts;
use crate::draw::Draw;
use crate::rig::Machine;

/// The number of nodes, and of copies.
pub(crate) const NODES: usize = 3;

pub(crate) const NUMBER: ClusterNumber = ClusterNumber::new(5);
const CLUSTER: ClusterIdentity = ClusterIdentity { number: NUMBER, id: 1, generation: 1 };
const PORT: u16 = 7000;
/// The process with a front end; with the index too, unless that has a process of its own.
pub(crate) const FRONT: u64 = 100;
/// The nodes that serve partitions, in processes of their own.
pub(crate) const SERVERS: [u64; 2] = [101, 102];
/// The node that manages then.
pub(crate) const MANAGER: u64 = 103;
/// All processes that call nodes.
pub(crate) const CALLERS: [u64; 4] = [FRONT, SERVERS[0], SERVERS[1], MANAGER];

fn identity(node: u64, incarnation: u64) -> NodeIdentity {
    NodeIdentity { node: NodeId::new(node), incarnation: Incarnation::new(incarnation) }
}

fn address(node: u64) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(node).unwrap()).into()
}

/// The nodes of a session.
#[derive(Debug)]
pub(crate) struct CapacityNodes {
    machine: Machine,
    net: SimNet,
    coordinator: Arc<dyn Coordinator>,
    lives: Mutex<Vec<Life>>,
}

/// A process that uses the extents of the nodes.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) base: Base,
    /// The extents, and the groups that they are in.
    pub(crate) capacity: Arc<ClusterCapacity>,
    pub(crate) groups: Arc<GroupFollower>,
    /// The nodes, as the process knows them.
    pub(crate) table: Vec<NodeRow>,
    /// How it calls others.
    pub(crate) caller: CallerConfig,
}

/// One life of a node.
#[derive(Debug)]
struct Life {
    node: Arc<CapacityNode>,
    tasks: Tasks,
}

/// How the host reaches the nodes.
#[derive(Debug)]
struct Reached(Vec<Arc<RemoteMember>>);

impl Nodes for Reached {
    fn member(&self, node: NodeId) -> Option<Arc<dyn Member>> {
        let at = usize::try_from(node.get()).ok()?.checked_sub(1)?;
        self.0.get(at).map(|member| Arc::clone(member) as Arc<dyn Member>)
    }

    fn here(&self) -> Option<NodeId> {
        None
    }

    fn table(&self) -> Vec<NodeRow> {
        let row = |id: u64| NodeRow {
            id: NodeId::new(id),
            machine: format!("machine-{id}"),
            zone: "zone".to_owned(),
            room: 1 << 40,
            load: 0,
            state: NodeState::Active,
            is_away: false,
        };
        (1..=NODES as u64).map(row).collect()
    }
}

impl CapacityNodes {
    /// Starts all nodes.
    pub(crate) async fn start(
        machine: &Machine,
        coordinator: Arc<dyn Coordinator>,
    ) -> Result<Self, String> {
        let net = SimNet::new(machine.env.rand.next_u64());
        let mut lives = Vec::new();
        for at in 0..NODES {
            let disk = Arc::clone(&machine.disks[at]);
            lives.push(live(machine, &net, &coordinator, (at, disk)).await?);
        }
        Ok(Self { machine: machine.clone(), net, coordinator, lives: Mutex::new(lives) })
    }

    /// The next life of a process. It ends with the tasks of `env`.
    pub(crate) async fn process(&self, node: u64, env: &Env) -> Result<Process, String> {
        let (env, coordinator) = (env.clone(), Arc::clone(&self.coordinator));
        let failed = |error: blockyard::coordinator::Error| error.to_string();
        let groups = GroupFollower::start(Arc::clone(&coordinator)).await.map_err(failed)?;
        let groups = Arc::new(groups);
        let taken = counter::allocate(&*coordinator, NUMBER, counter::NODE_IDS, 1).await;
        let writer = Incarnation::new(taken.map_err(failed)?.start);
        let caller = CallerConfig {
            env: env.clone(),
            dial: Arc::new(self.net.host(address(node))),
            security: Security::TrustedNetwork,
            cluster: CLUSTER,
            node: identity(node, writer.get()),
            roles: NodeRoles::FRONT.with(NodeRoles::INDEX),
        };
        let member = |id: u64| Arc::new(RemoteMember::new(self.peer(&caller, id)));
        let nodes = Arc::new(Reached((1..=NODES as u64).map(member).collect()));
        let (table, followed) = (nodes.table(), Arc::clone(&groups));
        let (follower, clock) = (Arc::clone(&groups), Arc::clone(&env.clock));
        drop(env.tasks.spawn(
            "groups",
            until_stopped(&env, async move {
                follower.follow(clock.as_ref()).await;
            }),
        ));
        let parts = ClusterParts {
            env: env.clone(),
            coordinator: Arc::clone(&coordinator),
            groups,
            nodes,
            cluster: NUMBER,
            writer,
            copies: NODES,
        };
        let ids = GroupIds::new(parts.clone());
        let (looked_after, clock) = (Arc::clone(&ids), Arc::clone(&env.clock));
        drop(env.tasks.spawn(
            "look after groups",
            until_stopped(&env, async move {
                loop {
                    clock.sleep(Duration::from_secs(5)).await;
                    looked_after.look_after();
                }
            }),
        ));
        let capacity = Arc::new(ClusterCapacity::new(parts, Arc::clone(&ids)));
        let leases = Some(Arc::clone(&capacity) as Arc<dyn ReadLeases>);
        let (cluster, writers, of_cluster) = (NUMBER, None, Arc::clone(&capacity));
        let (node, extent_ids) = (NodeId::new(0), ids);
        let base = Base { env, capacity, coordinator, node, cluster, extent_ids, leases, writers };
        Ok(Process { base, capacity: of_cluster, groups: followed, table, caller })
    }

    /// How a process calls another one.
    pub(crate) fn peer(&self, from: &CallerConfig, to: u64) -> Arc<RemoteNode> {
        Arc::new(RemoteNode::new(from, NodeId::new(to), &address(to).to_string(), PORT))
    }

    /// Answers calls to a process.
    pub(crate) fn serve(
        &self,
        process: &CallerConfig,
        service: (u8, Arc<dyn Service>),
    ) -> Result<(), String> {
        let mut config = ServerConfig::new(process.node, CLUSTER, [service].into());
        config.security = Security::TrustedNetwork;
        let host = self.net.host(address(process.node.node.get()));
        let listener = host.listen(PORT).map_err(|error| error.to_string())?;
        let server = Server::new(&process.env, config);
        let serving = async move {
            // It ends with the process.
            drop(server.run(Box::new(listener)).await);
        };
        drop(process.env.tasks.spawn("calls", until_stopped(&process.env, serving)));
        Ok(())
    }

    /// Ends all connections of a process that was killed.
    pub(crate) fn killed(&self, node: u64) {
        self.net.kill(address(node));
    }

    /// Ends a node at once and starts it again.
    async fn restart(&self, at: usize, power: bool) {
        self.lives.lock().unwrap()[at].tasks.stopping().cancel();
        self.net.kill(address(at as u64 + 1));
        let sim = &self.machine.sims[at];
        let disk = if power { sim.restart_after_power_cut() } else { sim.restart_after_kill() };
        let life = live(&self.machine, &self.net, &self.coordinator, (at, disk)).await.unwrap();
        self.lives.lock().unwrap()[at] = life;
    }

    /// Harms one node at a time while clients work, and mends it before the next one.
    ///
    /// `callers` are the processes that may be cut off from it.
    pub(crate) async fn harm(&self, callers: &[u64], draw: &Draw, counts: &Counts) -> Infallible {
        let clock = &self.machine.env.clock;
        for _ in 0..draw.between(1, 6) {
            clock.sleep(Duration::from_millis(draw.between(5, 400))).await;
            let at = usize::try_from(draw.between(0, NODES as u64 - 1)).unwrap();
            let (node, host) = (address(at as u64 + 1), address(*draw.one(callers).unwrap()));
            match draw.between(0, 4) {
                0 => {
                    counts.add("nodes killed", 1);
                    self.restart(at, false).await;
                }
                1 => {
                    counts.add("nodes without power", 1);
                    self.restart(at, true).await;
                }
                2 => {
                    counts.add("connections cut", 1);
                    self.net.cut(node, host);
                }
                _ => {
                    counts.add("nodes silent", 1);
                    let (from, to) = if draw.percent(50) { (node, host) } else { (host, node) };
                    self.net.block(from, to);
                    clock.sleep(Duration::from_millis(draw.between(50, 2000))).await;
                    self.net.unblock(from, to);
                }
            }
        }
        std::future::pending().await
    }

    /// Ends what harms the nodes: all are there again.
    pub(crate) async fn mend(&self) {
        for at in 0..NODES {
            let is_dead = self.lives.lock().unwrap()[at].tasks.stopping().is_cancelled();
            if is_dead {
                self.restart(at, false).await;
            }
        }
        for (at, caller) in (1..=NODES as u64).flat_map(|at| CALLERS.map(|caller| (at, caller))) {
            self.join(at, caller);
        }
    }

    /// Ends what keeps two processes apart.
    pub(crate) fn join(&self, one: u64, other: u64) {
        self.net.unblock(address(one), address(other));
        self.net.unblock(address(other), address(one));
    }

    /// Cuts the connections of two processes, or holds what one sends to the other for a while.
    pub(crate) async fn cut_apart(&self, (from, to): (u64, u64), draw: &Draw) {
        let (from, to) = (address(from), address(to));
        if draw.percent(50) {
            return self.net.cut(from, to);
        }
        self.net.block(from, to);
        self.machine.env.clock.sleep(Duration::from_millis(draw.between(50, 2000))).await;
        self.net.unblock(from, to);
    }

    /// Stops the nodes in order.
    pub(crate) async fn shutdown(&self) {
        let lives = std::mem::take(&mut *self.lives.lock().unwrap());
        for Life { node, tasks } in lives {
            tasks.shutdown().await;
            node.shutdown().await;
        }
    }
}

/// Ends work when the tasks of a process stop.
pub(crate) fn until_stopped(
    env: &Env,
    work: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    let stop = env.tasks.stopping();
    async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = work => {}
        }
    }
}

/// Starts a node on its disk.
async fn live(
    machine: &Machine,
    net: &SimNet,
    coordinator: &Arc<dyn Coordinator>,
    (at, disk): (usize, Arc<dyn Disk>),
) -> Result<Life, String> {
    // Violated invariants of nodes are violations of the session.
    let env = Env { tasks: Tasks::new().reporting_to(&machine.env.tasks), ..machine.env.clone() };
    let config = CapacityConfig {
        reserve_bytes: Some(2 << 20),
        catalog: CatalogPlace::Simulated(vec![machine.catalogs[at].clone()]),
        open_extents: OpenExtents::Close,
        ..CapacityConfig::small()
    };
    let opened = CapacityNode::open(vec![disk], env.clone(), config, CapacityMetrics::default());
    let node = opened.await.map_err(|error| format!("node {at} does not open: {error}"))?;
    let id = at as u64 + 1;
    let own = Arc::new(machine.own_stores[at].open(&env));
    // Each node has its own. The order in which several receivers of one are woken is random.
    let groups = GroupFollower::start(Arc::clone(coordinator)).await;
    let groups = Arc::new(groups.map_err(|error| error.to_string())?);
    let known = KnownGroups::open(NodeId::new(id), own, Arc::clone(&groups)).await;
    let known = known.map_err(|error| error.to_string())?;
    let member = LocalMember::new(Arc::clone(&node)).heeding(Arc::new(known));
    let service: Arc<dyn Service> = Arc::new(MemberService::new(Arc::new(member.clone())));
    let mut config = ServerConfig::new(identity(id, 1), CLUSTER, [(SERVICE, service)].into());
    config.security = Security::TrustedNetwork;
    let tasks = Tasks::new().reporting_to(&machine.env.tasks);
    let env = Env { tasks: tasks.clone(), ..env };
    let (clock, stop) = (Arc::clone(&env.clock), tasks.stopping());
    drop(tasks.spawn("groups of a node", async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = member.follow_groups(clock.as_ref()) => {}
            () = groups.follow(clock.as_ref()) => {}
        }
    }));
    let listener = net.host(address(id)).listen(PORT).map_err(|error| error.to_string())?;
    drop(tasks.spawn("node", Server::new(&env, config).run(Box::new(listener))));
    Ok(Life { node, tasks })
}

/// Flips bits on the disk of one node: the others have everything.
pub(crate) fn flip(sims: &[SimDisk], flips: u64) -> u64 {
    let flipped = (0..flips).filter_map(|_| sims.first()?.flip_random("extents/"));
    flipped.count() as u64
}
