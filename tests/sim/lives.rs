//! The index of a simulated cluster in processes of its own, which a front end of another process
//! calls. Each serves some partitions, and another process says which. They are killed, stand
//! still, and stop in order, one life after the other.

mod seen;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use blockyard::audit_log::AuditLog;
use blockyard::capacity::cluster::ClusterCapacity;
use blockyard::capacity::cluster::Present;
use blockyard::capacity::groups::GroupFollower;
use blockyard::capacity::groups::NodeRow;
use blockyard::coordinator::Compare;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::Guarded;
use blockyard::coordinator::Op;
use blockyard::coordinator::Revision;
use blockyard::coordinator::TxnReply;
use blockyard::coordinator::claim::CLAIM_TTL;
use blockyard::coordinator::claim::Holder;
use blockyard::coordinator::claim::MANAGES_INDEX;
use blockyard::coordinator::hosts::HostClaims;
use blockyard::coordinator::hosts::host_claim;
use blockyard::env::Clock;
use blockyard::env::Env;
use blockyard::env::TaskControl;
use blockyard::env::Tasks;
use blockyard::index::ClusterRequests;
use blockyard::index::FollowedMap;
use blockyard::index::InFlight;
use blockyard::index::IndexHost;
use blockyard::index::IndexServer;
use blockyard::index::LocalPartitions;
use blockyard::index::LocalRequests;
use blockyard::index::PartitionDescriptor;
use blockyard::index::WriterSessions;
use blockyard::index::remote::ClusterIndex;
use blockyard::index::remote::INDEX_SERVICE;
use blockyard::index::remote::IndexClients;
use blockyard::index::remote::IndexService;
use blockyard::index::remote::KnownWriters;
use blockyard::index::remote::Peers;
use blockyard::index::remote::ServedIndex;
use blockyard::manager::HostManager;
use blockyard::manager::PolicyConfig;
use blockyard::node::assembly::Base;
use blockyard::node::assembly::IndexParts;
use blockyard::node::assembly::IndexPlan;
use blockyard::node::assembly::Used;
use blockyard::reclaim::Reclaim;
use blockyard::reclaim::ReclaimConfig;
use blockyard::rpc::CallerConfig;
use blockyard::rpc::NodeIdentity;
use blockyard::telemetry::Registry;
use blockyard::types::Epoch;
use blockyard::types::HostId;
use blockyard::types::KeyRange;
use blockyard::types::NodeId;
use blockyard::types::PartitionId;
use blockyard::types::RoutingKey;
use bytes::Bytes;
use tokio::sync::watch;

use crate::counts::Counts;
use crate::draw::Draw;
use crate::nodes::CapacityNodes;
use crate::nodes::FRONT;
use crate::nodes::MANAGER;
use crate::nodes::NUMBER;
use crate::nodes::Process;
use crate::nodes::SERVERS;
use crate::nodes::until_stopped;
use crate::rig::Machine;
use crate::stack::HOSTS;
use crate::stack::index_config;
use crate::watch::Watch;
use crate::watch::Watched;

use seen::Alive;
use seen::Gone;
use seen::Known;
use seen::Moves;
use seen::Servers;
use seen::Sessions;

/// How often groups are repaired.
const REPAIR_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether a process is gone.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// What each life is made of.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) machine: Machine,
    pub(crate) nodes: Arc<CapacityNodes>,
    pub(crate) coordinator: Arc<dyn Coordinator>,
    pub(crate) borders: Vec<RoutingKey>,
    pub(crate) reclaim: ReclaimConfig,
    pub(crate) watch: Watch,
    /// How the front end calls.
    pub(crate) front: CallerConfig,
}

/// What a process follows of the coordinator.
#[derive(Debug)]
struct Followed {
    map: Arc<FollowedMap>,
    claims: Arc<HostClaims>,
}

