//! Splitting and merging partitions that are open here.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error as ThisError;

use crate::coordinator;
use crate::coordinator::counter;
use crate::coordinator::counter::PARTITION_IDS;
use crate::index::api::Error;
use crate::index::engine;
use crate::index::engine::NotMerged;
use crate::index::engine::Partition;
use crate::index::host::Host;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// Children of one split, and partitions of one merge, at most: a coordinator transaction is bounded.
pub const CHILDREN_MAX: usize = 16;

/// What a change of the partition map did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The new partitions in key order.
    pub partitions: Vec<PartitionId>,
    /// How long no write of the range was made durable.
    pub pause: Duration,
}

/// Why the partition map was not changed.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum ChangeError {
    /// It is not open here: read the map again.
    #[error("no such partition here")]
    NoSuchPartition,
    /// The keys do not cut it into 2 to 16 ranges.
    #[error(
        "the keys must be 1 to 15, ascending, inside the partition and not inside a table of containers"
    )]
    BadKeys,
    /// Only neighbours are merged.
    #[error("a merge takes 2 to 16 partitions that lie side by side, in key order")]
    NotNeighbours,
    /// They change too fast: try again when they are quieter.
    #[error("the partitions are too busy to be merged; try again when they are quieter")]
    Busy,
    /// Nothing changed, or the partition stopped: its next owner knows.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<NotMerged> for ChangeError {
    fn from(failed: NotMerged) -> Self {
        match failed {
            NotMerged::Busy => Self::Busy,
            NotMerged::Failed(failed) => Self::Failed(failed.into()),
        }
    }
}

impl Host {
    /// Splits a partition at `keys`: each is the lowest of a child's range. Writes wait a moment, reads go on. Once begun it
    /// is carried out, whether or not the caller waits for it.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn split(
        self: &Arc<Self>,
        partition: PartitionId,
        keys: &[RoutingKey],
    ) -> Result<Changed, ChangeError> {
        let (host, keys) = (Arc::clone(self), keys.to_vec());
        let task = async move { host.carry_out_split(partition, &keys).await };
        self.in_a_task("partition split", task).await
    }

    /// Merges partitions that lie side by side, given in key order. Writes wait a moment, reads go on. Once begun it is
    /// carried out, whether or not the caller waits for it.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn merge(
        self: &Arc<Self>,
        partitions: &[PartitionId],
    ) -> Result<Changed, ChangeError> {
        let (host, partitions) = (Arc::clone(self), partitions.to_vec());
        let task = async move { host.carry_out_merge(&partitions).await };
        self.in_a_task("partition merge", task).await
    }

    /// A change that its caller gave up half-way would leave a range without an owner.
    async fn in_a_task<T: Send + 'static>(
        &self,
        name: &'static str,
        task: impl Future<Output = Result<T, ChangeError>> + Send + 'static,
    ) -> Result<T, ChangeError> {
        let done = self.shared.parts.env.tasks.spawn(name, task).await;
        let lost = |_| Error::Unavailable(format!("the task of a {name} ended early")).into();
        done.map_err(lost).and_then(|done| done)
    }

    async fn carry_out_split(
        &self,
        partition: PartitionId,
        keys: &[RoutingKey],
    ) -> Result<Changed, ChangeError> {
        let _one = self.changing.lock().await;
        self.still_serves()?;
        let parent = self.opened.get(partition).ok_or(ChangeError::NoSuchPartition)?;
        let ranges = cut(&parent.core.range, keys).ok_or(ChangeError::BadKeys)?;
        let ids = self.fresh_ids(ranges.len()).await?;
        let ranges = ids.iter().copied().zip(ranges).collect();
        let split = parent.split(ranges).await.map_err(Error::from)?;
        let pause = self.replace(&[parent], split.children, split.frozen_at).await;
        self.shared.parts.metrics.split(pause);
        tracing::info!(%partition, children = ids.len(), ?pause, "partition split");
        Ok(Changed { partitions: ids, pause })
    }

    async fn carry_out_merge(&self, partitions: &[PartitionId]) -> Result<Changed, ChangeError> {
        let _one = self.changing.lock().await;
        self.still_serves()?;
        let found = partitions.iter().map(|id| self.opened.get(*id)).collect::<Option<Vec<_>>>();
        let parts = found.ok_or(ChangeError::NoSuchPartition)?;
        if !are_neighbours(&parts) {
            return Err(ChangeError::NotNeighbours);
        }
        let ids = self.fresh_ids(1).await?;
        let id = *ids.first().ok_or(ChangeError::NotNeighbours)?;
        let merged = engine::merge(&self.shared, id, &parts).await?;
        let (partition, frozen_at) = (merged.partition, merged.frozen_at);
        let pause = self.replace(&parts, vec![partition], frozen_at).await;
        self.shared.parts.metrics.merged(pause);
        tracing::info!(partition = %id, of = parts.len(), ?pause, "partitions merged");
        Ok(Changed { partitions: ids, pause })
    }

    /// Lets new partitions serve instead of old ones; returns how long their range took no writes.
    async fn replace(
        &self,
        old: &[Arc<Partition>],
        new: Vec<Partition>,
        frozen_at: Duration,
    ) -> Duration {
        self.opened.replace(old, new);
        let pause = self.shared.parts.env.clock.monotonic().saturating_sub(frozen_at);
        for old in old {
            old.abandon().await;
        }
        pause
    }

    fn still_serves(&self) -> Result<(), Error> {
        if self.stop.is_cancelled() {
            return Err(Error::Unavailable("the index is stopping".into()));
        }
        Ok(())
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

/// Whether they are at least two, at most [`CHILDREN_MAX`], and each begins where the one before it ends.
fn are_neighbours(parts: &[Arc<Partition>]) -> bool {
    let touch = |pair: &[Arc<Partition>]| match pair {
        [a, b] => a.core.range.high() == Some(b.core.range.low()),
        _ => false,
    };
    (2..=CHILDREN_MAX).contains(&parts.len()) && parts.windows(2).all(touch)
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
