//! The disks of a node with its coordinator, opened as the program opens them.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use blockyard::capacity::CapacityConfig;
use blockyard::capacity::CapacityMetrics;
use blockyard::capacity::CatalogPlace;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::Env;
use blockyard::node::disks::DiskRecord;
use blockyard::node::disks::Given;
use blockyard::node::disks::State;
use blockyard::node::disks::read;
use blockyard::node::error::NodeError;
use blockyard::node::storage::CoordinatorPlace;
use blockyard::node::storage::Owner;
use blockyard::node::storage::Start;
use blockyard::node::storage::Storage;

use crate::rig::Machine;
use crate::seeds::Violation;

/// The simulated coordinator, instead of the file.
#[derive(Debug)]
struct Simulated<'a> {
    store: &'a SimulatedStore,
    env: &'a Env,
}

#[async_trait]
impl CoordinatorPlace for Simulated<'_> {
    fn path(&self) -> &Path {
        Path::new("/coordinator")
    }

    fn is_made(&self) -> bool {
        self.store.is_made()
    }

    async fn open(&self) -> Result<Arc<dyn Coordinator>, NodeError> {
        Ok(Arc::new(self.store.open(self.env)))
    }
}

/// Opens all disks of the machine, in its order.
pub(crate) async fn open(
    machine: &Machine,
    store: &SimulatedStore,
    metrics: CapacityMetrics,
) -> Result<Storage, NodeError> {
    let given = Given { data: &machine.paths, add: &[], without: &[] };
    let (disks, env, owner) = (machine.disks.clone(), machine.env.clone(), Owner::Alone);
    let start = Start { given, disks, env, config: config(machine), metrics, owner };
    start.open(&Simulated { store, env: &machine.env }).await
}

/// The reserve has room for a log of each of 16 partitions. Without it, deletes would fail on a
/// full disk.
fn config(machine: &Machine) -> CapacityConfig {
    let catalog = CatalogPlace::Simulated(machine.catalogs.clone());
    CapacityConfig { reserve_bytes: Some(2 << 20), catalog, ..CapacityConfig::small() }
}

/// Checks that a start without one of the disks is refused and names the disk.
pub(crate) async fn are_missed(machine: &Machine, store: &SimulatedStore) -> Result<(), Violation> {
    // Reading the list of a store that does not exist would create it.
    if !store.is_made() {
        return Ok(());
    }
    let known = read(&store.open(&machine.env)).await.map_err(|error| error.to_string())?;
    // A start needs at least one disk. No disk is known before the first complete start.
    let places = if known.len() > 1 { 0..known.len() } else { 0..0 };
    for left_out in places {
        let mut lacking = machine.turned();
        lacking.disks.remove(left_out);
        lacking.catalogs.remove(left_out);
        let path = lacking.paths.remove(left_out).display().to_string();
        match open(&lacking, store, CapacityMetrics::default()).await {
            Err(NodeError::DiskMissing { missing, .. }) if missing == path => {}
            other => return Err(format!("a start without {path} gave {other:?}")),
        }
    }
    Ok(())
}

/// Checks that the coordinator's list has the given disks, each with its own number.
pub(crate) async fn are_remembered(
    machine: &Machine,
    coordinator: &dyn Coordinator,
) -> Result<(), Violation> {
    let known = read(coordinator).await.map_err(|error| error.to_string())?;
    let mut numbers: Vec<_> = known.iter().filter_map(|disk| disk.number).collect();
    numbers.sort_unstable();
    let paths = machine.turned().paths;
    let as_given = known.iter().map(|DiskRecord { path, .. }| Path::new(path)).eq(&paths);
    let in_use = known.iter().all(|disk| disk.state == State::InUse);
    if as_given && in_use && numbers.into_iter().eq(0..paths.len()) {
        return Ok(());
    }
    Err(format!("given were {paths:?}, the coordinator has {known:?}"))
}