impl Followed {
    async fn start(coordinator: &Arc<dyn Coordinator>, env: &Env) -> Result<Self, String> {
        let failed = |error: blockyard::coordinator::Error| error.to_string();
        let map = Arc::new(FollowedMap::start(&**coordinator).await.map_err(failed)?);
        let claims = Arc::new(HostClaims::start(&**coordinator).await.map_err(failed)?);
        let (following, of) = (Arc::clone(&map), (Arc::clone(coordinator), Arc::clone(&env.clock)));
        let follow = async move { following.follow(&*of.0, &*of.1).await };
        drop(env.tasks.spawn("partition map", until_stopped(env, follow)));
        let (following, of) =
            (Arc::clone(&claims), (Arc::clone(coordinator), Arc::clone(&env.clock)));
        let follow = async move { following.follow(&*of.0, &*of.1).await };
        drop(env.tasks.spawn("hosts", until_stopped(env, follow)));
        Ok(Self { map, claims })
    }
}

/// One process that serves partitions. It is killed when this is dropped.
#[derive(Debug)]
struct Life {
    identity: NodeIdentity,
    /// What wrote its claim.
    claimed: Revision,
    plan: Arc<Plan>,
    sessions: Alive,
    control: TaskControl,
    tasks: Tasks,
    served: Arc<ServedIndex>,
    index: Arc<IndexServer>,
    _reclaim: Arc<Reclaim>,
    /// Ends with the process.
    alive: watch::Sender<()>,
}

impl Life {
    /// Stops in order.
    async fn stop(self) {
        let clock = self.plan.machine.env.clock.as_ref();
        self.served.end(clock, Duration::from_secs(5)).await;
        self.index.shutdown().await;
        self.tasks.stopping().cancel();
        let claim = host_claim(self.identity.node);
        let own = [Compare::ModRevision(claim.clone(), self.claimed)];
        drop(self.plan.coordinator.txn(&own, &[Op::Delete(claim)]).await);
    }
}

impl Life {
    /// Its session ends after a while, unless the manager removes its claim before.
    fn expire(&self) {
        self.sessions.end(self.identity);
        let (coordinator, clock) =
            (Arc::clone(&self.plan.coordinator), Arc::clone(&self.plan.machine.env.clock));
        let (key, claimed) = (host_claim(self.identity.node), self.claimed);
        let expiring = async move {
            clock.sleep(CLAIM_TTL).await;
            let own = [Compare::ModRevision(key.clone(), claimed)];
            drop(coordinator.txn(&own, &[Op::Delete(key)]).await);
        };
        let env = &self.plan.machine.env;
        drop(env.tasks.spawn("end of a session", until_stopped(env, expiring)));
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.control.kill();
        self.expire();
        self.plan.nodes.killed(self.identity.node.get());
    }
}

/// The process that manages. It is killed when this is dropped.
#[derive(Debug)]
struct ManagerLife {
    identity: NodeIdentity,
    plan: Arc<Plan>,
    sessions: Alive,
    control: TaskControl,
    _tasks: Tasks,
}

impl Drop for ManagerLife {
    fn drop(&mut self) {
        self.control.kill();
        self.sessions.end(self.identity);
        self.plan.nodes.killed(MANAGER);
    }
}

/// An index, and what ends with its process.
type Serving = (Arc<IndexServer>, watch::Receiver<()>);

/// The lives of the processes.
#[derive(Debug)]
pub(crate) struct IndexLives {
    plan: Arc<Plan>,
    alive: Alive,
    /// The life of each node that serves, unless it is down.
    lives: Mutex<BTreeMap<u64, Life>>,
    last: Mutex<BTreeMap<u64, Serving>>,
    manager: Mutex<Option<ManagerLife>>,
}

/// Closes the groups of earlier processes, and marks what nobody has of them as gone, for ever.
async fn repair(
    (clock, alive): (Arc<dyn Clock>, Alive),
    (extents, groups): (Arc<ClusterCapacity>, Arc<GroupFollower>),
    table: Vec<NodeRow>,
) {
    loop {
        clock.sleep(REPAIR_EVERY).await;
        for at in groups.all() {
            let (table, leaving, writers) = (table.clone(), BTreeSet::new(), alive.writers());
            let present = Present { table, leaving, writers };
            // It is tried again.
            drop(extents.repair(at.record.id(), &present).await);
        }
    }
}

