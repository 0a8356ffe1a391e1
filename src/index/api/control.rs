//! What operators and the manager ask about partitions, and have changed.

use std::collections::BTreeMap;
use std::fmt::Debug;

use async_trait::async_trait;
use serde::Deserialize;
use serde::Serialize;

use super::ChangeError;
use super::ChangeEvent;
use super::Changed;
use super::Error;
use super::PartitionCounts;
use super::Plan;
use super::ServedPartitions;
use super::Target;
use crate::rpc::NodeIdentity;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// The number of the latest known change of each process.
pub type KnownChanges = BTreeMap<NodeIdentity, u64>;

/// The latest changes of the map by one process, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesOf {
    /// The process. The changes of another life of its node are numbered from 1 again.
    pub process: NodeIdentity,
    /// At most the latest thousand.
    pub changes: Vec<ChangeEvent>,
}

/// Shows and changes the partitions of one process, or of all processes of a cluster.
#[async_trait]
pub trait PartitionControl: Send + Sync + Debug {
    /// The partitions, open or not, and the hosts where they can be.
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    async fn served(&self) -> Result<ServedPartitions, Error>;

    /// How many requests each partition has had, in no order. This costs less than
    /// [`Self::served`].
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    async fn counts(&self) -> Result<Vec<PartitionCounts>, Error>;

    /// The latest changes of the map that are not known yet.
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    async fn changes(&self, known: &KnownChanges) -> Result<Vec<ChangesOf>, Error>;

    /// Keys that cut a partition into parts of equal load, or of equally many rows where the load
    /// is not known. There are fewer keys, or none, if there are too few places for a cut.
    ///
    /// # Errors
    /// [`ChangeError::NoSuchPartition`], [`ChangeError::Refused`].
    async fn even_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError>;

    /// Keys of a range, ascending, and how many rows begin at each: enough keys to cut it into so
    /// many parts.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`], [`Error::NoAnswer`].
    async fn row_spread(
        &self,
        range: &KeyRange,
        parts: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error>;

    /// Changes the map. A change that has begun is completed even if the caller is cancelled.
    ///
    /// # Errors
    /// [`ChangeError`].
    async fn change(&self, plan: Plan) -> Result<Changed, ChangeError>;

    /// Gives a partition that is served at this epoch to a host of another process.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unavailable`] and [`Error::NoAnswer`] it may have been given.
    async fn give(&self, target: Target, to: HostId) -> Result<(), Error>;

    /// The name of a node of a cluster, if it is known.
    fn node_name(&self, node: NodeId) -> Option<String>;
}
