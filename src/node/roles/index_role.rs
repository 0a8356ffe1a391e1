//! The role that serves the partitions: index, manager and reclaim.

use std::sync::Arc;

use crate::audit_log::AuditLog;
use crate::env::Env;
use crate::env::Tasks;
use crate::index;
use crate::index::IndexHost;
use crate::index::IndexServer;
use crate::index::RunningRequests;
use crate::manager::Manager;
use crate::manager::PolicyConfig;
use crate::node::assembly::Base;
use crate::node::assembly::IndexParts;
use crate::node::assembly::IndexPlan;
use crate::node::assembly::Used;
use crate::node::config::Config;
use crate::node::error::NodeError;
use crate::reclaim::ReclaimConfig;
use crate::telemetry::Registry;

use super::with_own_tasks;

/// The partitions that this process serves.
#[derive(Debug)]
pub(in crate::node) struct IndexRole {
    parts: IndexParts,
    manager: Manager,
    /// The tasks of index hosts with a thread of their own.
    host_tasks: Vec<Tasks>,
    pub(in crate::node) reclaim: Env,
}

impl IndexRole {
    /// Recovers the index. Nothing is freed yet.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub(in crate::node) async fn start(
        config: &Config,
        base: Base,
        audit_log: &AuditLog,
        registry: &mut Registry,
    ) -> Result<Self, NodeError> {
        let reclaim = with_own_tasks(&base.env);
        let OpenIndex { parts, host_tasks, control } = open_index(config, base, registry).await?;
        let manager = parts.manager(control, balancing(config), audit_log.clone());
        Ok(Self { parts, manager, host_tasks, reclaim })
    }

    /// Starts to free what none of these requests needs. `all` are the partitions of all processes.
    pub(in crate::node) fn start_reclaim(
        &self,
        all: Arc<dyn IndexHost>,
        requests: Arc<dyn RunningRequests>,
        registry: &mut Registry,
    ) {
        let (parts, config) = (&self.parts, ReclaimConfig::default());
        let capacity = Arc::clone(&parts.base.capacity);
        // In a cluster the node that manages makes them.
        let audits = !capacity.is_shared();
        let used = Used { host: all, capacity, requests, audits };
        drop(parts.reclaim(&self.reclaim, config, used, registry));
    }

    /// The partitions.
    pub(in crate::node) fn index(&self) -> Arc<IndexServer> {
        Arc::clone(&self.parts.index)
    }

    /// The same, as front ends ask them.
    pub(in crate::node) fn host(&self) -> Arc<dyn IndexHost> {
        Arc::clone(&self.parts.host)
    }

    /// Frees nothing more. Call it while the requests of all front ends can be asked about.
    pub(in crate::node) async fn stop_reclaim(&self) {
        self.reclaim.tasks.shutdown().await;
    }

    /// The next start has nothing to replay. No request may come any more.
    pub(in crate::node) async fn stop(self) {
        self.stop_reclaim().await;
        self.manager.stop().await;
        self.parts.index.shutdown().await;
        for tasks in self.host_tasks {
            tasks.shutdown().await;
        }
    }
}

/// The index, and the tasks that it runs on.
struct OpenIndex {
    parts: IndexParts,
    host_tasks: Vec<Tasks>,
    /// The tasks that change the partition map; `host_tasks` has them too.
    control: Tasks,
}

async fn open_index(
    config: &Config,
    base: Base,
    registry: &mut Registry,
) -> Result<OpenIndex, NodeError> {
    let limits = index::Config {
        initial_partitions: u64::from(config.initial_partitions),
        memtable_bytes_max: usize::try_from(config.memtable_bytes).unwrap_or(usize::MAX),
        block_cache_bytes: usize::try_from(config.block_cache_bytes).unwrap_or(usize::MAX),
        ..index::Config::default()
    };
    let thread = |name: &str| {
        let what = "a thread for the index";
        let reason = |error: std::io::Error| error.to_string();
        Tasks::on_own_thread(name)
            .map(|tasks| tasks.reporting_to(&base.env.tasks))
            .map_err(|error| NodeError::System { what, reason: reason(error) })
    };
    let mut own = Vec::new();
    if config.index_hosts > 1 {
        for number in 0..config.index_hosts {
            own.push(thread(&format!("index-host-{number}"))?);
        }
    }
    let hosts = if own.is_empty() { vec![base.env.tasks.clone()] } else { own.clone() };
    let control = thread("index-control")?;
    own.push(control.clone());
    let changes = Some(control.clone());
    let plan = IndexPlan { config: limits, hosts: &hosts, control: changes, boundaries: None };
    let parts = IndexParts::open(base, plan, registry).await?;
    Ok(OpenIndex { parts, host_tasks: own, control })
}

/// When partitions are split, merged and moved; `None` when only commands do that.
pub(in crate::node) fn balancing(config: &Config) -> Option<PolicyConfig> {
    let hot_requests = f64::from(config.split_requests);
    (config.split_requests > 0).then(|| PolicyConfig { hot_requests, ..PolicyConfig::default() })
}
