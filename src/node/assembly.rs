//! The layers between the disks and the front end, in the order of their start. The simulation
//! starts its nodes with this code too.

use std::sync::Arc;

use crate::audit_log::AuditLog;
use crate::capacity::Capacity;
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::coordinator::counter;
use crate::env::Env;
use crate::env::Tasks;
use crate::frontend::write::WriteConfig;
use crate::frontend::write::WritePool;
use crate::index;
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
}

impl Base {
    /// The base of a store that was made alone.
    #[must_use]
    pub fn alone(env: Env, capacity: Arc<dyn Capacity>, coordinator: Arc<dyn Coordinator>) -> Self {
        Self { env, capacity, coordinator, cluster: ClusterNumber::ALONE }
    }

    /// Issues the ids of a counter.
    #[must_use]
    pub fn ids(&self, counter: &[u8]) -> Arc<IdAllocator> {
        Arc::new(IdAllocator::new(Arc::clone(&self.coordinator), self.cluster, counter))
    }
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
    /// Finds the partition of a key.
    pub router: Arc<Router>,
    /// Where the front end notes its running requests.
    pub inflight: InFlight,
    extent_ids: Arc<IdAllocator>,
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
        let extent_ids = base.ids(counter::EXTENT_IDS);
        let metrics = index::Metrics::default();
        metrics.register(registry);
        let hosts = plan.hosts.iter().map(|tasks| index::Dependencies {
            env: Env { tasks: tasks.clone(), ..base.env.clone() },
            capacity: Arc::clone(&base.capacity),
            coordinator: Arc::clone(&base.coordinator),
            cluster: base.cluster,
            extent_ids: Arc::clone(&extent_ids) as Arc<dyn index::ExtentIds>,
            machine: Arc::new(Objects),
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
        let hosted = Arc::clone(&index) as Arc<dyn IndexHost>;
        let router = Router::new(hosted, Arc::clone(&base.coordinator), front.clone()).await?;
        Ok(Self {
            base,
            index,
            router: Arc::new(router),
            inflight: InFlight::default(),
            extent_ids,
            metrics,
        })
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
        let ids = Arc::clone(&self.extent_ids);
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
            host: Arc::clone(&self.index) as Arc<dyn IndexHost>,
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
