//! Frees that a copy of this node has missed, and extents of which nothing is used any more.

use std::ops::Range;

use futures_util::future::join_all;

use super::At;
use super::ClusterCapacity;
use crate::capacity::Error;
use crate::capacity::LocalMember;
use crate::types::ExtentId;

impl ClusterCapacity {
    /// Frees in a copy of this node what any other member has freed in its own: a node that is away
    /// is not asked to free. Returns how many bytes that were.
    ///
    /// # Errors
    /// As of the coordinator and the local disk. Members that do not answer are passed over.
    pub async fn catch_up_frees(
        &self,
        extent: ExtentId,
        local: &LocalMember,
    ) -> Result<u64, Error> {
        let found = match self.find(extent).await {
            Err(Error::NoSuchExtent { .. }) => return Ok(0),
            found => found?,
        };
        let asked = self.others(&found).into_iter().map(|At { node, member }| async move {
            let dead = self.soon(node, member.dead(extent)).await;
            dead.ok()
        });
        let answers = join_all(asked).await;
        // A free is known to one member at least.
        let heard = answers.iter().flatten().count();
        let all = heard > 0 && heard + 1 == found.record.members().len();
        let freed: Vec<Range<u64>> = answers.into_iter().flatten().flatten().collect();
        match local.free_ranges(extent, &freed, all).await {
            Err(Error::NoSuchExtent { .. }) => Ok(0),
            freed => freed,
        }
    }

    /// Removes the extents of which all bytes are freed in the copy of this node. Others may miss
    /// frees, so one copy that knows of all of them is enough. Returns how many were removed.
    pub async fn remove_dead(&self, local: &LocalMember) -> usize {
        let mut removed = 0;
        for extent in local.dead_extents() {
            match self.remove_all(extent).await {
                Ok(()) => removed += 1,
                Err(error) => tracing::debug!(%extent, %error, "a dead extent is removed later"),
            }
        }
        removed
    }
}
