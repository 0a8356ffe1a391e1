//! The layers between the disks and the front end, in the order of their start: the index
//! ([`IndexParts`]), and what a front end uses of it ([`FrontParts`]). In a cluster they may be in
//! different processes. The simulation starts its nodes with this code too.

use std::sync::Arc;

use crate::audit_log::AuditLog;
use crate::capacity::Capacity;
use crate::capacity::ExtentIds;
use crate::capacity::ReadLeases;
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::coordinator::counter;
use crate::env::Env;
use crate::env::Tasks;
use crate::frontend::write::WriteConfig;
use crate::frontend::write::WritePool;
use crate::index;
use crate::index::ClusterHost;
use crate::index::Containers;
use crate::index::InFlight;
use crate::index::IndexHost;
use crate::index::IndexServer;
use crate::index::LocalRequests;
use crate::index::Objects;
use crate::index::Router;
use crate::index::RunningRequests;
use crate::index::WriteNumbers;
use crate::index::WriterSessions;
use crate::manager;
use crate::manager::Manager;
use crate::manager::PolicyConfig;
use crate::reclaim::CoordinatorPartitions;
use crate::reclaim::Reclaim;
use crate::reclaim::ReclaimConfig;
use crate::reclaim::ReclaimMetrics;
use crate::reclaim::Setup;
use crate::telemetry::Registry;
use crate::types::ClusterNumber;
use crate::types::NodeId;
use crate::types::RoutingKey;

use super::error::NodeError;
use super::storage::Storage;

/// The parts on which the index is built.
#[derive(Clone, Debug)]
pub struct Base {
    /// Clock, randomness and tasks.
    pub env: Env,
    /// The extents of all disks, recovered.
    pub capacity: Arc<dyn Capacity>,
    /// Descriptors and counters.
    pub coordinator: Arc<dyn Coordinator>,
    /// The node of a cluster that this process is; zero if it is alone.
    pub node: NodeId,
    /// The number that new ids carry.
    pub cluster: ClusterNumber,
    /// Issues the ids of extents.
    pub extent_ids: Arc<dyn ExtentIds>,
    /// The read leases of logs; `None` if there can be no other process that serves the index.
    pub leases: Option<Arc<dyn ReadLeases>>,
    /// Which processes have ended that number their writes; `None` if none do.
    pub writers: Option<Arc<dyn WriterSessions>>,
}

impl Base {
    /// The base of a store that was made alone.
    #[must_use]
    pub fn alone(env: Env, capacity: Arc<dyn Capacity>, coordinator: Arc<dyn Coordinator>) -> Self {
        let cluster = ClusterNumber::ALONE;
        let ids = IdAllocator::new(Arc::clone(&coordinator), cluster, counter::EXTENT_IDS);
        let extent_ids = Arc::new(ids);
        let (leases, writers) = (None, None);
        let node = NodeId::new(0);
        Self { env, capacity, coordinator, node, cluster, extent_ids, leases, writers }
    }

    /// The base of a node alone, with this storage.
    #[must_use]
    pub fn of(storage: &Storage, env: &Env) -> Self {
        let capacity = Arc::clone(&storage.capacity) as Arc<dyn Capacity>;
        Self::alone(env.clone(), capacity, Arc::clone(&storage.coordinator))
    }

    /// Issues the ids of a counter.
    #[must_use]
    pub fn ids(&self, counter: &[u8]) -> Arc<IdAllocator> {
        Arc::new(IdAllocator::new(Arc::clone(&self.coordinator), self.cluster, counter))
    }
}

/// The host of the partitions, as other roles ask it.
fn host(index: &Arc<IndexServer>, is_alone: bool) -> Arc<dyn IndexHost> {
    let host = Arc::clone(index) as Arc<dyn IndexHost>;
    if is_alone { host } else { Arc::new(ClusterHost(host)) }
}

/// How the index is opened.
#[derive(Debug)]
pub struct IndexPlan<'a> {
    /// Limits.
    pub config: index::Config,
    /// The tasks of each index host.
    pub hosts: &'a [Tasks],
    /// The tasks that change the partition map; none: those of the first host.
    pub control: Option<Tasks>,
    /// The boundaries between the partitions of a new store; none: as in [`index::Config`].
    pub boundaries: Option<&'a [RoutingKey]>,
}

/// A recovered index, which this process serves.
#[derive(Debug)]
pub struct IndexParts {
    /// The parts on which it is built.
    pub base: Base,
    /// The partitions served here.
    pub index: Arc<IndexServer>,
    /// The same, as other roles ask them.
    pub host: Arc<dyn IndexHost>,
    metrics: index::Metrics,
}

impl IndexParts {
    /// Recovers the index.
    ///
    /// # Errors
    /// [`NodeError::Index`]; nothing was lost.
    pub async fn open(
        base: Base,
        plan: IndexPlan<'_>,
        registry: &mut Registry,
    ) -> Result<Self, NodeError> {
        let metrics = index::Metrics::default();
        metrics.register(registry);
        let hosts = plan.hosts.iter().map(|tasks| index::Dependencies {
            env: Env { tasks: tasks.clone(), ..base.env.clone() },
            capacity: Arc::clone(&base.capacity),
            coordinator: Arc::clone(&base.coordinator),
            node: base.node,
            cluster: base.cluster,
            extent_ids: Arc::clone(&base.extent_ids),
            machine: Arc::new(Objects),
            leases: base.leases.clone(),
            writers: base.writers.clone(),
            metrics: metrics.clone(),
        });
        let hosts = hosts.collect();
        let index = match plan.boundaries {
            Some(boundaries) => IndexServer::open_with(hosts, plan.config, boundaries).await?,
            None => IndexServer::open(hosts, plan.config).await?,
        };
        let index = match plan.control {
            Some(control) => index.controlled_by(control),
            None => index,
        };
        let index = Arc::new(index);
        let host = host(&index, base.leases.is_none());
        Ok(Self { base, index, host, metrics })
    }

