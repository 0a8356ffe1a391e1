//! How a node becomes a part of its cluster: it gets an id, begins a life, follows nodes and
//! groups, and answers the calls of other nodes for its copies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::capacity::Capacity;
use crate::capacity::Member;
use crate::capacity::cluster::ClusterCapacity;
use crate::capacity::cluster::ClusterParts;
use crate::capacity::cluster::GroupIds;
use crate::capacity::cluster::Nodes;
use crate::capacity::groups::GroupFollower;
use crate::capacity::remote::MemberService;
use crate::capacity::remote::SERVICE;
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::claim::Claim;
use crate::coordinator::claim::Holder;
use crate::coordinator::cluster::ClusterRecord;
use crate::coordinator::hosts::HostClaims;
use crate::coordinator::nodes;
use crate::coordinator::nodes::Alive;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeLife;
use crate::coordinator::nodes::NodeRecord;
use crate::coordinator::nodes::NodeState;
use crate::coordinator::nodes::NodeTable;
use crate::env::Clock;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::net::TcpDial;
use crate::index;
use crate::index::FollowedMap;
use crate::index::IndexHost;
use crate::index::PartitionControl;
use crate::index::remote::ClusterPartitions;
use crate::node::error::NodeError;
use crate::node::listeners::Bound;
use crate::node::storage::Storage;
use crate::node::storage::founded;
use crate::node::storage::node_of;
use crate::node::storage::set_node;
use crate::reclaim::CoordinatorPartitions;
use crate::reclaim::Reclaim;
use crate::reclaim::ReclaimConfig;
use crate::reclaim::Setup;
use crate::rpc::CallerConfig;
use crate::rpc::ClusterIdentity;
use crate::rpc::NodeIdentity;
use crate::rpc::Security;
use crate::rpc::Server;
use crate::rpc::ServerConfig;
use crate::rpc::Service;
use crate::rpc::Services;
use crate::telemetry::Registry;
use crate::types::NodeId;
use crate::types::NodeRoles;

use super::authority::Authority;
use super::authority::AuthorityError;
use super::copies::look_after_copies;
use super::copies::own_copies;
use super::index_links::IndexLinks;
use super::index_links::IndexServices;
use super::life::Over;
use super::life::begin;
use super::life::life;
use super::life::live;
use super::metrics::ClusterMetrics;
use super::metrics::ManagerMetrics;
use super::reached::ReachedNodes;
use super::repair::Repair;
use super::settings::Place;
use super::settings::Proof;
use super::tasks::run;
use super::watch_holder::WatchByAddress;

/// How often it is seen to that there are open groups.
const GROUPS_EVERY: Duration = Duration::from_secs(5);

/// What a node needs for joining.
#[derive(Debug)]
pub(super) struct Joining<'a> {
    pub(super) env: &'a Env,
    pub(super) storage: &'a Storage,
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) cluster: ClusterRecord,
    pub(super) place: &'a Place,
    /// Issues the certificate of the node, if nodes have some.
    pub(super) authority: Option<Arc<Authority>>,
    /// For the calls of other nodes.
    pub(super) listener: Bound,
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
    pub(super) over: Arc<Over>,
    /// The index, and the requests of all processes.
    pub(super) links: IndexLinks,
    /// Which process serves which partition.
    pub(super) map: Arc<FollowedMap>,
    /// What this node does when it manages.
    pub(super) metrics: ManagerMetrics,
    /// Of everything that the node does for its cluster.
    tasks: Tasks,
    living: Mutex<Option<JoinHandle<Alive>>>,
}

