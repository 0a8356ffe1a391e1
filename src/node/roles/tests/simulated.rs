//! A node in simulated time.

use super::*;
use crate::capacity::CatalogPlace;
use crate::capacity::SimulatedCatalog;
use crate::coordinator::SimulatedStore;
use crate::env::SeededRand;
use crate::env::SimDisk;
use crate::env::clock::SimClock;
use crate::node::testing::SimulatedPlace;
use crate::telemetry;
use crate::telemetry::Exposition;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const KIB: usize = 1 << 10;
/// Of the blob that is read: more than a connection buffers.
pub(super) const BYTES: usize = 2 << 20;

/// A node with one blob of [`BYTES`], whose time is simulated.
pub(super) struct Simulated {
    pub(super) env: Env,
    storage: Storage,
    roles: Roles,
    registry: Registry,
    pub(super) blob: PipeConnect,
    pub(super) signature: String,
}

impl Simulated {
    pub(super) async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let data = [PathBuf::from("/disk")];
        let mut config = testing::config(&data[0]);
        change(&mut config);
        let start = Start {
            given: Given { data: &data, add: &[], without: &[] },
            disks: vec![SimDisk::new(1, 64 << 20).disk()],
            env: env.clone(),
            config: CapacityConfig {
                catalog: CatalogPlace::Simulated(vec![SimulatedCatalog::default()]),
                ..CapacityConfig::small()
            },
            metrics: CapacityMetrics::default(),
            owner: Owner::Alone,
        };
        let place = SimulatedPlace(SimulatedStore::new(), env.clone());
        let storage = start.open(&place).await.unwrap();
        let secrets = Secrets::known(&env.rand);
        let (listener, blob) = PipeListen::new();
        let address = "127.0.0.1:10000".parse().unwrap();
        let bound = Bound { listener: Box::new(listener), address };
        let mut registry = Registry::default();
        let audit_log = AuditLog::default();
        let front = FrontEndSetup {
            blob: bound,
            s3: None,
            dialects: Dialects::default(),
            tls: None,
            secrets: &secrets,
            audit_log: &audit_log,
        };
        let roles =
            Roles::start(&config, Base::of(&storage, &env), front, &mut registry).await.unwrap();
        let node = Self { env, storage, roles, registry, blob, signature: signature() };
        let body = "x".repeat(BYTES);
        for (path, body) in [("photos?restype=container", ""), ("photos/large", &body)] {
            let (status, text) = node.ask("PUT", path, body).await;
            assert_eq!(status, 201, "{text}");
        }
        // Not before: what a node does at its start takes threads of its own.
        tokio::time::pause();
        node
    }

    pub(super) async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        ask(&self.blob, &signed(method, path, &self.signature), BLOCK_BLOB, body).await
    }

    /// A counter with a reason.
    pub(super) fn counter(&self, name: &str, reason: &str) -> usize {
        let text = telemetry::render(&self.registry, Exposition::Classic).unwrap();
        let label = format!("{name}_total{{reason=\"{reason}\"}} ");
        let value = text.lines().find_map(|line| line.split_once(&label)).unwrap().1;
        value.parse().unwrap()
    }

    pub(super) async fn stop(self) {
        self.roles.stop().await;
        self.storage.capacity.shutdown().await;
        self.env.tasks.shutdown().await;
    }
}
