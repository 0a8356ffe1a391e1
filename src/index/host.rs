//! A host: partitions that share memory, cache and upkeep, and may have a thread of their own.
//!
//! 1. Here: opening and closing; `opened.rs`: the set of open partitions, which changes of the map
//!    change.
//! 2. `upkeep.rs`: which partition to flush or compact, and when.

mod opened;
mod upkeep;

pub(crate) use opened::{Opened, Quarantined};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::index::api::Error;
use crate::index::api::Target;
use crate::index::engine::NotOpened;
use crate::index::engine::Partition;
use crate::index::engine::Shared;
use crate::types::PartitionId;

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) shared: Arc<Shared>,
    pub(crate) opened: Arc<Opened>,
    stop: CancellationToken,
    upkeep: Mutex<Vec<JoinHandle<()>>>,
}

impl Host {
    /// Opens partitions, several at a time. One that needs files which are damaged or missing is
    /// quarantined.
    ///
    /// # Errors
    /// The first other error of any of them; then none is open.
    pub(crate) async fn open(shared: Arc<Shared>, ids: Vec<PartitionId>) -> Result<Self, Error> {
        let shared_by_all = &shared;
        let open = move |id| async move {
            match Partition::open_or_tell(shared_by_all, id).await {
                Ok(partition) => Ok(Ok(partition)),
                Err(not) => quarantine(not).map(Err),
            }
        };
        let opened: Vec<Result<Result<Partition, Quarantined>, Error>> = stream::iter(ids)
            .map(open)
            .buffer_unordered(shared.config.parallel_opens.max(1))
            .collect()
            .await;
        let mut partitions = BTreeMap::new();
        let mut quarantined = Vec::new();
        let mut failed = None;
        for result in opened {
            match result {
                Ok(Ok(partition)) => {
                    drop(partitions.insert(partition.core.id, Arc::new(partition)));
                }
                Ok(Err(one)) => quarantined.push(one),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            for partition in partitions.values() {
                partition.close().await;
            }
            return Err(error);
        }
        if !quarantined.is_empty() {
            shared.parts.metrics.quarantined(quarantined.len());
        }
        let opened = Arc::new(Opened::new(partitions, quarantined));
        let (stop, upkeep) = (CancellationToken::new(), Mutex::default());
        Ok(Self { shared, opened, stop, upkeep })
    }

    /// Starts flushing, compacting and removing.
    pub(crate) fn begin_upkeep(&self) {
        let mut tasks = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.extend(upkeep::start(&self.shared, &self.opened, &self.stop));
    }

    /// Closes all partitions and ends all tasks; see [`crate::index::Fleet::shutdown`].
    pub(crate) async fn shutdown(&self) {
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
    }

    /// # Errors
    /// [`Error::WrongPartition`] when it is not open here, [`Error::Quarantined`] when it cannot
    /// be.
    pub(crate) fn partition(&self, target: Target) -> Result<Arc<Partition>, Error> {
        self.opened.get(target.partition).ok_or_else(|| {
            let mut out = self.opened.quarantined().iter().map(|one| one.descriptor.id);
            out.find(|id| *id == target.partition).map_or(Error::WrongPartition, Error::Quarantined)
        })
    }
}

/// Takes a partition that was claimed and does not open out of service, if damaged or missing files
/// are the reason.
///
/// # Errors
/// Any other reason.
fn quarantine(not: NotOpened) -> Result<Quarantined, Error> {
    match (not.claimed, not.error) {
        (Some(descriptor), error @ (Error::Corrupt(_) | Error::Unavailable(_))) => {
            let (partition, keys) = (descriptor.id, &descriptor.keys);
            tracing::error!(%partition, ?keys, %error, "partition quarantined: its names answer 503");
            Ok(Quarantined { descriptor, error })
        }
        (_, error) => Err(error),
    }
}
