//! The state that all steps of reclaim use.

use std::sync::Arc;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::coordinator::Coordinator;
use crate::env::Env;
use crate::index;
use crate::index::FixedMap;
use crate::index::IndexHost;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::Running;
use crate::index::RunningRequests;
use crate::reclaim::config::ReclaimConfig;
use crate::reclaim::error::Error;
use crate::reclaim::metrics::ReclaimMetrics;
use crate::reclaim::partitions::Partitions;
use crate::types::NodeId;

/// The parts of the store that reclaim uses.
#[derive(Debug)]
pub struct Setup {
    /// All partitions of the map. In a cluster other processes serve some of them.
    pub host: Arc<dyn IndexHost>,
    /// The node whose partitions it works on; zero if it is alone.
    pub node: NodeId,
    /// The partition map.
    pub partitions: Arc<dyn Partitions>,
    /// The extents.
    pub capacity: Arc<dyn Capacity>,
    /// The running requests, which may need bytes that no row names any more.
    pub requests: Arc<dyn RunningRequests>,
    /// Where the audit's cursor is kept.
    pub coordinator: Arc<dyn Coordinator>,
    /// Clock and tasks.
    pub env: Env,
    /// Pace and bounds.
    pub config: ReclaimConfig,
    /// Metrics of reclaim.
    pub metrics: ReclaimMetrics,
    /// Metrics of the partitions: many dropped shared bytes trigger an audit.
    pub index: index::Metrics,
}

/// Frees space in the background.
#[derive(Debug)]
pub struct Reclaim {
    pub(super) host: Arc<dyn IndexHost>,
    node: NodeId,
    pub(super) partitions: Arc<dyn Partitions>,
    pub(super) capacity: Arc<dyn Capacity>,
    pub(super) requests: Arc<dyn RunningRequests>,
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) env: Env,
    pub(super) config: ReclaimConfig,
    pub(super) metrics: ReclaimMetrics,
    pub(super) index: index::Metrics,
}

impl Reclaim {
    /// Reclaim whose loops are not started.
    #[must_use]
    pub fn new(setup: Setup) -> Arc<Self> {
        let Setup {
            host,
            node,
            partitions,
            capacity,
            requests,
            coordinator,
            env,
            config,
            metrics,
            index,
        } = setup;
        Arc::new(Self {
            host,
            node,
            partitions,
            capacity,
            requests,
            coordinator,
            env,
            config,
            metrics,
            index,
        })
    }

    /// Whether a request of this kind is running.
    ///
    /// # Errors
    /// [`Error::Index`] when that is not known: take it for a yes.
    pub(super) async fn is_running(&self, asked: Running) -> Result<bool, Error> {
        Ok(self.requests.is_running(asked).await?)
    }

    /// The partitions of a map that this process serves. Reclaim of other processes works on
    /// theirs.
    pub(super) fn own<'a>(
        &self,
        map: &'a PartitionMap,
    ) -> impl Iterator<Item = &'a PartitionDescriptor> {
        let node = self.node;
        map.partitions().iter().filter(move |one| one.host.node() == node)
    }

    /// A client of the owners in this map.
    pub(super) fn owners<'a>(&'a self, map: &'a PartitionMap) -> FixedMap<'a> {
        FixedMap::new(self.host.as_ref(), map)
    }

    /// Counts that a step skips a partition that fails. Work that needs the partition waits for a
    /// later pass.
    ///
    /// # Errors
    /// Errors that concern more than one partition: the map is stale, the program stops.
    pub(super) fn pass_over(&self, step: &'static str, error: Error) -> Result<(), Error> {
        match error {
            Error::Index(index::Error::WrongPartition)
            | Error::Capacity(_)
            | Error::Coordinator(_)
            | Error::Held { .. }
            | Error::Invariant { .. }
            | Error::Stopping => Err(error),
            Error::Index(error) => {
                // The pass logs one warning for all of them.
                tracing::debug!(step, %error, "reclaim skips a partition");
                self.metrics.passed_over.inc();
                Ok(())
            }
        }
    }

    /// Fails when the program stops. Called between steps, so that shutdown waits for at most one
    /// step.
    pub(super) fn go_on(&self) -> Result<(), Error> {
        if self.env.tasks.stopping().is_cancelled() { Err(Error::Stopping) } else { Ok(()) }
    }

    /// Waits. Returns false when the program stops meanwhile.
    pub(super) async fn wait(&self, pause: Duration) -> bool {
        let stopping = self.env.tasks.stopping();
        tokio::select! {
            biased;
            () = stopping.cancelled() => false,
            () = self.env.clock.sleep(pause) => true,
        }
    }
}
