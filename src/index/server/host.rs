//! A host: partitions that share memory, cache and upkeep, and may have a thread of their own.
//!
//! 1. This file opens and closes a host. `opened.rs`: its set of partitions, which changes of the
//!    map replace.
//! 2. `upkeep.rs`: which partition to flush or compact, and when.

mod opened;
mod upkeep;

pub(crate) use opened::{Closed, Opened, Retry, is_lasting};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::index::api::Error;
use crate::index::api::Target;
use crate::index::engine::HostContext;
use crate::index::engine::NotOpened;
use crate::index::engine::Partition;
use crate::types::PartitionId;

/// A shutdown begins no chore after this time. The next owners of the partitions do the rest.
const LAST_CHORES_MAX: Duration = Duration::from_secs(5);

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) context: Arc<HostContext>,
    pub(crate) opened: Arc<Opened>,
    stop: CancellationToken,
    upkeep: Mutex<Vec<JoinHandle<()>>>,
}

impl Host {
    /// Opens partitions, several at a time. A partition whose files cannot be used stays closed:
    /// until the next start if they are damaged or missing, otherwise until a later try opens it
    /// (`server/reopen.rs`).
    ///
    /// # Errors
    /// The first error of another kind. Then no partition is open.
    pub(crate) async fn open(
        context: Arc<HostContext>,
        ids: Vec<PartitionId>,
    ) -> Result<Self, Error> {
        let common = &context;
        let opened: Vec<Result<Partition, NotOpened>> = stream::iter(ids)
            .map(|id| Partition::open_or_tell(common, id))
            .buffer_unordered(context.config.parallel_opens.max(1))
            .collect()
            .await;
        let mut partitions = BTreeMap::new();
        let (mut closed, mut failed) = (Vec::new(), None);
        for result in opened {
            match result {
                Ok(partition) => {
                    drop(partitions.insert(partition.core.id, Arc::new(partition)));
                }
                Err(not) => match Closed::after(not) {
                    Ok(one) => closed.push(one),
                    Err(error) => failed = failed.or(Some(error)),
                },
            }
        }
        if let Some(error) = failed {
            for partition in partitions.values() {
                partition.close().await;
            }
            return Err(error);
        }
        for one in &closed {
            context.deps.metrics.closed(one.is_quarantined(), 1);
        }
        let opened = Arc::new(Opened::new(partitions, closed));
        let (stop, upkeep) = (CancellationToken::new(), Mutex::default());
        Ok(Self { context, opened, stop, upkeep })
    }

    /// Starts the tasks that flush, compact and do chores.
    pub(crate) fn begin_upkeep(&self) {
        let mut tasks = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.extend(upkeep::start(&self.context, &self.opened, &self.stop));
    }

    /// Closes all partitions and ends all tasks; see [`crate::index::IndexServer::shutdown`].
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
            .for_each_concurrent(
                self.context.config.parallel_opens.max(1),
                |partition| async move {
                    partition.close().await;
                },
            )
            .await;
        if let Some(leases) = &self.context.deps.leases {
            let open = self.opened.all();
            let logs: Vec<_> = open.iter().flat_map(|one| one.newest_logs()).collect();
            leases.give_back(&logs).await;
        }
        let clock = &self.context.deps.env.clock;
        // In a cluster other processes wait for the partitions.
        let is_alone = self.context.deps.leases.is_none();
        let end = clock.monotonic() + if is_alone { LAST_CHORES_MAX } else { Duration::ZERO };
        self.context.chores.retry();
        self.context.do_due_chores(|| clock.monotonic() >= end).await;
        let left = self.context.chores.left();
        if left > 0 {
            tracing::info!(left, "the next start seals and removes logs and runs that are left");
        }
    }

    /// Serves a partition no more that another process has, or gets.
    pub(crate) async fn leave(&self, old: &Arc<Partition>) {
        let logs = old.newest_logs();
        self.opened.replace(&[Arc::clone(old)], Vec::new());
        old.abandon().await;
        // The other process waits for the end of leases.
        if let Some(leases) = &self.context.deps.leases {
            leases.give_back(&logs).await;
        }
    }

    /// # Errors
    /// As of [`Opened::find`].
    pub(crate) fn partition(&self, target: Target) -> Result<Arc<Partition>, Error> {
        self.opened.find(target.partition)
    }
}
