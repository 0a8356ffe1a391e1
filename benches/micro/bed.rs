//! The setup of the benches of roles: a runtime, a temporary folder, a capacity node on it.

use std::sync::Arc;

use blockyard::capacity::CapacityConfig;
use blockyard::capacity::CapacityMetrics;
use blockyard::capacity::CapacityNode;
use blockyard::env::Env;
use blockyard::env::OsClock;
use blockyard::env::OsDisk;
use blockyard::env::OsRand;
use blockyard::env::Tasks;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A capacity node on a new folder of the machine's disk.
pub(crate) struct Bed {
    /// The runtime of the measured calls.
    pub(crate) runtime: Runtime,
    /// Clock, randomness and tasks.
    pub(crate) env: Env,
    /// The node.
    pub(crate) node: Arc<CapacityNode>,
    /// The folder, which is removed with this value.
    pub(crate) folder: TempDir,
}

impl Bed {
    /// An empty node with the product's settings.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = Runtime::new().expect("a runtime");
        let tasks = Tasks::new();
        let disk = OsDisk::open(folder.path(), tasks.clone()).expect("the disk");
        let env = Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks };
        let node = runtime.block_on(async {
            let (config, metrics) = (CapacityConfig::default(), CapacityMetrics::default());
            CapacityNode::open(vec![disk], env.clone(), config, metrics).await.expect("a node")
        });
        Self { runtime, env, node, folder }
    }
}
