//! How a node becomes a part of its cluster: it gets an id, begins a life, follows nodes and
//! groups, and answers the calls of other nodes for its copies.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::capacity::Capacity;
use crate::capacity::CapacityNode;
use crate::capacity::LocalMember;
use crate::capacity::Member;
use crate::capacity::cluster::ClusterCapacity;
use crate::capacity::cluster::ClusterParts;
use crate::capacity::cluster::GroupIds;
use crate::capacity::cluster::Nodes;
use crate::capacity::cluster::Settled;
use crate::capacity::groups::GroupFollower;
use crate::capacity::groups::KnownGroups;
use crate::capacity::remote::MemberService;
use crate::capacity::remote::SERVICE;
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::cluster::ClusterRecord;
use crate::coordinator::nodes;
use crate::coordinator::nodes::Alive;
use crate::coordinator::nodes::JoinError;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeLife;
use crate::coordinator::nodes::NodeRecord;
use crate::coordinator::nodes::NodeState;
use crate::coordinator::nodes::NodeTable;
use crate::coordinator::nodes::SESSION;
use crate::env::Clock;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::net::TcpDial;
use crate::node::error::NodeError;
use crate::node::listeners::Bound;
use crate::node::storage::Storage;
use crate::node::storage::node_of;
use crate::node::storage::set_node;
use crate::rpc::CallerConfig;
use crate::rpc::ClusterIdentity;
use crate::rpc::NodeIdentity;
use crate::rpc::Server;
use crate::rpc::ServerConfig;
use crate::rpc::Service;
use crate::rpc::Services;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::NodeRoles;
use crate::types::Timestamp;

use super::absent::Absent;
use super::absent::DEAD_AFTER;
use super::reached::ReachedNodes;
use super::repair::Repair;
use super::settings::Place;
use super::watch_holder::WatchByAddress;

/// How often it is seen to that there are open groups.
const GROUPS_EVERY: Duration = Duration::from_secs(5);
/// How often copies that have no end yet are looked at.
const SETTLES_EVERY: Duration = Duration::from_secs(3);
/// How long a node waits before it tries again what the coordinator refused.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a start waits for the end of an earlier life.
const EARLIER_LIFE: Duration = SESSION.saturating_add(Duration::from_secs(5));

/// What a node needs for joining.
#[derive(Debug)]
pub(super) struct Joining<'a> {
    pub(super) env: &'a Env,
    pub(super) storage: &'a Storage,
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) cluster: ClusterRecord,
    pub(super) place: &'a Place,
    /// For the calls of other nodes.
    pub(super) listener: Bound,
}

/// Whether the node must not be a part of the cluster any more, and why.
#[derive(Debug, Default)]
struct Over {
    why: OnceLock<JoinError>,
    said: CancellationToken,
}

impl Over {
    fn say(&self, why: JoinError) {
        tracing::error!(%why, "the node stops");
        drop(self.why.set(why));
        self.said.cancel();
    }
}

/// A node that is a part of its cluster.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) cluster: ClusterRecord,
    pub(super) identity: NodeIdentity,
    pub(super) groups: Arc<GroupFollower>,
    pub(super) reached: Arc<ReachedNodes>,
    /// The extents of the cluster.
    pub(super) capacity: Arc<ClusterCapacity>,
    ids: Arc<GroupIds>,
    table: Arc<NodeTable>,
    clock: Arc<dyn Clock>,
    over: Arc<Over>,
    /// Of everything that the node does for its cluster.
    tasks: Tasks,
    living: JoinHandle<Alive>,
}

