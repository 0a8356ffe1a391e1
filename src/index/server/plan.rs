//! Shows and changes the partitions of this process, for operators and the manager.

use std::sync::Arc;

use async_trait::async_trait;

use crate::index::api::ChangeError;
use crate::index::api::Changed;
use crate::index::api::ChangesOf;
use crate::index::api::Error;
use crate::index::api::KnownChanges;
use crate::index::api::PartitionControl;
use crate::index::api::PartitionCounts;
use crate::index::api::Plan;
use crate::index::api::ServedPartitions;
use crate::index::api::Target;
use crate::index::server::IndexServer;
use crate::rpc::NodeIdentity;
use crate::types::HostId;
use crate::types::Incarnation;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// The partitions of one process.
#[derive(Debug)]
pub struct LocalPartitions {
    index: Arc<IndexServer>,
    process: NodeIdentity,
}

impl LocalPartitions {
    /// Those of a process of a cluster.
    #[must_use]
    pub const fn new(index: Arc<IndexServer>, process: NodeIdentity) -> Self {
        Self { index, process }
    }

    /// Those of a node alone.
    #[must_use]
    pub const fn alone(index: Arc<IndexServer>) -> Self {
        let process = NodeIdentity { node: NodeId::new(0), incarnation: Incarnation::new(0) };
        Self { index, process }
    }
}

#[async_trait]
impl PartitionControl for LocalPartitions {
    async fn served(&self) -> Result<ServedPartitions, Error> {
        Ok(ServedPartitions { hosts: self.index.host_ids(), partitions: self.index.status() })
    }

    async fn counts(&self) -> Result<Vec<PartitionCounts>, Error> {
        Ok(self.index.counts())
    }

    async fn changes(&self, known: &KnownChanges) -> Result<Vec<ChangesOf>, Error> {
        let process = self.process;
        let known = known.get(&process).copied().unwrap_or_default();
        Ok(vec![ChangesOf { process, changes: self.index.changes_after(known) }])
    }

    async fn even_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError> {
        self.index.even_cuts(partition, parts).await
    }

    async fn row_spread(
        &self,
        range: &KeyRange,
        parts: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error> {
        self.index.row_spread(range, parts).await
    }

    async fn change(&self, plan: Plan) -> Result<Changed, ChangeError> {
        self.index.carry_out(&plan).await
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), Error> {
        // A call that was delayed may be of an earlier owner.
        let open = self.index.host_of(target.partition);
        let open = open.and_then(|host| host.opened.get(target.partition));
        if open.is_none_or(|open| open.core.epoch != target.epoch) {
            return Err(Error::WrongPartition);
        }
        match self.index.move_to(target.partition, to).await {
            Ok(_) => Ok(()),
            Err(ChangeError::NoSuchPartition) => Err(Error::WrongPartition),
            Err(ChangeError::Refused(error) | ChangeError::Failed(error)) => Err(error),
            Err(ChangeError::Busy(_)) => Err(Error::Overloaded),
            Err(
                error @ (ChangeError::BadKeys
                | ChangeError::Striped
                | ChangeError::NotStripable
                | ChangeError::NotNeighbours
                | ChangeError::NoSuchHost
                | ChangeError::PartlyDone(_)),
            ) => Err(Error::Unavailable(error.to_string())),
        }
    }

    fn node_name(&self, _node: NodeId) -> Option<String> {
        None
    }
}

impl IndexServer {
    /// Makes a planned change of the map. A change that has begun is completed even if the caller
    /// is cancelled.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn carry_out(self: &Arc<Self>, plan: &Plan) -> Result<Changed, ChangeError> {
        match plan {
            Plan::Split(partition, keys) => self.split(*partition, keys).await,
            Plan::SplitEvenly(partition, ways) => self.split_evenly(*partition, *ways).await,
            Plan::Stripe(partition, range, stripes) => {
                self.stripe_part(*partition, range.clone(), *stripes).await
            }
            Plan::Move(partition, host) => self.move_to(*partition, *host).await,
            Plan::Merge(partitions) => self.merge(partitions).await,
        }
    }

    /// Splits a partition into `ways` parts with about equal numbers of rows.
    async fn split_evenly(
        self: &Arc<Self>,
        partition: PartitionId,
        ways: usize,
    ) -> Result<Changed, ChangeError> {
        let keys = self.row_cuts(partition, ways).await?;
        self.split(partition, &keys).await
    }
}
