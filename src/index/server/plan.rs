//! Carries out changes of the map that a manager plans.

use std::sync::Arc;

use async_trait::async_trait;

use crate::index::api::Error;
use crate::index::api::Plan;
use crate::index::api::Target;
use crate::index::remote::GivesPartitions;
use crate::index::server::ChangeError;
use crate::index::server::Changed;
use crate::index::server::IndexServer;
use crate::types::HostId;
use crate::types::PartitionId;

/// Gives partitions of a server to other processes when it is asked to.
#[derive(Debug)]
pub struct Giver(pub Arc<IndexServer>);

#[async_trait]
impl GivesPartitions for Giver {
    async fn give(&self, target: Target, to: HostId) -> Result<(), Error> {
        // A call that was delayed may be of an earlier owner.
        let open = self.0.host_of(target.partition);
        let open = open.and_then(|host| host.opened.get(target.partition));
        if open.is_none_or(|open| open.core.epoch != target.epoch) {
            return Err(Error::WrongPartition);
        }
        match self.0.move_to(target.partition, to).await {
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