impl Joined {
    /// Joins the cluster.
    ///
    /// # Errors
    /// [`NodeError`].
    pub(super) async fn join(joining: Joining<'_>) -> Result<Self, NodeError> {
        let Joining { env, storage, coordinator, cluster, place, listener } = joining;
        let tasks = Tasks::new().reporting_to(&env.tasks);
        let env = Env { tasks: tasks.clone(), ..env.clone() };
        let own = &storage.coordinator;
        let node = enter(&coordinator, own.as_ref(), &cluster, place).await?;
        let alive = begin(&env, &coordinator, &cluster, (node, life(storage, place, &listener)));
        let alive = alive.await?;
        let identity = NodeIdentity { node, incarnation: alive.life().incarnation };
        let table = Arc::new(NodeTable::start(Arc::clone(&coordinator)).await?);
        let groups = Arc::new(GroupFollower::start(Arc::clone(&coordinator)).await?);
        let (following, clock) = (Arc::clone(&table), Arc::clone(&env.clock));
        run(&tasks, "nodes", async move { following.follow(clock.as_ref()).await });
        let (following, clock) = (Arc::clone(&groups), Arc::clone(&env.clock));
        run(&tasks, "groups", async move { following.follow(clock.as_ref()).await });
        let own = own_copies(&env, storage, (node, place), &groups).await;
        let own = match own {
            Ok(own) => own,
            Err(error) => {
                alive.end().await?;
                return Err(error);
            }
        };
        let over = Arc::new(Over::default());
        let us = caller(&env, place, &cluster, identity);
        let server = answer_calls(&us, own.clone(), listener);
        let removing = heed_removals(node, Arc::clone(&table), server, Arc::clone(&over));
        run(&tasks, "removed nodes", removing);
        let has_copies = own.is_some();
        let reached = Arc::new(ReachedNodes::new(us, own, Arc::clone(&table)));
        let parts = ClusterParts {
            env: env.clone(),
            coordinator: Arc::clone(&coordinator),
            groups: Arc::clone(&groups),
            nodes: Arc::clone(&reached) as Arc<dyn Nodes>,
            cluster: cluster.number,
            writer: identity.incarnation,
            copies: usize::from(cluster.copies),
        };
        let ids = GroupIds::new(parts.clone());
        let capacity = Arc::new(ClusterCapacity::new(parts, Arc::clone(&ids)));
        let clock = Arc::clone(&env.clock);
        if has_copies {
            let (own, clock) = (Arc::clone(&storage.capacity), Arc::clone(&clock));
            let settling = settle(clock, Arc::clone(&capacity), own, Arc::clone(&table));
            run(&tasks, "settle copies", settling);
        }
        let living = live(&env, alive, Arc::clone(&storage.capacity), Arc::clone(&over));
        tracing::info!(%node, name = place.name, "a node of cluster {}", cluster.number);
        Ok(Self {
            coordinator,
            cluster,
            identity,
            groups,
            reached,
            capacity,
            ids,
            table,
            clock,
            over,
            tasks,
            living,
        })
    }

    /// Waits until the node must not be a part of the cluster any more, and returns why.
    pub(super) async fn over(&self) -> NodeError {
        self.over.said.cancelled().await;
        match self.over.why.get() {
            Some(JoinError::NoSuchNode(_)) | None => NodeError::Removed,
            Some(why) => why.clone().into(),
        }
    }

    /// Sees to it from now on that there are groups in which this process creates extents.
    pub(super) fn serve_groups(&self) -> Arc<GroupIds> {
        let (ids, clock) = (Arc::clone(&self.ids), Arc::clone(&self.clock));
        self.run("look after groups", async move {
            loop {
                clock.sleep(GROUPS_EVERY).await;
                ids.look_after();
            }
        });
        Arc::clone(&self.ids)
    }

    /// Tells whether the node that serves clients is gone.
    pub(super) fn watch_holder(&self) -> WatchByAddress {
        WatchByAddress { table: Arc::clone(&self.table), clock: Arc::clone(&self.clock) }
    }

    /// Repairs the groups of the cluster from now on.
    pub(super) fn repair_groups(&self) {
        let repair = Repair {
            capacity: Arc::clone(&self.capacity),
            groups: Arc::clone(&self.groups),
            nodes: Arc::clone(&self.reached) as Arc<dyn Nodes>,
            table: Arc::clone(&self.table),
            clock: Arc::clone(&self.clock),
            coordinator: Arc::clone(&self.coordinator),
        };
        self.run("repair", repair.run());
    }

    /// Starts something that goes on for as long as the node is a part of the cluster.
    pub(super) fn run(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        run(&self.tasks, name, work);
    }

    /// Leaves the cluster until the next start: others know at once that the node is away.
    pub(super) async fn leave(self) {
        self.tasks.shutdown().await;
        match self.living.await {
            Ok(alive) => {
                if let Err(error) = alive.end().await {
                    tracing::info!(%error, "the life of this node ends by itself");
                }
            }
            Err(error) => tracing::error!(%error, "the life of this node"),
        }
    }
}

