//! Where reclaim learns which partitions there are.

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
use crate::types::ExtentId;

/// The current partition map.
#[async_trait]
pub trait Partitions: Send + Sync + Debug {
    /// Reads the map anew.
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

/// How a partition of the map is addressed.
pub(super) fn target(partition: &PartitionDescriptor) -> Target {
    Target::of(partition)
}