    /// Starts the manager of the partition map, whose changes `audit_log` records. Without a policy
    /// it measures load and changes nothing.
    #[must_use]
    pub fn manager(
        &self,
        tasks: Tasks,
        policy: Option<PolicyConfig>,
        audit_log: AuditLog,
    ) -> Manager {
        let (index, env) = (Arc::clone(&self.index), Env { tasks, ..self.base.env.clone() });
        Manager::start(manager::Setup { index, env, policy, audit_log })
    }

    /// Starts reclaim.
    #[must_use]
    pub fn reclaim(
        &self,
        env: &Env,
        config: ReclaimConfig,
        Used { host, capacity, requests, audits }: Used,
        registry: &mut Registry,
    ) -> Arc<Reclaim> {
        let setup = Setup {
            host,
            node: self.base.node,
            partitions: Arc::new(CoordinatorPartitions(Arc::clone(&self.base.coordinator))),
            capacity,
            requests,
            coordinator: Arc::clone(&self.base.coordinator),
            env: env.clone(),
            config,
            metrics: ReclaimMetrics::registered(registry),
            index: self.metrics.clone(),
        };
        Reclaim::start(setup, audits)
    }
}

/// What reclaim uses.
#[derive(Debug)]
pub struct Used {
    /// The partitions of all processes.
    pub host: Arc<dyn IndexHost>,
    /// What it frees through: the extents, or a wrapper of them.
    pub capacity: Arc<dyn Capacity>,
    /// It frees what none of these requests needs any more.
    pub requests: Arc<dyn RunningRequests>,
    /// Whether it makes audits too.
    pub audits: bool,
}

/// The running requests of a front end, and those of all front ends.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Where the front end notes its own.
    pub inflight: InFlight,
    /// Those of all front ends, as reclaim and backups ask about them.
    pub all: Arc<dyn RunningRequests>,
    /// Numbers the writes of the front end, if other processes may carry them out.
    pub numbers: Option<Arc<WriteNumbers>>,
}

impl Requests {
    /// Those of the only front end.
    #[must_use]
    pub fn of_one(env: &Env) -> Self {
        let inflight = InFlight::default();
        let all = LocalRequests::shared(inflight.clone(), Arc::clone(&env.clock));
        Self { inflight, all, numbers: None }
    }
}

/// What a front end uses of the layers below.
#[derive(Clone, Debug)]
pub struct FrontParts {
    /// The parts on which it is built.
    pub base: Base,
    /// Finds the partition of a key.
    pub router: Arc<Router>,
    /// The running requests.
    pub requests: Requests,
}

impl FrontParts {
    /// The parts of a front end that asks this host. The router works with the clock and the tasks
    /// of `env`.
    ///
    /// # Errors
    /// [`NodeError::Index`] if there is no partition map.
    pub async fn new(
        base: Base,
        host: Arc<dyn IndexHost>,
        requests: Requests,
        env: &Env,
    ) -> Result<Self, NodeError> {
        let router = Router::new(host, Arc::clone(&base.coordinator), env.clone()).await?;
        let router = router.numbering(requests.numbers.clone());
        Ok(Self { base, router: Arc::new(router), requests })
    }

    /// Deletes containers that must be empty.
    #[must_use]
    pub fn containers(&self) -> Containers {
        Containers {
            router: Arc::clone(&self.router),
            inflight: self.requests.inflight.clone(),
            requests: Arc::clone(&self.requests.all),
            clock: Arc::clone(&self.base.env.clock),
        }
    }

    /// Starts the pool that stores bodies.
    #[must_use]
    pub fn write_pool(&self, env: &Env, config: WriteConfig) -> WritePool {
        let capacity = Arc::clone(&self.base.capacity);
        let ids = Arc::clone(&self.base.extent_ids);
        WritePool::start(config, capacity, ids, self.requests.inflight.clone(), env.clone())
    }
}

/// An index and the only front end that uses it, in one process.
#[derive(Debug)]
pub struct Assembly {
    /// The index.
    pub index: IndexParts,
    /// What the front end uses.
    pub front: FrontParts,
}

impl Assembly {
    /// Recovers the index. The router works with the clock and the tasks of `front`.
    ///
    /// # Errors
    /// [`NodeError::Index`]; nothing was lost.
    pub async fn open(
        base: Base,
        plan: IndexPlan<'_>,
        front: &Env,
        registry: &mut Registry,
    ) -> Result<Self, NodeError> {
        let requests = Requests::of_one(&base.env);
        let index = IndexParts::open(base.clone(), plan, registry).await?;
        let front = FrontParts::new(base, Arc::clone(&index.host), requests, front).await?;
        Ok(Self { index, front })
    }
}