fn run(tasks: &Tasks, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
    let stop = tasks.stopping();
    drop(tasks.spawn(name, async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = work => {}
        }
    }));
}

/// How this node calls others.
fn caller(env: &Env, place: &Place, cluster: &ClusterRecord, node: NodeIdentity) -> CallerConfig {
    let ClusterRecord { number, id, generation, .. } = *cluster;
    CallerConfig {
        env: env.clone(),
        dial: Arc::new(TcpDial),
        security: place.security.clone(),
        cluster: ClusterIdentity { number, id, generation },
        node,
        roles: place.roles,
    }
}

/// Answers the calls of other nodes from now on: those for its copies, if it has any.
fn answer_calls(us: &CallerConfig, own: Option<Arc<dyn Member>>, listener: Bound) -> Arc<Server> {
    let mut services: Services = BTreeMap::new();
    if let Some(own) = own {
        let service = Arc::new(MemberService::new(own)) as Arc<dyn Service>;
        services.insert(SERVICE, service);
    }
    let mut config = ServerConfig::new(us.node, us.cluster, services);
    (config.roles, config.security) = (us.roles, us.security.clone());
    let server = Server::new(&us.env, config);
    let down = |why: &str| tracing::error!(why, "other nodes cannot call this one any more");
    let serving = serve(Arc::clone(&server), listener);
    drop(us.env.tasks.spawn_or_stop("calls of nodes", serving, down));
    server
}

async fn serve(server: Arc<Server>, listener: Bound) {
    if let Err(error) = server.run(listener.listener).await {
        tracing::error!(%error, "the calls of other nodes are not answered");
    }
}

/// The node's id, under which the cluster knows it.
async fn enter(
    coordinator: &Arc<dyn Coordinator>,
    own: &dyn Coordinator,
    cluster: &ClusterRecord,
    place: &Place,
) -> Result<NodeId, NodeError> {
    let node = match node_of(own).await? {
        Some(node) => node,
        None => {
            let node = nodes::new_id(&**coordinator, cluster.number).await?;
            set_node(own, cluster, node).await?;
            node
        }
    };
    match nodes::read(&**coordinator, node).await? {
        Some(record) if record.name != place.name => {
            return Err(NodeError::Renamed { name: record.name, given: place.name.clone() });
        }
        Some(_) => nodes::set_place(&**coordinator, node, &place.machine, &place.zone).await?,
        None => {
            let record = NodeRecord {
                name: place.name.clone(),
                machine: place.machine.clone(),
                zone: place.zone.clone(),
                state: NodeState::Active,
            };
            nodes::add(&**coordinator, node, &record).await?;
        }
    }
    Ok(node)
}

fn life(storage: &Storage, place: &Place, listener: &Bound) -> NodeLife {
    NodeLife {
        incarnation: Incarnation::new(0),
        roles: place.roles,
        host: place.host.clone(),
        port: listener.address.port(),
        time: Timestamp::ZERO,
        room: storage.capacity.room(),
        // Load is not measured yet: placement weighs room alone.
        load: 0,
    }
}

/// Begins a life. An earlier life of this data directory has ended, but the coordinator may not
/// know it yet.
async fn begin(
    env: &Env,
    coordinator: &Arc<dyn Coordinator>,
    cluster: &ClusterRecord,
    (node, life): (NodeId, NodeLife),
) -> Result<Alive, JoinError> {
    let began = env.clock.monotonic();
    let mut is_first = true;
    loop {
        let life = NodeLife { time: env.clock.now(), ..life.clone() };
        match Alive::begin(Arc::clone(coordinator), cluster.number, node, life).await {
            Err(JoinError::Alive { .. }) if env.clock.monotonic() < began + EARLIER_LIFE => {
                if is_first {
                    let most = SESSION.as_secs();
                    tracing::info!(%node, "the session of its earlier life ends in {most} s at most");
                }
                is_first = false;
                env.clock.sleep(PAUSE).await;
            }
            begun => return begun,
        }
    }
}

/// The copies of this node, if it has the role for them. A node without it must have none.
async fn own_copies(
    env: &Env,
    storage: &Storage,
    (node, place): (NodeId, &Place),
    groups: &Arc<GroupFollower>,
) -> Result<Option<Arc<dyn Member>>, NodeError> {
    if place.roles.has(NodeRoles::CAPACITY) {
        return Ok(Some(Arc::new(member(env, storage, node, groups).await?)));
    }
    if storage.capacity.extents().await.is_empty() {
        return Ok(None);
    }
    Err(NodeError::NeedsCapacity { name: place.name.clone() })
}