impl Joined {
    /// Joins the cluster.
    ///
    /// # Errors
    /// [`NodeError`].
    pub(super) async fn join(joining: Joining<'_>) -> Result<Self, NodeError> {
        let Joining { env, storage, coordinator, cluster, place, authority, listener } = joining;
        let tasks = Tasks::new().reporting_to(&env.tasks);
        let env = Env { tasks: tasks.clone(), ..env.clone() };
        let own = &storage.coordinator;
        let node = enter(&coordinator, own.as_ref(), &cluster, place).await?;
        let security = security(&tasks, &env, node, (place.proof, authority))?;
        let alive = begin(&env, &coordinator, &cluster, (node, life(storage, place, &listener)));
        let alive = alive.await?;
        let identity = NodeIdentity { node, incarnation: alive.life().incarnation };
        let table = Arc::new(NodeTable::start(Arc::clone(&coordinator)).await?);
        let groups = Arc::new(GroupFollower::start(Arc::clone(&coordinator)).await?);
        let (following, clock) = (Arc::clone(&table), Arc::clone(&env.clock));
        run(&tasks, "nodes", async move { following.follow(clock.as_ref()).await });
        let (following, clock) = (Arc::clone(&groups), Arc::clone(&env.clock));
        run(&tasks, "groups", async move { following.follow(clock.as_ref()).await });
        let own = match own_copies(&env, storage, (node, place), &groups).await {
            Ok(own) => own,
            Err(error) => {
                alive.end().await?;
                return Err(error);
            }
        };
        let over = Arc::new(Over::default());
        let us = caller(&env, (place, security), &cluster, identity);
        let asked = IndexServices::new(&env, identity, &table);
        let member = own.clone().map(|own| own as Arc<dyn Member>);
        let server = answer_calls(&us, (member.clone(), &asked), listener);
        let removing = heed_removals(node, Arc::clone(&table), server, Arc::clone(&over));
        run(&tasks, "removed nodes", removing);
        let reached = Arc::new(ReachedNodes::new(us, member, Arc::clone(&table)));
        let links = asked.link(&env, &coordinator, &reached).await?;
        let map = follow_index(&tasks, &env, &coordinator, &links.claims).await?;
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
        if let Some(local) = own {
            look_after_copies(&tasks, (&clock, &capacity), (storage, local), &table);
        }
        let living = live(&env, alive, Arc::clone(&storage.capacity), Arc::clone(&over));
        let living = Mutex::new(Some(living));
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
            links,
            map,
            metrics: ManagerMetrics::default(),
            tasks,
            living,
        })
    }

    /// Waits until the node must not be a part of the cluster any more, and returns why.
    pub(super) async fn over(&self) -> NodeError {
        self.over.wait().await
    }

    /// The extents that this process creates.
    pub(super) fn groups_for_us(&self) -> Arc<GroupIds> {
        Arc::clone(&self.ids)
    }

    /// Sees to it from now on that there are groups in which this process creates extents.
    pub(super) fn look_after_groups(&self) {
        let (ids, clock) = (Arc::clone(&self.ids), Arc::clone(&self.clock));
        self.run("look after groups", async move {
            loop {
                clock.sleep(GROUPS_EVERY).await;
                ids.look_after();
            }
        });
        let (capacity, clock) = (Arc::clone(&self.capacity), Arc::clone(&self.clock));
        self.run("leave groups", async move {
            loop {
                clock.sleep(GROUPS_EVERY).await;
                capacity.leave_groups().await;
            }
        });
    }

    /// The process, as its claims name it.
    pub(super) fn holder(&self) -> Holder {
        let NodeIdentity { node, incarnation } = self.identity;
        Holder { node, incarnation }
    }

    /// The nodes that take partitions.
    pub(super) fn takes_partitions(&self, node: NodeId) -> bool {
        let at = self.table.get(node);
        let serves = |life: &NodeLife| life.roles.has(NodeRoles::INDEX);
        at.is_some_and(|at| {
            at.record.state == NodeState::Active && at.life.as_ref().is_some_and(serves)
        })
    }

    /// Shows and changes the partitions of all nodes.
    pub(super) fn partitions(&self) -> Arc<dyn PartitionControl> {
        Arc::new(ClusterPartitions::new(
            Arc::clone(&self.links.index),
            Arc::clone(&self.map),
            self.tasks.clone(),
        ))
    }

    /// Tells whether the process that has a claim is gone.
    pub(super) fn watch_holder(&self) -> WatchByAddress {
        WatchByAddress { table: Arc::clone(&self.table), clock: Arc::clone(&self.clock) }
    }

    /// Repairs the groups of the cluster.
    pub(super) fn repair(&self) -> Repair {
        Repair {
            capacity: Arc::clone(&self.capacity),
            groups: Arc::clone(&self.groups),
            nodes: Arc::clone(&self.reached) as Arc<dyn Nodes>,
            table: Arc::clone(&self.table),
            clock: Arc::clone(&self.clock),
            coordinator: Arc::clone(&self.coordinator),
            metrics: self.metrics.clone(),
        }
    }

    /// Audits the extents of the cluster, under this claim to manage it (ADR 0065).
    pub(super) fn audits(&self, claim: &Claim, env: &Env) -> Arc<Reclaim> {
        let coordinator: Arc<dyn Coordinator> = Arc::new(claim.guard());
        Reclaim::new(Setup {
            host: Arc::clone(&self.links.index) as Arc<dyn IndexHost>,
            node: self.identity.node,
            partitions: Arc::new(CoordinatorPartitions(Arc::clone(&self.coordinator))),
            capacity: Arc::clone(&self.capacity) as Arc<dyn Capacity>,
            requests: Arc::clone(&self.links.requests.all),
            coordinator,
            env: env.clone(),
            config: ReclaimConfig::default(),
            metrics: self.metrics.audits.clone(),
            index: index::Metrics::default(),
        })
    }

    /// Shows what this node knows of the cluster.
    pub(super) fn register(&self, registry: &mut Registry) {
        let shown = ClusterMetrics {
            node: self.identity.node,
            copies: self.cluster.copies,
            table: Arc::clone(&self.table),
            groups: Arc::clone(&self.groups),
            map: Arc::clone(&self.map),
        };
        shown.register(&self.metrics, registry);
    }

    /// Starts something that goes on for as long as the node is a part of the cluster.
    pub(super) fn run(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        run(&self.tasks, name, work);
    }

    /// Leaves the cluster until the next start: others know at once that the node is away.
    pub(super) async fn leave(&self) {
        self.tasks.shutdown().await;
        let living = self.living.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(living) = living else { return };
        match living.await {
            Ok(alive) => {
                if let Err(error) = alive.end().await {
                    tracing::info!(%error, "the life of this node ends by itself");
                }
            }
            Err(error) => tracing::error!(%error, "the life of this node"),
        }
    }
}

