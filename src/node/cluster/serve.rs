//! Serving partitions of the index, under a claim of this node.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::AdminState;
use crate::audit_log::AuditLog;
use crate::capacity::Capacity;
use crate::capacity::ExtentIds;
use crate::capacity::ReadLeases;
use crate::capacity::cluster::ClusterCapacity;
use crate::capacity::cluster::Nodes;
use crate::capacity::groups::NodeRow;
use crate::coordinator::claim::Claim;
use crate::coordinator::claim::Waiting;
use crate::coordinator::hosts::host_claim;
use crate::coordinator::nodes::NodeState;
use crate::env::Env;
use crate::index::IndexHost;
use crate::index::IndexServer;
use crate::index::LocalPartitions;
use crate::node::assembly::Base;
use crate::node::config::Config;
use crate::node::error::NodeError;
use crate::node::metrics::of_roles;
use crate::node::roles::IndexRole;
use crate::telemetry::Registry;

use super::join::Joined;

/// How long the first start of a cluster waits for the nodes of all copies. Later ones, and a first
/// one after that time, begin with one copy less.
const NODES_WAIT: Duration = Duration::from_secs(10);
/// How often it looks at the nodes meanwhile.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// How long a stop waits for writes of other processes.
const WRITES_WAIT: Duration = Duration::from_secs(2);

/// What a node needs for serving partitions.
#[derive(Debug)]
pub(super) struct IndexSetup {
    pub(super) config: Config,
    pub(super) env: Env,
    pub(super) admin: AdminState,
    pub(super) audit_log: AuditLog,
    pub(super) joined: Arc<Joined>,
}

/// A node that serves partitions, or waits for its claim to do so: an earlier life of it may have
/// it. If it loses the claim, or cannot serve, the node must stop.
#[derive(Debug)]
pub(super) struct IndexTask {
    stop: CancellationToken,
    task: JoinHandle<()>,
    /// What is served, once it is.
    served: watch::Receiver<Option<Served>>,
}

/// The index that this node serves.
#[derive(Clone, Debug)]
struct Served {
    index: Arc<IndexServer>,
    claim: Arc<Claim>,
}

impl IndexTask {
    pub(super) fn start(setup: IndexSetup) -> Self {
        let stop = CancellationToken::new();
        let (serves, served) = watch::channel(None);
        let (over, stopping) = (Arc::clone(&setup.joined.over), stop.clone());
        let tasks = setup.env.tasks.clone();
        let after_panic = Arc::clone(&over);
        let work = async move {
            if let Err(error) = setup.run(&stopping, &serves).await {
                over.say(error);
            }
        };
        // The claim would be renewed for ever.
        let down = move |_: &str| after_panic.say(NodeError::ClaimLost);
        let task = tasks.spawn_or_stop("serve the index", work, down);
        Self { stop, task, served }
    }

    /// Whether this node answers requests about its partitions, if it serves some: it has renewed
    /// the claim lately, or the members of its logs say that no other node serves them. While it
    /// waits for its claim it is not, unless it `may_wait`.
    pub(super) fn is_sure(&self, capacity: &ClusterCapacity, may_wait: bool) -> bool {
        let served = self.served.borrow();
        let is_sure = |served: &Served| {
            served.claim.is_held() || served.index.partitions() == 0 || capacity.has_leases()
        };
        served.as_ref().map_or(may_wait, is_sure)
    }

    /// Stops serving, and gives the claim back.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "serving the index");
        }
    }
}

impl IndexSetup {
    /// Waits for enough nodes and for the claim, then serves until it is stopped or the claim is
    /// lost.
    async fn run(
        self,
        stop: &CancellationToken,
        serves: &watch::Sender<Option<Served>>,
    ) -> Result<(), NodeError> {
        let Self { env, joined, .. } = &self;
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = until_enough_nodes(joined, env) => {}
        }
        let (holder, watch) = (joined.holder(), joined.watch_holder());
        let waiting = Waiting { key: host_claim(holder.node), holder, watch: &watch };
        let claim = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            claim = waiting.run(&joined.coordinator, &env.clock) => claim,
        };
        tracing::info!("this node serves partitions now");
        let (claim, lost) = (Arc::new(claim), CancellationToken::new());
        let (kept, ended) = (Arc::clone(&claim), lost.clone());
        joined.run("claim", async move {
            kept.keep().await;
            ended.cancel();
        });
        let role = match self.serve(&claim).await {
            Ok(role) => role,
            Err(error) => {
                claim.release().await;
                return Err(error);
            }
        };
        serves.send_replace(Some(Served { index: role.index(), claim: Arc::clone(&claim) }));
        tokio::select! {
            biased;
            () = lost.cancelled() => return Err(NodeError::ClaimLost),
            () = stop.cancelled() => {}
        }
        role.stop_reclaim().await;
        // Requests of others wait for the next nodes that serve.
        joined.links.served.end(&*env.clock, WRITES_WAIT).await;
        role.stop().await;
        claim.release().await;
        Ok(())
    }

    /// Opens the partitions that the map gives to this node, and answers requests about them.
    async fn serve(&self, claim: &Arc<Claim>) -> Result<IndexRole, NodeError> {
        let Self { config, env, admin, audit_log, joined } = self;
        let mut metrics = Registry::default();
        let registry = of_roles(&mut metrics);
        let coordinator = Arc::new(claim.guard());
        let base = Base {
            env: env.clone(),
            capacity: Arc::clone(&joined.capacity) as Arc<dyn Capacity>,
            coordinator,
            node: joined.identity.node,
            cluster: joined.cluster.number,
            extent_ids: joined.groups_for_us() as Arc<dyn ExtentIds>,
            leases: Some(Arc::clone(&joined.capacity) as Arc<dyn ReadLeases>),
            writers: Some(Arc::clone(&joined.links.writers)),
        };
        let role = IndexRole::start(config, base, audit_log, registry).await?;
        let index = role.index();
        let control = LocalPartitions::new(Arc::clone(&index), joined.identity);
        joined.links.served.control_through(Arc::new(control));
        joined.links.served.serve(role.host());
        index.follow_map(Arc::clone(&joined.map));
        let all = Arc::clone(&joined.links.index) as Arc<dyn IndexHost>;
        role.start_reclaim(all, Arc::clone(&joined.links.requests.all), registry);
        admin.registry_of_index.set(metrics).expect("set once");
        Ok(role)
    }
}

/// Waits until there are nodes for all copies, and, after a while, for all but one.
async fn until_enough_nodes(joined: &Joined, env: &Env) {
    let copies = usize::from(joined.cluster.copies);
    let began = env.clock.monotonic();
    let is_first_start = joined.groups.all().is_empty();
    let mut is_logged = false;
    loop {
        let machines = machines(&joined.reached.table());
        let wants_all = is_first_start && env.clock.monotonic() < began + NODES_WAIT;
        let least = if wants_all { copies } else { copies - 1 };
        if machines >= least.max(1) {
            return;
        }
        if !is_logged {
            tracing::info!(machines, copies, "waiting for nodes with copies");
        }
        is_logged = true;
        env.clock.sleep(LOOKS_EVERY).await;
    }
}

/// The machines with nodes that take new extents.
fn machines(table: &[NodeRow]) -> usize {
    let takes = |row: &&NodeRow| row.state == NodeState::Active && !row.is_away;
    let mut machines: Vec<&str> =
        table.iter().filter(takes).map(|row| row.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    machines.len()
}
