//! A store as a node opens it, without the front end's listener.

use std::path::Path;
use std::sync::Arc;

use blockyard::capacity::Capacity;
use blockyard::capacity::CapacityMetrics;
use blockyard::coordinator::IdAllocator;
use blockyard::coordinator::counter::EXTENT_IDS;
use blockyard::env::Env;
use blockyard::env::OsClock;
use blockyard::env::OsRand;
use blockyard::env::Tasks;
use blockyard::index;
use blockyard::index::Dependencies;
use blockyard::index::IndexHost;
use blockyard::index::IndexServer;
use blockyard::index::Objects;
use blockyard::index::Router;
use blockyard::node::config::Config;
use blockyard::node::config::Settings;
use blockyard::node::storage::Owner;
use blockyard::node::storage::Storage;
use blockyard::types::ClusterNumber;
use blockyard::types::NodeId;

/// The open store.
pub(crate) struct Bed {
    /// Clock, randomness and tasks.
    pub(crate) env: Env,
    /// Disk and coordinator.
    pub(crate) storage: Storage,
    /// The partitions.
    pub(crate) index: Arc<IndexServer>,
    /// The router of requests to them.
    pub(crate) router: Arc<Router>,
}

impl Bed {
    /// Opens the store in `folder`, which may be new, with default settings.
    pub(crate) async fn open(folder: &Path) -> Result<Self, String> {
        Self::open_with(folder, index::Config::default()).await
    }

    /// As [`Self::open`], with other limits of the index.
    pub(crate) async fn open_with(folder: &Path, limits: index::Config) -> Result<Self, String> {
        let settings = Settings { data: Some(vec![folder.to_owned()]), ..Settings::default() };
        let config = Config::from_settings(settings).map_err(|e| e.to_string())?;
        let env =
            Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
        let opened = Storage::open(&config, &env, CapacityMetrics::default(), Owner::Alone).await;
        let storage = opened.map_err(|e| e.to_string())?;
        let coordinator = Arc::clone(&storage.coordinator);
        let alone = ClusterNumber::ALONE;
        let deps = Dependencies {
            node: NodeId::new(0),
            env: env.clone(),
            capacity: Arc::clone(&storage.capacity) as Arc<dyn Capacity>,
            coordinator: Arc::clone(&coordinator),
            cluster: alone,
            extent_ids: Arc::new(IdAllocator::new(Arc::clone(&coordinator), alone, EXTENT_IDS)),
            machine: Arc::new(Objects),
            leases: None,
            writers: None,
            metrics: index::Metrics::default(),
        };
        let opened = IndexServer::open(vec![deps], limits).await;
        let index = Arc::new(opened.map_err(|e| e.to_string())?);
        let host = Arc::clone(&index) as Arc<dyn IndexHost>;
        let router = Router::new(host, coordinator, env.clone()).await;
        let router = Arc::new(router.map_err(|e| e.to_string())?);
        Ok(Self { env, storage, index, router })
    }

    /// Stops as a node does.
    pub(crate) async fn close(self) {
        self.index.shutdown().await;
        self.storage.capacity.shutdown().await;
        self.env.tasks.shutdown().await;
    }
}
