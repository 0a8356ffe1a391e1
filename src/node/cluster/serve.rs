//! Serving clients, by the one node that has the claim to do so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::capacity::Capacity;
use crate::capacity::ExtentIds;
use crate::capacity::ReadLeases;
use crate::capacity::cluster::ClusterCapacity;
use crate::capacity::cluster::Nodes;
use crate::capacity::groups::NodeRow;
use crate::coordinator::claim::Claim;
use crate::coordinator::claim::Holder;
use crate::coordinator::claim::SERVES_INDEX;
use crate::coordinator::claim::Waiting;
use crate::coordinator::nodes::NodeState;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::node::assembly::Base;
use crate::node::config::Config;
use crate::node::error::NodeError;
use crate::node::foundation::Foundation;
use crate::node::listeners::bind_clients;
use crate::node::listeners::dialects;
use crate::node::metrics;
use crate::node::roles::FrontEndSetup;
use crate::node::roles::Roles;
use crate::node::running::Serving;
use crate::telemetry::Registry;

use super::join::Joined;

/// How long the first start of a cluster waits for the nodes of all copies. Later ones, and a first
/// one after that time, begin with one copy less.
const NODES_WAIT: Duration = Duration::from_secs(10);
/// How often it looks at the nodes meanwhile.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// A node that serves clients.
#[derive(Debug)]
pub(super) struct Served {
    roles: Roles,
    claim: Arc<Claim>,
    /// Cancelled when the claim is lost.
    lost: CancellationToken,
    blob: SocketAddr,
    s3: Option<SocketAddr>,
}

impl Served {
    /// Waits for the claim and for enough nodes, then starts front end, index, manager and reclaim.
    ///
    /// # Errors
    /// [`NodeError`]; the claim was given back.
    pub(super) async fn start(
        config: &Config,
        foundation: &Foundation,
        joined: &Joined,
        secrets: &Secrets,
    ) -> Result<Self, NodeError> {
        let env = &foundation.env;
        let holder =
            Holder { node: joined.identity.node, incarnation: joined.identity.incarnation };
        let watch = joined.watch_holder();
        let waiting = Waiting { key: SERVES_INDEX, holder, watch: &watch };
        let claim = waiting.run(&joined.coordinator, &env.clock).await;
        tracing::info!("this node serves the index now");
        let (claim, lost) = (Arc::new(claim), CancellationToken::new());
        let (kept, ended) = (Arc::clone(&claim), lost.clone());
        joined.run("claim", async move {
            kept.keep().await;
            ended.cancel();
        });
        let starting = async {
            until_enough_nodes(joined, env).await;
            start_roles(config, foundation, joined, (secrets, &claim)).await
        };
        let started = tokio::select! {
            biased;
            () = lost.cancelled() => Err(NodeError::ClaimLost),
            started = starting => started,
        };
        match started {
            Ok((roles, blob, s3)) => Ok(Self { roles, claim, lost, blob, s3 }),
            Err(error) => {
                claim.release().await;
                Err(error)
            }
        }
    }

    pub(super) fn serving(&self, foundation: &Foundation) -> Serving {
        Serving {
            blob: self.blob,
            s3: self.s3,
            admin: foundation.admin_address.clone(),
            unserved: Vec::new(),
            certificate: foundation.authority(),
        }
    }

    /// Whether this node answers requests: it has renewed the claim lately, or the members of its
    /// logs say that no other node serves.
    pub(super) fn is_ready(&self, capacity: &ClusterCapacity) -> bool {
        self.claim.is_held() || capacity.has_leases()
    }

    /// Waits until the claim is lost.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Stops serving, and gives the claim back.
    pub(super) async fn stop(self) {
        self.roles.stop().await;
        self.claim.release().await;
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

async fn start_roles(
    config: &Config,
    foundation: &Foundation,
    joined: &Joined,
    (secrets, claim): (&Secrets, &Arc<Claim>),
) -> Result<(Roles, SocketAddr, Option<SocketAddr>), NodeError> {
    let (blob, s3) = bind_clients(config).await?;
    let (blob_address, s3_address) = (blob.address, s3.as_ref().map(|bound| bound.address));
    let mut all = Registry::default();
    let front = FrontEndSetup {
        blob,
        s3,
        dialects: dialects(config),
        tls: foundation.tls(),
        secrets,
        audit_log: &foundation.audit_log,
    };
    let base = Base {
        env: foundation.env.clone(),
        capacity: Arc::clone(&joined.capacity) as Arc<dyn Capacity>,
        coordinator: Arc::new(claim.guard()),
        cluster: joined.cluster.number,
        extent_ids: joined.serve_groups() as Arc<dyn ExtentIds>,
        leases: Some(Arc::clone(&joined.capacity) as Arc<dyn ReadLeases>),
    };
    let roles = Roles::start(config, base, front, metrics::of_roles(&mut all)).await?;
    foundation.admin.registry_of_roles.set(all).expect("set once");
    foundation.admin.control.set(roles.control.clone()).expect("set once");
    joined.repair_groups();
    Ok((roles, blob_address, s3_address))
}