/// Writes the first map, if there is none: partitions between these borders, at each node in turn.
async fn create_map(coordinator: &dyn Coordinator, borders: &[RoutingKey]) -> Result<(), String> {
    let lows = std::iter::once(RoutingKey::min()).chain(borders.iter().cloned());
    let highs = borders.iter().cloned().map(Some).chain([None]);
    let ids = NUMBER.ids().start..;
    let all = ids.zip(SERVERS.iter().cycle()).zip(lows.zip(highs));
    let put = all.map(|((id, node), (low, high))| {
        let id = PartitionId::new(id);
        let descriptor = PartitionDescriptor {
            id,
            keys: KeyRange::new(low, high).into(),
            epoch: Epoch::new(0),
            log: Vec::new(),
            host: HostId::of(NodeId::new(*node), 0),
        };
        Op::Put(PartitionDescriptor::coordinator_key(id), descriptor.encode())
    });
    let found = coordinator.range(b"partition/").await.map_err(|error| error.to_string())?;
    if found.entries.is_empty() {
        let put: Vec<Op> = put.collect();
        coordinator.txn(&[], &put).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

impl IndexLives {
    /// Begins the first lives.
    pub(crate) async fn start(plan: Plan) -> Result<Arc<Self>, String> {
        create_map(&*plan.coordinator, &plan.borders).await?;
        let alive = Alive(Arc::new(Mutex::new([plan.front.node].into())));
        let (lives, last, manager) = Default::default();
        let lives = Arc::new(Self { plan: Arc::new(plan), alive, lives, last, manager });
        for node in SERVERS {
            lives.begin(node).await?;
        }
        lives.manage().await?;
        Ok(lives)
    }

    /// How the front end reaches the index.
    pub(crate) async fn index(&self, env: &Env) -> Result<Arc<ClusterIndex>, String> {
        let Plan { nodes, coordinator, front, .. } = &*self.plan;
        let claims = Followed::start(coordinator, env).await?.claims;
        let (served, peers) = (Arc::new(ServedIndex::new(front.node)), Servers::of(nodes, front));
        let here = (front.node.node, served);
        Ok(Arc::new(ClusterIndex::new(here, (claims, peers), Arc::clone(&env.clock))))
    }

    /// The index of a node, in the life that serves, or served last, and what ends when that life
    /// is killed.
    pub(crate) fn of(&self, node: NodeId) -> Option<Serving> {
        self.last.lock().unwrap().get(&node.get()).cloned()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<IndexServer>> {
        self.last.lock().unwrap().values().map(|(index, _)| Arc::clone(index)).collect()
    }

    /// Begins the next life of a node. The one before has ended.
    async fn begin(&self, node: u64) -> Result<(), String> {
        let life = self.open(node).await?;
        let serving = (Arc::clone(&life.index), life.alive.subscribe());
        self.last.lock().unwrap().insert(node, serving);
        self.lives.lock().unwrap().insert(node, life);
        Ok(())
    }

    async fn open(&self, node: u64) -> Result<Life, String> {
        let Plan { machine, nodes, coordinator, reclaim, watch, front, .. } = &*self.plan;
        let (tasks, control) = Tasks::controlled();
        let tasks = tasks.reporting_to(&machine.env.tasks);
        let env = Env { tasks: tasks.clone(), ..machine.env.clone() };
        let Process { base, caller, .. } = nodes.process(node, &env).await?;
        let identity = caller.node;
        self.alive.begin(identity);
        let served = Arc::new(ServedIndex::new(identity));
        let sessions =
            Arc::new(Sessions { alive: self.alive.clone(), front: front.node, here: identity });
        let ends = Arc::clone(&sessions) as Arc<dyn IndexClients>;
        let service =
            IndexService::new(Arc::clone(&served), Arc::clone(&ends), Arc::clone(&env.clock));
        nodes.serve(&caller, (INDEX_SERVICE, Arc::new(service)))?;
        let Followed { map, claims } = Followed::start(coordinator, &env).await?;
        let holder = Holder { node: identity.node, incarnation: identity.incarnation };
        let claimed = claim(&**coordinator, host_claim(identity.node), holder).await?;
        let guard = Guarded::new(Arc::clone(coordinator), host_claim(identity.node), claimed);
        let writers = KnownWriters::new(Arc::clone(&served), ends);
        let writers = Some(Arc::new(writers) as Arc<dyn WriterSessions>);
        let base = Base { coordinator: Arc::new(guard), node: identity.node, writers, ..base };
        let hosts = vec![env.tasks.clone(); HOSTS];
        let capacity = Arc::clone(&base.capacity);
        let opening = env.tasks.spawn("open the index", async move {
            let (config, control, boundaries) = (index_config(), None, None);
            let plan = IndexPlan { config, hosts: &hosts, control, boundaries };
            IndexParts::open(base, plan, &mut Registry::default()).await
        });
        let parts = opening.await.map_err(|error| error.to_string())?;
        let parts = parts.map_err(|error| format!("the index does not open: {error}"))?;
        let partitions = LocalPartitions::new(Arc::clone(&parts.index), identity);
        served.control_through(Arc::new(partitions));
        served.serve(Arc::clone(&parts.host) as Arc<dyn IndexHost>);
        parts.index.follow_map(map);
        let others = (claims, Servers::of(nodes, &caller) as Arc<dyn Peers>);
        let here = (identity.node, Arc::clone(&served));
        let host = Arc::new(ClusterIndex::new(here, others, Arc::clone(&env.clock)));
        let known =
            Known { served: Arc::clone(&served), sessions, front: nodes.peer(&caller, FRONT) };
        let own = LocalRequests::new(InFlight::default(), Arc::clone(&env.clock));
        let requests = ClusterRequests::shared(identity, own, Arc::new(known), env.tasks.clone());
        let capacity = Arc::new(Watched { capacity, watch: watch.clone() });
        let used = Used { host, capacity, requests, audits: true };
        let reclaim = parts.reclaim(&env, reclaim.clone(), used, &mut Registry::default());
        Ok(Life {
            identity,
            claimed,
            plan: Arc::clone(&self.plan),
            sessions: self.alive.clone(),
            control,
            tasks,
            served,
            index: parts.index,
            _reclaim: reclaim,
            alive: watch::Sender::default(),
        })
    }

    /// Begins a life of the process that manages.
    async fn manage(&self) -> Result<(), String> {
        let Plan { machine, nodes, coordinator, .. } = &*self.plan;
        let (tasks, control) = Tasks::controlled();
        let tasks = tasks.reporting_to(&machine.env.tasks);
        let env = Env { tasks: tasks.clone(), ..machine.env.clone() };
        let process = nodes.process(MANAGER, &env).await?;
        let Process { caller, capacity: extents, groups, table, .. } = process;
        let identity = caller.node;
        self.alive.begin(identity);
        let Followed { map, claims } = Followed::start(coordinator, &env).await?;
        let (key, incarnation) = (Bytes::from_static(MANAGES_INDEX), identity.incarnation);
        let holder = Holder { node: identity.node, incarnation };
        let claimed = claim(&**coordinator, key.clone(), holder).await?;
        let served = Arc::new(ServedIndex::new(identity));
        let others = (Arc::clone(&claims), Servers::of(nodes, &caller) as Arc<dyn Peers>);
        let index = ClusterIndex::new((identity.node, served), others, Arc::clone(&env.clock));
        let moves = Moves::new(index, &map, &env);
        let (alive, clock) = (self.alive.clone(), Arc::clone(&env.clock));
        let manager = HostManager {
            coordinator: Arc::new(Guarded::new(Arc::clone(coordinator), key, claimed)),
            cluster: NUMBER,
            initial_partitions: 1,
            map,
            claims,
            watch: Arc::new(Gone { alive, clock: Arc::clone(&clock) }),
            moves: Arc::new(moves),
            policy: Some(PolicyConfig::default()),
            audit_log: AuditLog::default(),
            clock,
        };
        let managing = async move { manager.run().await };
        drop(env.tasks.spawn("manager", until_stopped(&env, managing)));
        let of = (Arc::clone(&env.clock), self.alive.clone());
        let repair = until_stopped(&env, repair(of, (extents, groups), table));
        drop(env.tasks.spawn("repair", repair));
        let (plan, sessions) = (Arc::clone(&self.plan), self.alive.clone());
        let life = ManagerLife { identity, plan, sessions, control, _tasks: tasks };
        *self.manager.lock().unwrap() = Some(life);
        Ok(())
    }

    /// Harms the processes while clients work, and has others take over.
    pub(crate) async fn harm(&self, draw: &Draw, counts: &Counts) -> Infallible {
        let clock = Arc::clone(&self.plan.machine.env.clock);
        let pause =
            async |from, to| clock.sleep(Duration::from_millis(draw.between(from, to))).await;
        for _ in 0..draw.between(0, 5) {
            pause(5, 500).await;
            if draw.percent(15) {
                counts.add("manager killed", 1);
                let manager = self.manager.lock().unwrap().take();
                drop(manager);
                pause(0, 1000).await;
                self.manage().await.unwrap();
                continue;
            }
            let node = *draw.one(&SERVERS).unwrap();
            let life = self.lives.lock().unwrap().remove(&node).unwrap();
            match draw.between(0, 6) {
                0 | 1 => {
                    counts.add("index killed", 1);
                    drop(life);
                    pause(0, 2000).await;
                    self.begin(node).await.unwrap();
                }
                2 => {
                    counts.add("index stopped in order", 1);
                    life.stop().await;
                    pause(0, 1000).await;
                    self.begin(node).await.unwrap();
                }
                3 => {
                    counts.add("index stood still", 1);
                    life.control.pause();
                    pause(10, 3000).await;
                    life.control.resume();
                    self.lives.lock().unwrap().insert(node, life);
                }
                4 => {
                    counts.add("index deposed while it stood still", 1);
                    life.control.pause();
                    life.expire();
                    pause(0, 3000).await;
                    life.control.resume();
                    pause(0, 2000).await;
                    drop(life);
                    self.begin(node).await.unwrap();
                }
                _ => {
                    counts.add("front end cut off from the index", 1);
                    self.lives.lock().unwrap().insert(node, life);
                    let way = if draw.percent(50) { (FRONT, node) } else { (node, FRONT) };
                    self.plan.nodes.cut_apart(way, draw).await;
                }
            }
        }
        std::future::pending().await
    }

    /// Ends what harms the processes: all serve.
    pub(crate) async fn mend(&self) -> Result<(), String> {
        for node in SERVERS {
            self.plan.nodes.join(FRONT, node);
            let serves = self.lives.lock().unwrap().contains_key(&node);
            if !serves {
                self.begin(node).await?;
            }
        }
        let manages = self.manager.lock().unwrap().is_some();
        if manages { Ok(()) } else { self.manage().await }
    }

    /// Stops the processes in order.
    pub(crate) async fn shutdown(&self) {
        let manager = self.manager.lock().unwrap().take();
        drop(manager);
        let lives = std::mem::take(&mut *self.lives.lock().unwrap());
        for life in lives.into_values() {
            life.stop().await;
        }
    }
}

/// Takes a claim from whoever has it.
async fn claim(
    coordinator: &dyn Coordinator,
    key: Bytes,
    holder: Holder,
) -> Result<Revision, String> {
    match coordinator.txn(&[], &[Op::Put(key, holder.encode())]).await {
        Ok(TxnReply::Committed(at)) => Ok(at),
        other => Err(format!("the claim: {other:?}")),
    }
}
