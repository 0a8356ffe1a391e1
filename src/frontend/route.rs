//! Sends a request to the partition that owns its key; a stale map costs one more round, never a wrong answer (I15).

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::time::Duration;

use crate::coordinator::Coordinator;
use crate::env::Env;
use crate::index::Error;
use crate::index::IndexHost;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;

/// Rounds before a request that keeps meeting stale maps is given up.
const ROUNDS_MAX: u32 = 8;

/// Routes by key over a cached partition map.
#[derive(Debug)]
pub struct Router {
    host: Arc<dyn IndexHost>,
    coordinator: Arc<dyn Coordinator>,
    env: Env,
    map: RwLock<Arc<PartitionMap>>,
    /// One reads the map for all who found it stale.
    refreshing: tokio::sync::Mutex<()>,
}

impl Router {
    /// Reads the map.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the coordinator does not answer or its map does not tile the key space.
    pub async fn new(
        host: Arc<dyn IndexHost>,
        coordinator: Arc<dyn Coordinator>,
        env: Env,
    ) -> Result<Self, Error> {
        let map = RwLock::new(Arc::new(PartitionMap::load(coordinator.as_ref()).await?));
        Ok(Self { host, coordinator, env, map, refreshing: tokio::sync::Mutex::default() })
    }

    /// The map as last read.
    #[must_use]
    pub fn map(&self) -> Arc<PartitionMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the owner of `key`.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn read(&self, key: &[u8], read: Read) -> Result<ReadReply, Error> {
        for round in 0..ROUNDS_MAX {
            let map = self.map();
            let target = owner(&map, key)?;
            match self.host.read(target, read.clone()).await {
                Err(Error::WrongPartition) => self.refresh(&map, round).await?,
                answer => return answer,
            }
        }
        Err(Error::Overloaded)
    }

    /// Changes rows at the owner of the request's key.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn write(&self, write: Write) -> Result<WriteReply, Error> {
        let key = write.routing_key();
        for round in 0..ROUNDS_MAX {
            let map = self.map();
            let target = owner(&map, &key)?;
            match self.host.write(target, write.clone()).await {
                Err(Error::WrongPartition) => self.refresh(&map, round).await?,
                answer => return answer,
            }
        }
        Err(Error::Overloaded)
    }

    async fn refresh(&self, stale: &Arc<PartitionMap>, round: u32) -> Result<(), Error> {
        let _one = self.refreshing.lock().await;
        if !Arc::ptr_eq(stale, &self.map()) {
            return Ok(());
        }
        if round > 0 {
            // The coordinator's map itself is behind: an owner is changing. Wait a little longer each time.
            self.env.clock.sleep(Duration::from_millis(1 << round.min(6))).await;
        }
        let map = PartitionMap::load(self.coordinator.as_ref()).await?;
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        Ok(())
    }
}

fn owner(map: &PartitionMap, key: &[u8]) -> Result<Target, Error> {
    let owner = map.owner(key).ok_or(Error::WrongPartition)?;
    Ok(Target::of(owner))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    use async_trait::async_trait;

    use super::*;
    use crate::coordinator::Op;
    use crate::coordinator::SimulatedStore;
    use crate::env::Tasks;
    use crate::env::clock::SimClock;
    use crate::env::rand::SeededRand;
    use crate::index::PartitionDescriptor;
    use crate::types::Epoch;
    use crate::types::ExtentId;
    use crate::types::HostId;
    use crate::types::KeyRange;
    use crate::types::PartitionId;

    /// Answers at one epoch only.
    #[derive(Debug)]
    struct Owner {
        epoch: AtomicU64,
        asked: AtomicU64,
    }

    #[async_trait]
    impl IndexHost for Owner {
        async fn read(&self, target: Target, _read: Read) -> Result<ReadReply, Error> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if target.epoch.get() == self.epoch.load(Ordering::Relaxed) {
                Ok(ReadReply::DeadContainers(Vec::new()))
            } else {
                Err(Error::WrongPartition)
            }
        }

        async fn write(&self, _target: Target, _write: Write) -> Result<WriteReply, Error> {
            Ok(WriteReply::Done)
        }

        async fn owned_extents(&self) -> Vec<ExtentId> {
            Vec::new()
        }
    }

    async fn publish(coordinator: &dyn Coordinator, epoch: u64) {
        let descriptor = PartitionDescriptor {
            id: PartitionId::new(1),
            range: KeyRange::all(),
            epoch: Epoch::new(epoch),
            log: Vec::new(),
            host: HostId::new(0),
        };
        let key = PartitionDescriptor::coordinator_key(descriptor.id);
        coordinator.txn(&[], &[Op::Put(key, descriptor.encode())]).await.unwrap();
    }

    async fn rig() -> (Arc<Owner>, Arc<dyn Coordinator>, Router) {
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
        publish(coordinator.as_ref(), 1).await;
        let owner = Arc::new(Owner { epoch: AtomicU64::new(1), asked: AtomicU64::new(0) });
        let host = Arc::clone(&owner) as Arc<dyn IndexHost>;
        let router = Router::new(host, Arc::clone(&coordinator), env).await.unwrap();
        (owner, coordinator, router)
    }

    #[tokio::test(start_paused = true)]
    async fn stale_map_is_read_again_and_the_request_goes_through() {
        let (owner, coordinator, router) = rig().await;
        owner.epoch.store(2, Ordering::Relaxed);
        publish(coordinator.as_ref(), 2).await;
        router.read(b"key", Read::DeadContainers).await.unwrap();
        assert_eq!(owner.asked.load(Ordering::Relaxed), 2);
        router.read(b"key", Read::DeadContainers).await.unwrap();
        assert_eq!(owner.asked.load(Ordering::Relaxed), 3, "the new map is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn map_that_stays_behind_ends_in_overload_not_in_a_loop() {
        let (owner, _coordinator, router) = rig().await;
        owner.epoch.store(2, Ordering::Relaxed);
        let refused = router.read(b"key", Read::DeadContainers).await.unwrap_err();
        assert_eq!(refused, Error::Overloaded);
        assert_eq!(owner.asked.load(Ordering::Relaxed), u64::from(ROUNDS_MAX));
    }
}
