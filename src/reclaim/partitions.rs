//! The partitions that reclaim works on.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::coordinator::Coordinator;
use crate::index::Error;
use crate::index::ExtentRecord;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::Target;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// The current partition map.
#[async_trait]
pub trait Partitions: Send + Sync + Debug {
    /// Reads the current map.
    ///
    /// # Errors
    /// As [`PartitionMap::load`].
    async fn map(&self) -> Result<PartitionMap, Error>;

    /// All logs and runs that some partition may have, served here or not.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    async fn extents(&self) -> Result<BTreeSet<ExtentId>, Error>;
}

/// The map as the coordinator holds it.
#[derive(Clone, Debug)]
pub struct CoordinatorPartitions(pub Arc<dyn Coordinator>);

#[async_trait]
impl Partitions for CoordinatorPartitions {
    async fn map(&self) -> Result<PartitionMap, Error> {
        PartitionMap::load(self.0.as_ref()).await
    }

    async fn extents(&self) -> Result<BTreeSet<ExtentId>, Error> {
        let records = ExtentRecord::load_all(self.0.as_ref()).await?.whole()?;
        Ok(records.values().flat_map(ExtentRecord::all).collect())
    }
}

/// A partition and its owner. After a change of owner or range the epoch is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ownership {
    partition: PartitionId,
    epoch: Epoch,
}

impl Ownership {
    /// That of a partition in the map.
    pub(super) fn of(descriptor: &PartitionDescriptor) -> Self {
        Self { partition: descriptor.id, epoch: descriptor.epoch }
    }
}

/// The address of a partition of the map.
pub(super) fn target(partition: &PartitionDescriptor) -> Target {
    Target::of(partition)
}
