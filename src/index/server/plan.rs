//! Carries out the changes of the map that a manager plans.

use std::sync::Arc;

use crate::index::api::Plan;
use crate::index::server::ChangeError;
use crate::index::server::Changed;
use crate::index::server::IndexServer;
use crate::types::PartitionId;

impl IndexServer {
    /// Makes a planned change of the map. Once begun it is carried out, whether or not the caller
    /// waits for it.
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

    /// Splits a partition into as many parts with about the same number of rows.
    async fn split_evenly(
        self: &Arc<Self>,
        partition: PartitionId,
        ways: usize,
    ) -> Result<Changed, ChangeError> {
        let keys = self.row_cuts(partition, ways).await?;
        self.split(partition, &keys).await
    }
}
