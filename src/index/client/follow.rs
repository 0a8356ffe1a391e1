//! Keeps the partition map up to date from the changes of descriptors. A change of one partition
//! does not read all of ten thousand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Event;
use crate::coordinator::Watch;
use crate::index::api::Error;
use crate::index::map::PARTITION_PREFIX;
use crate::index::map::PartitionDescriptor;
use crate::index::map::PartitionMap;
use crate::types::PartitionId;

/// A map and the watch of its changes. It is never ahead of the coordinator.
pub(super) struct MapFollower {
    map: Arc<PartitionMap>,
    /// The changes after the map; `None` if they cannot be watched. Then each refresh reads the
    /// whole map.
    watch: Option<Box<dyn Watch>>,
}

impl fmt::Debug for MapFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partitions = self.map.partitions().len();
        f.debug_struct("MapFollower").field("partitions", &partitions).finish_non_exhaustive()
    }
}

impl MapFollower {
    /// Reads the map, and follows it from there.
    ///
    /// # Errors
    /// As [`PartitionMap::load`].
    pub(super) async fn new(coordinator: &dyn Coordinator) -> Result<Self, Error> {
        let (map, revision) = PartitionMap::load_at(coordinator).await?;
        let watch = match coordinator.watch(PARTITION_PREFIX.as_bytes(), revision).await {
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::debug!(
                    %error,
                    "the partition map cannot be watched; all of it is read the next time"
                );
                None
            }
        };
        Ok(Self { map: Arc::new(map), watch })
    }

    /// The map as last read.
    #[must_use]
    pub(super) fn map(&self) -> Arc<PartitionMap> {
        Arc::clone(&self.map)
    }

    /// Applies the changes that are known by now. If there are none, or if `whole` is set, reads
    /// the whole map: notifications of changes may be late.
    ///
    /// # Errors
    /// As [`PartitionMap::load`]. The map is unchanged then.
    pub(super) async fn refresh(
        &mut self,
        coordinator: &dyn Coordinator,
        whole: bool,
    ) -> Result<Arc<PartitionMap>, Error> {
        match self.news().filter(|news| !news.is_empty()).and_then(|news| self.map.changed(news)) {
            Some(map) if !whole => self.map = Arc::new(map),
            Some(_) | None => *self = Self::new(coordinator).await?,
        }
        Ok(self.map())
    }

    /// The changes that are known by now; `None` if the watch has failed.
    fn news(&mut self) -> Option<BTreeMap<PartitionId, Option<PartitionDescriptor>>> {
        let mut news = BTreeMap::new();
        // A watch delivers a transaction as a whole, so the changes result in a valid map.
        while let Some(next) = self.watch.as_mut()?.next().now_or_never() {
            match next {
                Ok(Event { key, value, .. }) => {
                    let (id, descriptor) = change(&key, value.as_ref())?;
                    news.insert(id, descriptor);
                }
                Err(
                    coordinator::Error::Compacted
                    | coordinator::Error::Ambiguous
                    | coordinator::Error::Unavailable { .. }
                    | coordinator::Error::SessionEnded
                    | coordinator::Error::Corrupt { .. },
                ) => return None,
            }
        }
        Some(news)
    }
}

/// The partition of a change, and its descriptor; `None` if it was removed.
fn change(key: &[u8], value: Option<&Bytes>) -> Option<(PartitionId, Option<PartitionDescriptor>)> {
    let digits = key.strip_prefix(PARTITION_PREFIX.as_bytes())?;
    let id = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    let descriptor = match value {
        Some(value) => Some(PartitionDescriptor::decode(value)?),
        None => None,
    };
    Some((PartitionId::new(id), descriptor))
}

