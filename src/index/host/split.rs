//! Splitting a partition that is open here.

use std::time::Duration;

use thiserror::Error as ThisError;

use crate::coordinator;
use crate::coordinator::counter;
use crate::coordinator::counter::PARTITION_IDS;
use crate::index::api::Error;
use crate::index::host::Host;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// Children of one split at most: a coordinator transaction is bounded.
pub const CHILDREN_MAX: usize = 16;

/// What a split did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitReport {
    /// The new partitions in key order.
    pub children: Vec<PartitionId>,
    /// How long no write of the range was made durable.
    pub pause: Duration,
}

/// Why a partition was not split.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum SplitError {
    /// It is not open here: read the map again.
    #[error("no such partition here")]
    NoSuchPartition,
    /// The keys do not cut it into 2 to 16 ranges.
    #[error(
        "the keys must be 1 to 15, ascending, inside the partition and not inside a table of containers"
    )]
    BadKeys,
    /// Nothing changed, or the partition stopped: its next owner knows.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl Host {
    /// Splits a partition at `keys`: each is the lowest of a child's range. Writes wait a moment, reads go on.
    ///
    /// # Errors
    /// [`SplitError`].
    pub async fn split(
        &self,
        partition: PartitionId,
        keys: &[RoutingKey],
    ) -> Result<SplitReport, SplitError> {
        let _one = self.splitting.lock().await;
        if self.stop.is_cancelled() {
            return Err(Error::Unavailable("the index is stopping".into()).into());
        }
        let parent = self.opened.get(partition).ok_or(SplitError::NoSuchPartition)?;
        let ranges = cut(&parent.core.range, keys).ok_or(SplitError::BadKeys)?;
        let ids = self.fresh_ids(ranges.len()).await?;
        let ranges = ids.iter().copied().zip(ranges).collect();
        let split = parent.split(ranges).await.map_err(Error::from)?;
        self.opened.replace(&parent, split.children);
        let clock = &self.shared.parts.env.clock;
        let pause = clock.monotonic().saturating_sub(split.frozen_at);
        parent.abandon().await;
        self.shared.parts.metrics.split(pause);
        tracing::info!(%partition, children = ids.len(), ?pause, "partition split");
        Ok(SplitReport { children: ids, pause })
    }

    /// Ids that no partition has or had. Those of a new store's first map were not taken from the counter.
    async fn fresh_ids(&self, count: usize) -> Result<Vec<PartitionId>, Error> {
        let unavailable = |error: coordinator::Error| Error::Unavailable(error.to_string());
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let coordinator = self.shared.parts.coordinator.as_ref();
        loop {
            let ids = counter::allocate(coordinator, PARTITION_IDS, count);
            let ids = ids.await.map_err(unavailable)?;
            if ids.start > self.first_map_ids {
                return Ok(ids.map(PartitionId::new).collect());
            }
        }
    }
}

/// The ranges between `keys`; `None` when they are no borders inside `range`.
fn cut(range: &KeyRange, keys: &[RoutingKey]) -> Option<Vec<KeyRange>> {
    let ascending = keys.is_sorted_by(|a, b| a < b);
    let inside = keys
        .iter()
        .all(|key| range.contains(key.as_bytes()) && key != range.low() && !is_inside_a_table(key));
    if keys.is_empty() || keys.len() >= CHILDREN_MAX || !ascending || !inside {
        return None;
    }
    let lows = std::iter::once(range.low()).chain(keys);
    let highs = keys.iter().map(Some).chain([range.high()]);
    Some(lows.zip(highs).map(|(low, high)| KeyRange::new(low.clone(), high.cloned())).collect())
}

/// Whether a key lies among an account's containers, which stay together (`api-spec/keys.md`).
pub(super) fn is_inside_a_table(key: &RoutingKey) -> bool {
    const CONTAINER: std::ops::Range<usize> = 8..16;
    key.as_bytes().len() > CONTAINER.end
        && key.as_bytes().get(..8).is_some_and(|account| account != [0; 8])
        && key.as_bytes().get(CONTAINER).is_some_and(|container| container == [0; 8])
}

#[cfg(test)]
mod tests;
