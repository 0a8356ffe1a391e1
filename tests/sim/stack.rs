//! A node without its listeners, started as `serve` starts one: disks, coordinator, capacity,
//! index, write pool, router and reclaim, with small limits so that logs roll, memtables flush and
//! runs merge within a history.

use std::sync::Arc;
use std::time::Duration;

use blockyard::capacity::Capacity;
use blockyard::capacity::CapacityMetrics;
use blockyard::capacity::CapacityNode;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::Env;
use blockyard::frontend::write::WriteConfig;
use blockyard::frontend::write::WritePool;
use blockyard::index::Config;
use blockyard::index::Containers;
use blockyard::index::InFlight;
use blockyard::index::IndexServer;
use blockyard::index::LocalRequests;
use blockyard::index::Router;
use blockyard::index::WriteNumbers;
use blockyard::index::inflight::REQUESTS_SERVICE;
use blockyard::index::inflight::RequestsService;
use blockyard::node::assembly::Assembly;
use blockyard::node::assembly::Base;
use blockyard::node::assembly::FrontParts;
use blockyard::node::assembly::IndexPlan;
use blockyard::node::assembly::Requests;
use blockyard::node::assembly::Used;
use blockyard::node::storage::Storage;
use blockyard::reclaim::Reclaim;
use blockyard::reclaim::ReclaimConfig;
use blockyard::telemetry::Registry;
use blockyard::types::PartitionId;
use blockyard::types::RoutingKey;

use crate::disks;
use crate::lives;
use crate::lives::IndexLives;
use crate::nodes::CapacityNodes;
use crate::nodes::FRONT;
use crate::nodes::Process;
use crate::rig::Machine;
use crate::rig::MachineKind;
use crate::watch::Watch;
use crate::watch::Watched;

/// The number of hosts. With two of them partitions can be moved.
pub(crate) const HOSTS: usize = 2;

/// The parts of a node that its clients use.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) env: Env,
    pub(crate) capacity: Arc<dyn Capacity>,
    pub(crate) coordinator: Arc<dyn Coordinator>,
    index: Index,
    pub(crate) router: Arc<Router>,
    pub(crate) containers: Containers,
    pub(crate) pool: WritePool,
    pub(crate) inflight: InFlight,
    pub(crate) metrics: Registry,
    /// The reads in progress, whose bytes reclaim must not free.
    pub(crate) watch: Watch,
    /// The place of the first disk.
    pub(crate) first_disk: usize,
    /// Where the extents are.
    pub(crate) disks: Disks,
}

/// Where the index is.
#[derive(Debug)]
enum Index {
    /// In the process of the front end.
    Here { host: Arc<IndexServer>, _reclaim: Arc<Reclaim> },
    /// In other processes.
    There(Arc<IndexLives>),
}

/// Where the extents of a stack are.
#[derive(Debug)]
pub(crate) enum Disks {
    /// On the disks of the node.
    Here(Arc<CapacityNode>),
    /// On the nodes of a cluster.
    Nodes(Arc<CapacityNodes>),
}

impl Stack {
    /// Starts the node as the program does: capacity, then index, then what uses them.
    pub(crate) async fn open(
        machine: &Machine,
        store: &SimulatedStore,
        boundaries: &[RoutingKey],
    ) -> Result<Self, String> {
        Self::open_with(machine, store, boundaries, reclaim_config()).await
    }

