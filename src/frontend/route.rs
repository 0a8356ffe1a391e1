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
        Ok(Self { host, coordinator, env, map })
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
            let target = self.owner(key)?;
            match self.host.read(target, read.clone()).await {
                Err(Error::WrongPartition) => self.refresh(round).await?,
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
            let target = self.owner(&key)?;
            match self.host.write(target, write.clone()).await {
                Err(Error::WrongPartition) => self.refresh(round).await?,
                answer => return answer,
            }
        }
        Err(Error::Overloaded)
    }

    fn owner(&self, key: &[u8]) -> Result<Target, Error> {
        let map = self.map();
        let owner = map.owner(key).ok_or(Error::WrongPartition)?;
        Ok(Target { partition: owner.id, epoch: owner.epoch })
    }

    async fn refresh(&self, round: u32) -> Result<(), Error> {
        if round > 0 {
            // The coordinator's map itself is behind: an owner is changing. Wait a little longer each time.
            self.env.clock.sleep(Duration::from_millis(1 << round.min(6))).await;
        }
        let map = PartitionMap::load(self.coordinator.as_ref()).await?;
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        Ok(())
    }
}
