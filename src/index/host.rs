//! Hosts many partitions: opens those of the coordinator's map, routes requests to them, keeps their memory and runs in
//! bounds.
//!
//! 1. `bootstrap.rs`: the first map of a new store.
//! 2. Here: opening, routing, closing.
//! 3. `change.rs`: splits and merges open partitions; `opened.rs`: the set of them; `balance.rs`: when.
//! 4. `upkeep.rs`: which partition to flush or compact, and when.

mod balance;
mod bootstrap;
mod change;
mod opened;
#[cfg(test)]
mod tests;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::engine::Config;
use crate::index::engine::Partition;
use crate::index::engine::Parts;
use crate::index::engine::Shared;
use crate::index::host::opened::Opened;
use crate::index::map::PartitionMap;
use crate::types::ExtentId;
use crate::types::RoutingKey;

pub use change::{CHILDREN_MAX, ChangeError, Changed};

/// All partitions of one process.
#[derive(Debug)]
pub struct Host {
    shared: Arc<Shared>,
    opened: Arc<Opened>,
    /// The highest id of a partition of a new store's first map there can be.
    first_map_ids: u64,
    /// One change of the map at a time, and none during shutdown.
    changing: tokio::sync::Mutex<()>,
    stop: CancellationToken,
    upkeep: Mutex<Vec<JoinHandle<()>>>,
}

impl Host {
    /// Opens every partition of the coordinator's map, several at a time; a new store first gets its map of
    /// [`Config::initial_partitions`].
    ///
    /// # Errors
    /// The first error of any partition: [`Error::Corrupt`], [`Error::Unavailable`], [`Error::Full`],
    /// [`Error::WrongPartition`] when another process opens them at the same time.
    pub async fn open(parts: Parts, config: Config) -> Result<Self, Error> {
        let boundaries = bootstrap::even_boundaries(config.initial_partitions);
        Self::open_with(parts, config, &boundaries).await
    }

    /// As [`Self::open`], with the bounds between the partitions of a new store given: ascending, none empty.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(
        parts: Parts,
        config: Config,
        boundaries: &[RoutingKey],
    ) -> Result<Self, Error> {
        let coordinator = Arc::clone(&parts.coordinator);
        bootstrap::create_map(coordinator.as_ref(), boundaries).await?;
        let map = PartitionMap::load(coordinator.as_ref()).await?;
        let shared = Arc::new(Shared::new(parts, config));
        let opened: Vec<Result<Partition, Error>> = stream::iter(map.partitions())
            .map(|descriptor| Partition::open(&shared, descriptor.id))
            .buffer_unordered(config.parallel_opens.max(1))
            .collect()
            .await;
        let mut partitions = BTreeMap::new();
        let mut failed = None;
        for result in opened {
            match result {
                Ok(partition) => drop(partitions.insert(partition.core.id, Arc::new(partition))),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            for partition in partitions.values() {
                partition.close().await;
            }
            return Err(error);
        }
        tracing::info!(partitions = partitions.len(), "index serves");
        let opened = Arc::new(Opened::new(partitions));
        let stop = CancellationToken::new();
        let upkeep = Mutex::new(upkeep::start(&shared, &opened, &stop));
        Ok(Self {
            shared,
            opened,
            first_map_ids: bootstrap::PARTITIONS_MAX,
            changing: tokio::sync::Mutex::default(),
            stop,
            upkeep,
        })
    }

    /// Refuses writes from now on, flushes all partitions so that the next start has nothing to replay, and ends all tasks.
    /// Reads go on being answered.
    pub async fn shutdown(&self) {
        let _no_change = self.changing.lock().await;
        self.stop.cancel();
        let upkeep =
            std::mem::take(&mut *self.upkeep.lock().unwrap_or_else(PoisonError::into_inner));
        for task in upkeep {
            if task.await.is_err() {
                tracing::error!("index upkeep panicked");
            }
        }
        stream::iter(self.opened.all())
            .for_each_concurrent(self.shared.config.parallel_opens.max(1), |partition| async move {
                partition.close().await;
            })
            .await;
        self.shared.do_chores().await;
        tracing::info!("index stopped");
    }

    /// How many partitions are open here.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.opened.all().len()
    }

    /// Flushes all partitions now; for tests and before maintenance.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Unavailable`], [`Error::WrongPartition`].
    pub async fn flush(&self) -> Result<(), Error> {
        for partition in self.opened.all() {
            partition.flush().await?;
        }
        Ok(())
    }

    fn partition(&self, target: Target) -> Result<Arc<Partition>, Error> {
        self.opened.get(target.partition).ok_or(Error::WrongPartition)
    }
}

#[async_trait]
impl IndexHost for Host {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        self.partition(target)?.read(target.epoch, &read).await
    }

    async fn write(&self, target: Target, write: Write) -> Result<WriteReply, Error> {
        self.partition(target)?.write(target.epoch, write).await
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        self.shared.owned()
    }
}