    /// As [`Self::open`], with reclaim at another pace.
    pub(crate) async fn open_with(
        machine: &Machine,
        store: &SimulatedStore,
        boundaries: &[RoutingKey],
        reclaim: ReclaimConfig,
    ) -> Result<Self, String> {
        let env = machine.env.clone();
        let mut registry = Registry::default();
        let metrics = CapacityMetrics::registered(&mut registry);
        if machine.kind == MachineKind::FrontEnd {
            return Self::open_front(machine, store, boundaries, reclaim).await;
        }
        let (disks, base) = if machine.kind == MachineKind::Cluster {
            let coordinator = Arc::new(store.open(&env));
            let nodes = CapacityNodes::start(machine, coordinator).await?;
            let base = nodes.process(FRONT, &env).await?.base;
            (Disks::Nodes(Arc::new(nodes)), base)
        } else {
            let storage = disks::open(&machine.turned(), store, metrics).await;
            let storage = storage.map_err(|error| format!("the disks do not open: {error}"))?;
            let Storage { capacity: node, coordinator } = storage;
            let capacity = Arc::clone(&node) as Arc<dyn Capacity>;
            (Disks::Here(node), Base::alone(env.clone(), capacity, coordinator))
        };
        let (capacity, coordinator) = (Arc::clone(&base.capacity), Arc::clone(&base.coordinator));
        let plan = IndexPlan {
            config: index_config(),
            hosts: &vec![env.tasks.clone(); HOSTS],
            control: None,
            boundaries: Some(boundaries),
        };
        let assembly = Assembly::open(base, plan, &env, &mut registry).await;
        let assembly = assembly.map_err(|error| format!("the index does not open: {error}"))?;
        let pool = assembly.front.write_pool(&env, write_config());
        let watch = Watch::default();
        let watched = Arc::clone(&capacity);
        let watched = Arc::new(Watched { capacity: watched, watch: watch.clone() });
        let containers = assembly.front.containers();
        let requests = Arc::clone(&assembly.front.requests.all);
        let host = Arc::clone(&assembly.index.host);
        let used = Used { host, capacity: watched, requests, audits: true };
        let reclaim = assembly.index.reclaim(&env, reclaim, used, &mut registry);
        Ok(Self {
            env,
            capacity,
            coordinator,
            index: Index::Here { host: assembly.index.index, _reclaim: reclaim },
            router: assembly.front.router,
            containers,
            pool,
            inflight: assembly.front.requests.inflight,
            metrics: registry,
            watch,
            first_disk: machine.first,
            disks,
        })
    }

    /// Starts a front end, and the index in another process.
    async fn open_front(
        machine: &Machine,
        store: &SimulatedStore,
        boundaries: &[RoutingKey],
        reclaim: ReclaimConfig,
    ) -> Result<Self, String> {
        let env = machine.env.clone();
        let coordinator: Arc<dyn Coordinator> = Arc::new(store.open(&env));
        let nodes = Arc::new(CapacityNodes::start(machine, Arc::clone(&coordinator)).await?);
        let Process { base, caller, .. } = nodes.process(FRONT, &env).await?;
        let (inflight, watch) = (InFlight::default(), Watch::default());
        let own = LocalRequests::new(inflight.clone(), Arc::clone(&env.clock));
        let incarnation = caller.node.incarnation;
        let asked = RequestsService { requests: own, incarnation };
        nodes.serve(&caller, (REQUESTS_SERVICE, Arc::new(asked)))?;
        let lives = IndexLives::start(lives::Plan {
            machine: machine.clone(),
            nodes: Arc::clone(&nodes),
            coordinator: Arc::clone(&coordinator),
            borders: boundaries.to_vec(),
            reclaim,
            watch: watch.clone(),
            front: caller.clone(),
        });
        let lives = lives.await?;
        let index = lives.index(&env).await?;
        let all = LocalRequests::shared(inflight.clone(), Arc::clone(&env.clock));
        let numbers = Some(Arc::new(WriteNumbers::new(caller.node)));
        let requests = Requests { inflight: inflight.clone(), all, numbers };
        let capacity = Arc::clone(&base.capacity);
        let parts = FrontParts::new(base, index, requests, &env).await;
        let parts = parts.map_err(|error| format!("the front end does not start: {error}"))?;
        let (pool, containers) = (parts.write_pool(&env, write_config()), parts.containers());
        Ok(Self {
            env,
            capacity,
            coordinator,
            index: Index::There(lives),
            router: parts.router,
            containers,
            pool,
            inflight,
            metrics: Registry::default(),
            watch,
            first_disk: machine.first,
            disks: Disks::Nodes(nodes),
        })
    }