/// The copies of this node. It follows the records of groups from now on.
async fn member(
    env: &Env,
    storage: &Storage,
    node: NodeId,
    groups: &Arc<GroupFollower>,
) -> Result<LocalMember, coordinator::Error> {
    let own = Arc::clone(&storage.coordinator);
    let known = KnownGroups::open(node, own, Arc::clone(groups)).await?;
    let member = LocalMember::new(Arc::clone(&storage.capacity)).heeding(Arc::new(known));
    let (following, clock) = (member.clone(), Arc::clone(&env.clock));
    run(&env.tasks, "groups of a node", async move {
        following.follow_groups(clock.as_ref()).await;
    });
    Ok(member)
}

/// Lets removed nodes call no more, for ever, and stops this one if it is removed.
async fn heed_removals(node: NodeId, table: Arc<NodeTable>, server: Arc<Server>, over: Arc<Over>) {
    let mut followed = table.followed();
    loop {
        followed.mark_unchanged();
        let is_removed = |at: &NodeAt| at.record.state == NodeState::Removed;
        for at in table.all().iter().filter(|at| is_removed(at)) {
            server.remove(at.id);
            if at.id == node {
                over.say(JoinError::NoSuchNode(node));
                return;
            }
        }
        if followed.changed().await.is_err() {
            return;
        }
    }
}

/// Settles the copies of this node that nobody else settles, for ever.
async fn settle(
    clock: Arc<dyn Clock>,
    cluster: Arc<ClusterCapacity>,
    own: Arc<CapacityNode>,
    table: Arc<NodeTable>,
) {
    // Writers without a session.
    let absent: Mutex<Absent<Incarnation>> = Mutex::default();
    // What was logged last.
    let mut failing = None;
    loop {
        let now = clock.monotonic();
        let lives = table.all().into_iter().filter_map(|at| at.life);
        let lives: BTreeSet<Incarnation> = lives.map(|life| life.incarnation).collect();
        let is_dead = |writer: Incarnation| {
            let mut absent = absent.lock().unwrap_or_else(PoisonError::into_inner);
            if lives.contains(&writer) {
                absent.forget(&writer);
                return false;
            }
            absent.note(writer, DEAD_AFTER, now)
        };
        let settled = cluster.settle_copies(own.unsealed(), is_dead).await;
        let Settled { sealed, left, failed } = settled;
        let now_failing = failed.as_ref().map(|(extent, _)| *extent);
        if let Some((extent, error)) = failed.filter(|_| now_failing != failing) {
            tracing::warn!(%extent, %error, sealed, left, "a copy has no end yet");
        } else if sealed > 0 {
            tracing::info!(sealed, left, "copies were settled");
        }
        failing = now_failing;
        clock.sleep(SETTLES_EVERY).await;
    }
}

/// Keeps the life up until the node stops. If its session ends, since the coordinator heard nothing
/// of it, the life is resumed.
fn live(
    env: &Env,
    mut alive: Alive,
    capacity: Arc<CapacityNode>,
    over: Arc<Over>,
) -> JoinHandle<Alive> {
    let (stop, clock) = (env.tasks.stopping(), Arc::clone(&env.clock));
    env.tasks.spawn("life of the node", async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            why = keep(&mut alive, clock.as_ref(), &capacity) => over.say(why),
        }
        alive
    })
}

/// Returns when the node must stop.
async fn keep(alive: &mut Alive, clock: &dyn Clock, capacity: &CapacityNode) -> JoinError {
    loop {
        // Room, and a load that is not measured yet (see `life`).
        alive.keep(clock, || (capacity.room(), 0)).await;
        tracing::warn!("the session of this node has ended: others believed that it was away");
        loop {
            match alive.resume().await {
                Ok(()) => break,
                Err(error @ (JoinError::NoSuchNode(_) | JoinError::Alive { .. })) => return error,
                Err(error @ (JoinError::NameTaken(_) | JoinError::Coordinator(_))) => {
                    tracing::warn!(%error, "the session of this node is not opened again");
                    clock.sleep(PAUSE).await;
                }
            }
        }
    }
}
