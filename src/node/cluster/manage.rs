//! Managing the index, by the one node that has the claim to do so: which process serves which
//! partition, and repair.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::audit_log::AuditLog;
use crate::coordinator::claim::Claim;
use crate::coordinator::claim::MANAGES_INDEX;
use crate::coordinator::claim::Waiting;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::index;
use crate::index::IndexHost;
use crate::index::PartitionCounts;
use crate::index::Read;
use crate::index::Router;
use crate::index::Target;
use crate::manager::HostManager;
use crate::manager::MovesPartitions;
use crate::node::config::Config;
use crate::node::error::NodeError;
use crate::node::roles::balancing;
use crate::node::roles::seal_all;
use crate::types::HostId;
use crate::types::NodeId;

use super::join::Joined;

/// The pause before secrets are sealed again that could not be.
const SEALS_AGAIN: Duration = Duration::from_secs(5);

/// A node that waits for the claim to manage the index, or manages it.
#[derive(Debug)]
pub(super) struct ManagerTask {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What a node needs for that.
#[derive(Debug)]
pub(super) struct ManagerSetup {
    pub(super) config: Config,
    pub(super) env: Env,
    pub(super) audit_log: AuditLog,
    pub(super) secrets: Secrets,
    pub(super) joined: Arc<Joined>,
}

/// Moves partitions by calls to the processes that serve them.
#[derive(Debug)]
struct Moves(Arc<Joined>);

#[async_trait]
impl MovesPartitions for Moves {
    fn takes(&self, node: NodeId) -> bool {
        self.0.takes_partitions(node)
    }

    async fn asked(&self, target: Target) -> Result<(), index::Error> {
        self.0.links.index.read(target, Read::DeadContainers).await.map(|_| ())
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), index::Error> {
        self.0.partitions().give(target, to).await
    }

    async fn counts(&self) -> Vec<PartitionCounts> {
        self.0.partitions().counts().await.unwrap_or_default()
    }
}

impl ManagerTask {
    pub(super) fn start(setup: ManagerSetup) -> Self {
        let stop = CancellationToken::new();
        let (stopping, tasks) = (stop.clone(), setup.env.tasks.clone());
        let over = Arc::clone(&setup.joined.over);
        // The claim would be renewed for ever.
        let down = move |_: &str| over.say(NodeError::ClaimLost);
        let task = tasks.spawn_or_stop("manage the index", setup.run(stopping), down);
        Self { stop, task }
    }

    /// Stops managing, and gives the claim back.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "managing the index");
        }
    }
}

impl ManagerSetup {
    /// Waits for the claim, and manages until it is lost, again and again.
    async fn run(self, stop: CancellationToken) {
        let Self { env, joined, .. } = &self;
        let watch = joined.watch_holder();
        let (key, holder) = (Bytes::from_static(MANAGES_INDEX), joined.holder());
        let waiting = Waiting { key, holder, watch: &watch };
        loop {
            let claim = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                claim = waiting.run(&joined.coordinator, &env.clock) => claim,
            };
            tracing::info!("this node manages the index now");
            joined.metrics.manages.set(1);
            let manager = HostManager {
                coordinator: Arc::new(claim.guard()),
                cluster: joined.cluster.number,
                initial_partitions: u64::from(self.config.initial_partitions),
                map: Arc::clone(&joined.map),
                claims: Arc::clone(&joined.links.claims),
                watch: Arc::new(joined.watch_holder()),
                moves: Arc::new(Moves(Arc::clone(joined))),
                policy: balancing(&self.config),
                audit_log: self.audit_log.clone(),
                clock: Arc::clone(&env.clock),
            };
            let _audits = self.start_audits(&claim);
            let is_lost = tokio::select! {
                biased;
                () = stop.cancelled() => false,
                () = claim.keep() => true,
                () = manager.run() => true,
                () = joined.repair().run() => true,
                () = self.seal_secrets() => true,
            };
            joined.metrics.manages.set(0);
            joined.metrics.unfinished.set(0);
            claim.release().await;
            if !is_lost {
                return;
            }
            tracing::warn!("this node does not manage the index any more");
        }
    }

    /// Starts audits, which end when the returned guard is dropped. A panic of one does not end the
    /// process: the next manager would meet the same.
    fn start_audits(&self, claim: &Claim) -> DropGuard {
        let (audits, ended) = (self.joined.audits(claim, &self.env), CancellationToken::new());
        let (stop, guard) = (ended.clone(), ended.clone().drop_guard());
        let make = move || {
            let (audits, ended) = (Arc::clone(&audits), ended.clone());
            async move {
                tokio::select! {
                    biased;
                    () = ended.cancelled() => {}
                    () = audits.audits() => {}
                }
            }
        };
        drop(self.env.supervise("audits of the cluster", stop, make));
        guard
    }

    /// Seals secrets that are sealed under a retired master key, then waits for ever.
    async fn seal_secrets(&self) {
        let Self { config, env, secrets, joined, .. } = self;
        loop {
            let host = Arc::clone(&joined.links.index) as Arc<dyn IndexHost>;
            let error = match Router::new(host, Arc::clone(&joined.coordinator), env.clone()).await
            {
                Ok(router) => match seal_all(config, &router, secrets).await {
                    Ok(true) => std::future::pending().await,
                    Ok(false) => index::Error::Overloaded,
                    Err(NodeError::Index(error)) => error,
                    // No other node could serve either.
                    Err(error) => return joined.over.say(error),
                },
                Err(error) => error,
            };
            tracing::debug!(%error, "secrets are sealed under the active master key later");
            env.clock.sleep(SEALS_AGAIN).await;
        }
    }
}