/// Follows which process serves which partition.
async fn follow_index(
    tasks: &Tasks,
    env: &Env,
    coordinator: &Arc<dyn Coordinator>,
    claims: &Arc<HostClaims>,
) -> Result<Arc<FollowedMap>, coordinator::Error> {
    let (claims, of) = (Arc::clone(claims), Arc::clone(coordinator));
    let clock = Arc::clone(&env.clock);
    run(tasks, "hosts", async move { claims.follow(&*of, clock.as_ref()).await });
    let map = Arc::new(FollowedMap::start(&**coordinator).await?);
    let (following, of) = (Arc::clone(&map), Arc::clone(coordinator));
    let clock = Arc::clone(&env.clock);
    run(tasks, "partition map", async move { following.follow(&*of, clock.as_ref()).await });
    Ok(map)
}

/// How this node and others prove who they are. Its certificate is renewed from now on.
fn security(
    tasks: &Tasks,
    env: &Env,
    node: NodeId,
    (proof, authority): (Proof, Option<Arc<Authority>>),
) -> Result<Security, AuthorityError> {
    Ok(match (proof, authority) {
        (_, Some(authority)) => {
            let now = env.clock.now();
            let tls = authority.tls_of(node, now)?;
            let (renewed, clock) = ((tls.clone(), now), Arc::clone(&env.clock));
            run(tasks, "certificate", async move { authority.renew(node, renewed, clock).await });
            Security::Tls(tls)
        }
        (Proof::TrustedNetwork, None) => Security::TrustedNetwork,
        // Without an authority nothing but this machine is reached.
        (Proof::Loopback | Proof::Certificates, None) => Security::Loopback,
    })
}

/// How this node calls others.
fn caller(
    env: &Env,
    (place, security): (&Place, Security),
    cluster: &ClusterRecord,
    node: NodeIdentity,
) -> CallerConfig {
    let ClusterRecord { number, id, generation, .. } = *cluster;
    CallerConfig {
        env: env.clone(),
        dial: Arc::new(TcpDial),
        security,
        cluster: ClusterIdentity { number, id, generation },
        node,
        roles: place.roles,
    }
}

/// Answers the calls of other nodes from now on: those for its copies, if it has any, for the index
/// and about its requests.
fn answer_calls(
    us: &CallerConfig,
    (own, asked): (Option<Arc<dyn Member>>, &IndexServices),
    listener: Bound,
) -> Arc<Server> {
    let mut services: Services = BTreeMap::new();
    asked.add_to(&mut services, &us.env);
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
    founded(own).await?;
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

/// Lets removed nodes call no more, for ever, and stops this one if it is removed.
async fn heed_removals(node: NodeId, table: Arc<NodeTable>, server: Arc<Server>, over: Arc<Over>) {
    let mut followed = table.followed();
    loop {
        followed.mark_unchanged();
        let is_removed = |at: &NodeAt| at.record.state == NodeState::Removed;
        for at in table.all().iter().filter(|at| is_removed(at)) {
            server.remove(at.id);
            if at.id == node {
                over.say(NodeError::Removed);
                return;
            }
        }
        if followed.changed().await.is_err() {
            return;
        }
    }
}
