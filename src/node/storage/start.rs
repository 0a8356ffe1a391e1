//! A start from the disks up: what the coordinator remembers of them, their recovery, and the list
//! that it remembers from then on. The simulation starts its nodes by this too, so that what it
//! finds out holds for the program.

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

use super::parts::Storage;
use super::parts::open_failed;

#[cfg(test)]
mod tests;

/// Where the coordinator of a node is kept.
#[async_trait]
pub trait CoordinatorPlace: Debug + Send + Sync {
    /// Its name, for messages.
    fn path(&self) -> &Path;

    /// Whether there is one. If not, the store is new, or has lost it.
    fn is_made(&self) -> bool;

    /// Opens it; makes it when there is none.
    ///
    /// # Errors
    /// [`NodeError::Coordinator`].
    async fn open(&self) -> Result<Arc<dyn Coordinator>, NodeError>;
}

/// What a start begins with.
#[derive(Debug)]
pub struct Start<'a> {
    /// The directories, and which of them may be new.
    pub given: Given<'a>,
    /// The disks in these directories, in the same order.
    pub disks: Vec<Arc<dyn Disk>>,
    /// The world.
    pub env: Env,
    /// What the disks are opened with. The catalogs are in the order of the disks.
    pub config: CapacityConfig,
    /// Counts what the disks do.
    pub metrics: CapacityMetrics,
}

impl Start<'_> {
    /// Recovers the disks once they are found to be those of the store, and remembers them. A disk
    /// of the store that cannot be read or recovered is out of service.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost. As [`list::check`], before anything is changed;
    /// [`NodeError::CoordinatorMissing`] for disks with extents and no coordinator;
    /// [`NodeError::FirstDisk`] when the first one cannot be read.
    pub async fn open(self, place: &dyn CoordinatorPlace) -> Result<Storage, NodeError> {
        let Self { given, disks, env, mut config, metrics } = self;
        let failed = |error| open_failed(given.data, error);
        let found = if place.is_made() { Some(place.open().await?) } else { None };
        let mut numbers = Vec::new();
        let mut unreadable = Vec::new();
        for (at, disk) in disks.iter().enumerate() {
            numbers.push(match disk_number(disk, at).await {
                Err(error) if error.is_unreadable() => {
                    unreadable.push((at, error));
                    None
                }
                number => number.map_err(failed)?,
            });
        }
        let listed = (numbers, unreadable);
        let mut numbers = with_listed(found.as_deref(), given, listed).await?;
        if let Some(coordinator) = &found {
            let absent = list::check(coordinator.as_ref(), given, &numbers).await?;
            (config.absent, config.without) = (absent.numbers, absent.without);
            config.numbers.clone_from(&numbers);
        }
        let opened = CapacityNode::open(disks.clone(), env, config, metrics).await;
        let capacity = opened.map_err(failed)?;
        if found.is_none() && !capacity.extents().await.is_empty() {
            capacity.shutdown().await;
            return Err(NodeError::CoordinatorMissing { path: place.path().to_owned() });
        }
        // Those that had no number before have one now. The others are not read again: a disk that
        // failed since then is out of service, and still a disk of the store.
        for (at, disk) in disks.iter().enumerate() {
            if let Some(number) = numbers.get_mut(at).filter(|number| number.is_none()) {
                *number = disk_number(disk, at).await.map_err(failed)?;
            }
        }
        let coordinator = match found {
            Some(found) => found,
            None => place.open().await?,
        };
        list::remember(coordinator.as_ref(), given, &numbers).await?;
        report_missing(&capacity, given, &numbers);
        Ok(Storage { capacity, coordinator })
    }
}

/// The numbers of the disks, where those that cannot be read have the ones of the coordinator's
/// list: they are disks of the store, and neither new nor missing.
async fn with_listed(
    coordinator: Option<&dyn Coordinator>,
    given: Given<'_>,
    (mut numbers, unreadable): (Vec<Option<usize>>, Vec<(usize, OpenError)>),
) -> Result<Vec<Option<usize>>, NodeError> {
    for (at, error) in unreadable {
        let (Some(coordinator), Some(path)) = (coordinator, given.data.get(at)) else {
            return Err(open_failed(given.data, error));
        };
        if at == 0 {
            return Err(NodeError::FirstDisk { path: path.clone(), error });
        }
        let listed = list::number_at(coordinator, path).await?;
        // The disk that was there may be given at another place now.
        if listed.is_none() || numbers.contains(&listed) {
            return Err(open_failed(given.data, error));
        }
        if let Some(number) = numbers.get_mut(at) {
            *number = listed;
        }
    }
    Ok(numbers)
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
