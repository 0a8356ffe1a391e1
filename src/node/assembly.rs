//! The layers between the disks and the front end, in the order of their start. The simulation
//! starts its nodes with this code too.

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
    /// The number that new ids carry.
    pub cluster: ClusterNumber,
    /// Issues the ids of extents.
    pub extent_ids: Arc<dyn ExtentIds>,
    /// The read leases of logs; `None` if there can be no other process that serves the index.
    pub leases: Option<Arc<dyn ReadLeases>>,
}

impl Base {
    /// The base of a store that was made alone.
    #[must_use]
    pub fn alone(env: Env, capacity: Arc<dyn Capacity>, coordinator: Arc<dyn Coordinator>) -> Self {
        let cluster = ClusterNumber::ALONE;
        let ids = IdAllocator::new(Arc::clone(&coordinator), cluster, counter::EXTENT_IDS);
        Self { env, capacity, coordinator, cluster, extent_ids: Arc::new(ids), leases: None }
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

/// A recovered index, and the parts with which other roles use it.
#[derive(Debug)]
pub struct Assembly {
    /// The parts on which it is built.
    pub base: Base,
    /// The partitions served here.
    pub index: Arc<IndexServer>,
    /// The same, as other roles ask them.
    host: Arc<dyn IndexHost>,
    /// Finds the partition of a key.
    pub router: Arc<Router>,
    /// Where the front end notes its running requests.
    pub inflight: InFlight,
    metrics: index::Metrics,
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
        let metrics = index::Metrics::default();
        metrics.register(registry);
        let hosts = plan.hosts.iter().map(|tasks| index::Dependencies {
            env: Env { tasks: tasks.clone(), ..base.env.clone() },
            capacity: Arc::clone(&base.capacity),
            coordinator: Arc::clone(&base.coordinator),
            cluster: base.cluster,
            extent_ids: Arc::clone(&base.extent_ids),
            machine: Arc::new(Objects),
            leases: base.leases.clone(),
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
        let router = Router::new(Arc::clone(&host), Arc::clone(&base.coordinator), front.clone());
        let (router, inflight) = (Arc::new(router.await?), InFlight::default());
        Ok(Self { base, index, host, router, inflight, metrics })
    }

    /// The running requests, as reclaim and backups ask about them.
    #[must_use]
    pub fn requests(&self) -> Arc<dyn RunningRequests> {
        LocalRequests::shared(self.inflight.clone(), Arc::clone(&self.base.env.clock))
    }

    /// Deletes containers that must be empty.
    #[must_use]
    pub fn containers(&self) -> Containers {
        Containers {
            router: Arc::clone(&self.router),
            inflight: self.inflight.clone(),
            requests: self.requests(),
            clock: Arc::clone(&self.base.env.clock),
        }
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

    /// Starts the pool that stores bodies.
    #[must_use]
    pub fn write_pool(&self, env: &Env, config: WriteConfig) -> WritePool {
        let capacity = Arc::clone(&self.base.capacity);
        let ids = Arc::clone(&self.base.extent_ids);
        WritePool::start(config, capacity, ids, self.inflight.clone(), env.clone())
    }

    /// Starts reclaim. It frees through `capacity`: that of the node, or a wrapper of it.
    #[must_use]
    pub fn reclaim(
        &self,
        env: &Env,
        config: ReclaimConfig,
        capacity: Arc<dyn Capacity>,
        registry: &mut Registry,
    ) -> Arc<Reclaim> {
        Reclaim::start(Setup {
            host: Arc::clone(&self.host),
            partitions: Arc::new(CoordinatorPartitions(Arc::clone(&self.base.coordinator))),
            capacity,
            requests: self.requests(),
            coordinator: Arc::clone(&self.base.coordinator),
            env: env.clone(),
            config,
            metrics: ReclaimMetrics::registered(registry),
            index: self.metrics.clone(),
        })
    }
}
