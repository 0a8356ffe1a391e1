//! The descriptors of all partitions, kept up to date by the changes of the coordinator.

use std::collections::BTreeMap;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Event;
use crate::coordinator::Follows;
use crate::coordinator::Revision;
use crate::coordinator::Snapshot;
use crate::coordinator::follow;
use crate::env::Clock;
use crate::env::Observed;
use crate::index::map::PARTITION_PREFIX;
use crate::index::map::PartitionDescriptor;
use crate::types::NodeId;
use crate::types::PartitionId;

/// The descriptors as of one revision. It may be behind the coordinator, never ahead.
#[derive(Debug)]
pub struct FollowedMap {
    known: Observed<Known>,
}

#[derive(Debug, Default)]
struct Known {
    partitions: BTreeMap<PartitionId, Found>,
    revision: Revision,
}

/// A descriptor, and the revision that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The descriptor.
    pub descriptor: PartitionDescriptor,
    /// Which transaction wrote it.
    pub revision: Revision,
}

impl FollowedMap {
    /// Reads all descriptors. [`Self::follow`] keeps them up to date.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn start(coordinator: &dyn Coordinator) -> Result<Self, coordinator::Error> {
        let map = Self { known: Observed::default() };
        map.take_all(coordinator.range(PARTITION_PREFIX.as_bytes()).await?);
        Ok(map)
    }

    /// Follows the descriptors for ever.
    ///
    /// Cancel safe: another call goes on.
    pub async fn follow(&self, coordinator: &dyn Coordinator, clock: &dyn Clock) {
        follow(coordinator, clock, self).await;
    }

    /// Waits for a change after this revision. Cancel safe.
    pub async fn changed_after(&self, seen: Revision) {
        self.known.wait_until(|known| known.revision > seen).await;
    }

    /// The descriptor of a partition.
    #[must_use]
    pub fn get(&self, id: PartitionId) -> Option<PartitionDescriptor> {
        self.find(id).map(|found| found.descriptor)
    }

    /// The same, with the revision that wrote it.
    #[must_use]
    pub fn find(&self, id: PartitionId) -> Option<Found> {
        self.known.look(|known| known.partitions.get(&id).cloned())
    }

    /// The node of each partition.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<PartitionId, NodeId> {
        let node = |(id, found): (&PartitionId, &Found)| (*id, found.descriptor.host.node());
        self.known.look(|known| known.partitions.iter().map(node).collect())
    }

    /// All descriptors of which this is true, by id.
    pub fn all(&self, is_meant: impl Fn(&PartitionDescriptor) -> bool) -> Vec<Found> {
        let is_meant = |found: &&Found| is_meant(&found.descriptor);
        self.known.look(|known| known.partitions.values().filter(is_meant).cloned().collect())
    }
}

/// The partition of a key.
fn partition_of(key: &[u8]) -> Option<PartitionId> {
    let digits = key.strip_prefix(PARTITION_PREFIX.as_bytes())?;
    let id = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some(PartitionId::new(id))
}

impl Known {
    fn put(&mut self, key: &[u8], value: Option<&[u8]>, revision: Revision) {
        let Some(id) = partition_of(key) else { return };
        let Some(value) = value else {
            self.partitions.remove(&id);
            return;
        };
        match PartitionDescriptor::decode(value) {
            Some(descriptor) => {
                self.partitions.insert(id, Found { descriptor, revision });
            }
            None => tracing::error!(partition = %id, "a partition descriptor is malformed"),
        }
    }
}

impl Follows for FollowedMap {
    fn prefix(&self) -> &'static [u8] {
        PARTITION_PREFIX.as_bytes()
    }

    fn revision(&self) -> Revision {
        self.known.look(|known| known.revision)
    }

    fn take(&self, events: Vec<Event>) {
        self.known.change(|known| {
            for Event { key, value, revision } in events {
                known.put(&key, value.as_deref(), revision);
                known.revision = known.revision.max(revision);
            }
        });
    }

    fn take_all(&self, all: Snapshot) {
        self.known.change(|known| {
            *known = Known { partitions: BTreeMap::new(), revision: all.revision };
            for (key, entry) in all.entries {
                known.put(&key, Some(&entry.value), entry.mod_revision);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::coordinator::Op;
    use crate::coordinator::SimulatedStore;
    use crate::env::Env;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;
    use crate::types::Epoch;
    use crate::types::HostId;
    use crate::types::KeyRange;

    fn descriptor(id: u64, node: u64) -> PartitionDescriptor {
        PartitionDescriptor {
            id: PartitionId::new(id),
            keys: KeyRange::all().into(),
            epoch: Epoch::new(1),
            log: Vec::new(),
            host: HostId::of(NodeId::new(node), 0),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn descriptors_are_those_of_the_coordinator() {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let coordinator = Arc::new(SimulatedStore::new().open(&env)) as Arc<dyn Coordinator>;
        let key = |id| PartitionDescriptor::coordinator_key(PartitionId::new(id));
        let put = |id, node| Op::Put(key(id), descriptor(id, node).encode());
        coordinator.txn(&[], &[put(1, 7)]).await.unwrap();
        let map = Arc::new(FollowedMap::start(&*coordinator).await.unwrap());
        let seen = map.revision();
        let (following, clock, of) =
            (Arc::clone(&map), Arc::clone(&env.clock), Arc::clone(&coordinator));
        let follow = async move { following.follow(&*of, &*clock).await };
        drop(env.tasks.spawn("follow", follow));
        assert_eq!(map.get(PartitionId::new(1)), Some(descriptor(1, 7)));
        coordinator.txn(&[], &[put(2, 8), Op::Delete(key(1))]).await.unwrap();
        map.changed_after(seen).await;
        let all = map.all(|_| true);
        let all: Vec<_> = all.into_iter().map(|found| found.descriptor).collect();
        assert_eq!(all, [descriptor(2, 8)]);
        assert!(map.all(|one| one.host.node() == NodeId::new(7)).is_empty());
        // It is read, not taken for another one.
        let broken = Op::Put(key(2), Bytes::from_static(b"broken"));
        coordinator.txn(&[], &[broken]).await.unwrap();
        env.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(map.get(PartitionId::new(2)), Some(descriptor(2, 8)));
    }
}