    /// The partitions of each process that serves some, or did so last.
    pub(crate) fn hosts(&self) -> Vec<Arc<IndexServer>> {
        match &self.index {
            Index::Here { host, .. } => vec![Arc::clone(host)],
            Index::There(lives) => lives.all(),
        }
    }

    /// The partitions of the process of the front end.
    pub(crate) fn host(&self) -> Arc<IndexServer> {
        self.hosts().pop().unwrap()
    }

    /// How many partitions there are, as the front end knows.
    pub(crate) fn partitions(&self) -> usize {
        self.router.map().partitions().len()
    }

    /// Changes a partition by the process that serves it. `None` if that is killed meanwhile.
    pub(crate) async fn change_map<F: Future>(
        &self,
        id: PartitionId,
        change: impl FnOnce(Arc<IndexServer>) -> F,
    ) -> Option<F::Output> {
        match &self.index {
            Index::Here { host, .. } => Some(change(Arc::clone(host)).await),
            Index::There(lives) => {
                let map = self.router.map();
                let one = map.partitions().iter().find(|one| one.id == id)?;
                let (host, mut alive) = lives.of(one.host.node())?;
                tokio::select! {
                    biased;
                    done = change(host) => Some(done),
                    _ = alive.changed() => None,
                }
            }
        }
    }

    /// The lives of the processes with the index, if it has some of its own.
    pub(crate) fn lives(&self) -> Option<&IndexLives> {
        match &self.index {
            Index::Here { .. } => None,
            Index::There(lives) => Some(lives),
        }
    }

    /// Stops the parts in order, the highest layer first.
    pub(crate) async fn shutdown(self) {
        let Self { env, disks, index, pool, .. } = self;
        drop(pool);
        match index {
            Index::Here { host, .. } => host.shutdown().await,
            Index::There(lives) => lives.shutdown().await,
        }
        match disks {
            Disks::Here(node) => node.shutdown().await,
            Disks::Nodes(nodes) => nodes.shutdown().await,
        }
        env.tasks.shutdown().await;
    }

    /// Whether no disk is out of service.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.disks {
            Disks::Here(node) => node.is_whole(),
            // Their disks do not fail.
            Disks::Nodes(_) => true,
        }
    }

    /// Whether a disk takes no writes.
    pub(crate) fn is_poisoned(&self) -> bool {
        match &self.disks {
            Disks::Here(node) => node.disks().iter().any(|disk| disk.poisoned),
            Disks::Nodes(_) => false,
        }
    }

    /// The nodes of a cluster, if it is one.
    pub(crate) fn nodes(&self) -> Option<&CapacityNodes> {
        match &self.disks {
            Disks::Here(_) => None,
            Disks::Nodes(nodes) => Some(nodes),
        }
    }
}

/// The patience of queues. It is shorter than some stalls of disks, so that writes are refused
/// because of stalls.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn index_config() -> Config {
    Config {
        queue_patience: PATIENCE,
        memtable_bytes_max: 64 << 10,
        block_cache_bytes: 128 << 10,
        log_extent_bytes: 40 << 10,
        ..Config::default()
    }
}

fn write_config() -> WriteConfig {
    WriteConfig {
        inline_bytes_max: 1 << 10,
        memory_bytes_max: 48 << 10,
        lanes: 2,
        extent_bytes_max: 400 << 10,
        queue_patience: PATIENCE,
        ..WriteConfig::default()
    }
}

/// The pace of reclaim: passes and audits happen in every session, and some rounds of audits take
/// several walks.
pub(crate) fn reclaim_config() -> ReclaimConfig {
    ReclaimConfig {
        interval: Duration::from_millis(40),
        interval_max: Duration::from_millis(200),
        grace: Duration::from_millis(30),
        audit_delay: Duration::from_millis(30),
        audit_every: Duration::from_millis(60),
        audit_wait: Duration::from_millis(5),
        audit_read_max: Duration::from_millis(100),
        audit_blobs: 3,
        audit_locations: 2,
        audit_ranges_max: 40,
        open_waste_min: 32 << 10,
        audit_dropped_min: 8 << 10,
        ..ReclaimConfig::default()
    }
}
