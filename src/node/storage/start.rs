//! A start from the disks up: the disks are compared with the coordinator's list and recovered, and
//! the list is stored again. The simulation starts its nodes with this code too.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CapacityNode;
use crate::capacity::OpenError;
use crate::capacity::disk_number;
use crate::coordinator::Coordinator;
use crate::env::Disk;
use crate::env::Env;
use crate::node::disks::Given;
use crate::node::disks::list;
use crate::node::error::NodeError;

use super::durable::Storage;
use super::durable::open_failed;
use super::owner;
use super::owner::Owner;

#[cfg(test)]
mod tests;

/// The place where a node keeps its coordinator.
#[async_trait]
pub trait CoordinatorPlace: Debug + Send + Sync {
    /// Its path, for messages.
    fn path(&self) -> &Path;

    /// Whether it exists. If not, the store is new or has lost it.
    fn is_made(&self) -> bool;

    /// Opens it, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`NodeError::Coordinator`].
    async fn open(&self) -> Result<Arc<dyn Coordinator>, NodeError>;
}

/// The input of a start.
#[derive(Debug)]
pub struct Start<'a> {
    /// The directories, and which of them may be new.
    pub given: Given<'a>,
    /// The disks in these directories, in the same order.
    pub disks: Vec<Arc<dyn Disk>>,
    /// Clock, randomness and tasks.
    pub env: Env,
    /// The configuration of the disks. Its catalogs are in the order of the disks.
    pub config: CapacityConfig,
    /// The metrics of the disks.
    pub metrics: CapacityMetrics,
    /// Whose store it is.
    pub owner: Owner,
}

impl Start<'_> {
    /// Checks that the disks are those of the store, recovers them, and stores their list. A disk
    /// of the store that cannot be read or recovered is out of service.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost. As [`list::check`], before anything is changed;
    /// [`NodeError::CoordinatorMissing`] for disks with extents and no coordinator;
    /// [`NodeError::FirstDisk`] when the first one cannot be read; [`NodeError::OfCluster`],
    /// [`NodeError::OfSingleNode`], [`NodeError::OfOtherCluster`] for a store of somebody else.
    pub async fn open(self, place: &dyn CoordinatorPlace) -> Result<Storage, NodeError> {
        let Self { given, disks, env, mut config, metrics, owner } = self;
        let failed = |error| open_failed(given.data, error);
        let found = if place.is_made() { Some(place.open().await?) } else { None };
        let is_of_cluster = owner != Owner::Alone;
        if let Some(own) = found.as_deref().filter(|_| is_of_cluster) {
            owner::check(owner, own, place.path()).await?;
        }
        let mut numbers = Vec::new();
        let mut unreadable = Vec::new();
        for (at, disk) in disks.iter().enumerate() {
            numbers.push(match disk_number(disk, at).await {
                Err(error) if error.is_unreadable() => {
                    unreadable.push(Unreadable { at, error });
                    None
                }
                number => number.map_err(failed)?,
            });
        }
        with_listed(found.as_deref(), given, &mut numbers, unreadable).await?;
        if let Some(coordinator) = &found {
            let absent = list::check(coordinator.as_ref(), given, &numbers, is_of_cluster).await?;
            (config.absent, config.without) = (absent.numbers, absent.without);
            config.numbers.clone_from(&numbers);
        }
        let opened = CapacityNode::open(disks.clone(), env, config, metrics).await;
        let capacity = opened.map_err(failed)?;
        if found.is_none() && !capacity.extents().await.is_empty() {
            capacity.shutdown().await;
            return Err(NodeError::CoordinatorMissing { path: place.path().to_owned() });
        }
        // New disks have a number now. The others are not read again: a disk that has failed since
        // then is out of service, and still belongs to the store.
        for (at, disk) in disks.iter().enumerate() {
            if let Some(number) = numbers.get_mut(at).filter(|number| number.is_none()) {
                *number = disk_number(disk, at).await.map_err(failed)?;
            }
        }
        let coordinator = match found {
            Some(found) => found,
            None => place.open().await?,
        };
        owner::mark(owner, coordinator.as_ref()).await?;
        list::remember(coordinator.as_ref(), given, &numbers).await?;
        report_missing(&capacity, given, &numbers);
        Ok(Storage { capacity, coordinator })
    }
}

/// A disk whose number cannot be read.
struct Unreadable {
    /// Its place in the list of directories.
    at: usize,
    error: OpenError,
}

/// Gives the disks that cannot be read the numbers of the coordinator's list: they belong to the
/// store, and are neither new nor missing.
async fn with_listed(
    coordinator: Option<&dyn Coordinator>,
    given: Given<'_>,
    numbers: &mut [Option<usize>],
    unreadable: Vec<Unreadable>,
) -> Result<(), NodeError> {
    for Unreadable { at, error } in unreadable {
        let (Some(coordinator), Some(path)) = (coordinator, given.data.get(at)) else {
            return Err(open_failed(given.data, error));
        };
        if at == 0 {
            return Err(NodeError::FirstDisk { path: path.clone(), error });
        }
        let listed = list::number_at(coordinator, path).await?;
        // The disk that was listed there may be given at another path now.
        if listed.is_none() || numbers.contains(&listed) {
            return Err(open_failed(given.data, error));
        }
        if let Some(number) = numbers.get_mut(at) {
            *number = listed;
        }
    }
    Ok(())
}

/// Logs which directories the node serves without.
fn report_missing(capacity: &CapacityNode, given: Given<'_>, numbers: &list::Numbers) {
    let serving = capacity.disks();
    for (path, number) in given.data.iter().zip(numbers) {
        if serving.iter().all(|info| Some(info.number) != *number) {
            tracing::error!(
                path = %path.display(),
                disk = *number,
                "the disk is out of service, and what lies on it cannot be read: repair the disk \
                 and restart the node"
            );
        }
    }
}
