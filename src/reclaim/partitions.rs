//! Where reclaim learns which partitions there are.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::coordinator::Coordinator;
use crate::index::Error;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::Target;

/// The current partition map.
#[async_trait]
pub trait Partitions: Send + Sync + Debug {
    /// Reads the map anew.
    ///
    /// # Errors
    /// As [`PartitionMap::load`].
    async fn map(&self) -> Result<PartitionMap, Error>;
}

/// The map as the coordinator holds it.
#[derive(Clone, Debug)]
pub struct CoordinatorPartitions(pub Arc<dyn Coordinator>);

#[async_trait]
impl Partitions for CoordinatorPartitions {
    async fn map(&self) -> Result<PartitionMap, Error> {
        PartitionMap::load(self.0.as_ref()).await
    }
}

/// How a partition of the map is addressed.
pub(super) fn target(partition: &PartitionDescriptor) -> Target {
    Target::of(partition)
}