impl PartitionMap {
    /// Applies changed, new and removed partitions; `None` if the result is not a valid map.
    fn changed(
        &self,
        mut news: BTreeMap<PartitionId, Option<PartitionDescriptor>>,
    ) -> Option<Self> {
        let mut all = Vec::with_capacity(self.partitions().len() + news.len());
        for old in self.partitions() {
            match news.remove(&old.id) {
                None => all.push(old.clone()),
                Some(new) => all.extend(new),
            }
        }
        all.extend(news.into_values().flatten());
        Self::new(all)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::coordinator::Fault;
    use crate::coordinator::Faults;
    use crate::coordinator::Op;
    use crate::coordinator::SimulatedStore;
    use crate::env::Env;
    use crate::env::Tasks;
    use crate::env::clock::SimClock;
    use crate::env::rand::SeededRand;
    use crate::index::api::Damage;
    use crate::types::Epoch;
    use crate::types::HostId;
    use crate::types::KeyRange;
    use crate::types::RoutingKey;

    fn bound(n: u64) -> RoutingKey {
        RoutingKey::from_bytes(n.to_be_bytes().to_vec().into())
    }

    fn part(id: u64, low: u64, high: u64) -> PartitionDescriptor {
        let low = if low == 0 { RoutingKey::min() } else { bound(low) };
        PartitionDescriptor {
            id: PartitionId::new(id),
            keys: KeyRange::new(low, (high != u64::MAX).then(|| bound(high))).into(),
            epoch: Epoch::new(1),
            log: Vec::new(),
            host: HostId::new(0),
        }
    }

    fn put(descriptor: &PartitionDescriptor) -> Op {
        Op::Put(PartitionDescriptor::coordinator_key(descriptor.id), descriptor.encode())
    }

    fn delete(id: u64) -> Op {
        Op::Delete(PartitionDescriptor::coordinator_key(PartitionId::new(id)))
    }

    fn env() -> Env {
        Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        }
    }

    fn ids(map: &PartitionMap) -> Vec<u64> {
        map.partitions().iter().map(|p| p.id.get()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_followed_and_the_same_as_read_whole() {
        let store = SimulatedStore::new();
        let coordinator = store.open(&env());
        coordinator.txn(&[], &[put(&part(1, 0, 50)), put(&part(2, 50, u64::MAX))]).await.unwrap();
        let mut follower = MapFollower::new(&coordinator).await.unwrap();
        assert_eq!(ids(&follower.map()), [1, 2]);
        let split = [delete(2), put(&part(3, 50, 70)), put(&part(4, 70, u64::MAX))];
        coordinator.txn(&[], &split).await.unwrap();
        let rolled = PartitionDescriptor { epoch: Epoch::new(9), ..part(1, 0, 50) };
        coordinator.txn(&[], &[put(&rolled)]).await.unwrap();
        // From here on the coordinator answers no read: what is known must do.
        store.set_faults(Faults { unavailable_per_mille: 1_000, ..Faults::default() });
        let map = follower.refresh(&coordinator, false).await.unwrap();
        assert_eq!(ids(&map), [1, 3, 4]);
        assert_eq!(map.partitions()[0].epoch, Epoch::new(9));
        store.set_faults(Faults::default());
        let whole = PartitionMap::load(&coordinator).await.unwrap();
        assert_eq!(map.partitions(), whole.partitions());
    }

    #[tokio::test(start_paused = true)]
    async fn without_news_or_by_wish_the_map_is_read_whole() {
        let store = SimulatedStore::new();
        let coordinator = store.open(&env());
        coordinator.txn(&[], &[put(&part(1, 0, u64::MAX))]).await.unwrap();
        let mut follower = MapFollower::new(&coordinator).await.unwrap();
        store.set_faults(Faults { unavailable_per_mille: 1_000, ..Faults::default() });
        assert!(follower.refresh(&coordinator, false).await.is_err(), "nothing new: it asks");
        store.set_faults(Faults::default());
        let split = [delete(1), put(&part(2, 0, 9)), put(&part(3, 9, u64::MAX))];
        store.inject(Fault::AmbiguousApplied);
        assert!(coordinator.txn(&[], &split).await.is_err());
        store.set_faults(Faults { unavailable_per_mille: 1_000, ..Faults::default() });
        assert!(follower.refresh(&coordinator, true).await.is_err());
        store.set_faults(Faults { delay_max: Duration::from_millis(5), ..Faults::default() });
        let map = follower.refresh(&coordinator, true).await.unwrap();
        assert_eq!(ids(&map), [2, 3], "changes of an unknown outcome too");
    }

    #[tokio::test(start_paused = true)]
    async fn what_makes_no_map_is_not_believed() {
        let store = SimulatedStore::new();
        let coordinator = store.open(&env());
        coordinator.txn(&[], &[put(&part(1, 0, u64::MAX))]).await.unwrap();
        let mut follower = MapFollower::new(&coordinator).await.unwrap();
        coordinator.txn(&[], &[delete(1)]).await.unwrap();
        let refused = follower.refresh(&coordinator, false).await.unwrap_err();
        assert!(matches!(refused, Error::Corrupt(Damage::Rows(_))), "{refused:?}");
        assert_eq!(ids(&follower.map()), [1]);
        coordinator.txn(&[], &[put(&part(2, 0, u64::MAX))]).await.unwrap();
        assert_eq!(ids(&follower.refresh(&coordinator, false).await.unwrap()), [2]);
    }
}
