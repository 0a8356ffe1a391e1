//! The loop of the manager: every tick it takes a load report and carries out the policy's changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::audit_log::AuditLog;
use crate::env::Env;
use crate::index::IndexServer;
use crate::index::Plan;
use crate::manager::audit_line;
use crate::manager::policy::Policy;
use crate::manager::policy::PolicyConfig;
use crate::manager::policy::TICK;

/// The parts of the node that a manager uses.
#[derive(Debug)]
pub struct Setup {
    /// The server whose map it changes.
    pub index: Arc<IndexServer>,
    /// Clock and tasks. On a thread of their own the tasks do not wait behind thousands of
    /// requests, which is when changes are needed.
    pub env: Env,
    /// The limits of the policy. Without one load is measured, but the map is not changed.
    pub policy: Option<PolicyConfig>,
    /// Gets a line for each change.
    pub audit_log: AuditLog,
}

/// A running manager of one index server. A server has one manager at a time.
#[derive(Debug)]
pub struct Manager {
    /// Ends the loop when it is dropped: a start that fails later leaves no loop behind.
    stop: DropGuard,
    balancing: JoinHandle<()>,
}

impl Manager {
    /// Starts to measure the load and to change the map.
    #[must_use]
    pub fn start(setup: Setup) -> Self {
        let stop = CancellationToken::new();
        let env = setup.env.clone();
        let balancer = Arc::new(Balancer { setup, stop: stop.clone() });
        let balance = move || Arc::clone(&balancer).run();
        let balancing = env.supervise(audit_line::TASK, stop.clone(), balance);
        Self { balancing, stop: stop.drop_guard() }
    }

    /// Plans no further changes. Changes that have begun are completed, unless the server stops:
    /// stop the manager before its server.
    pub async fn stop(self) {
        let Self { stop, balancing } = self;
        drop(stop);
        if balancing.await.is_err() {
            tracing::error!("the index balancer panicked");
        }
    }
}

/// The state of the loop.
#[derive(Debug)]
pub(super) struct Balancer {
    pub(super) setup: Setup,
    pub(super) stop: CancellationToken,
}

impl Balancer {
    /// Measures load and changes the map until it is stopped.
    async fn run(self: Arc<Self>) {
        let Setup { index, env, policy, .. } = &self.setup;
        let mut reports = match index.load_reports() {
            Ok(reports) => reports,
            Err(error) => return tracing::error!(%error, "no load is measured"),
        };
        let mut policy = policy.map(Policy::new);
        let mut warm = BTreeSet::new();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = env.clock.sleep(TICK) => {}
            }
            reports.take();
            let Some(policy) = &mut policy else { continue };
            let report = reports.latest();
            let mut asked = BTreeSet::new();
            let plans = policy.tick(report.at, &report.hosts, &report.partitions, &mut |id| {
                asked.insert(id);
                reports.recent_keys(id)
            });
            warm.difference(&asked).for_each(|cooled| reports.rest(*cooled));
            warm = asked;
            for plan in plans {
                // In a task of its own: the reaction to a burst does not wait for a merge.
                let change = Arc::clone(&self).carry_out(plan);
                drop(env.tasks.spawn("partition change", change));
            }
        }
    }

    pub(super) async fn carry_out(self: Arc<Self>, plan: Plan) {
        let done = self.setup.index.carry_out(&plan).await;
        if let Err(error) = &done {
            tracing::warn!(?plan, %error, "the partition map was not changed as planned");
        }
        audit_line::add(&self.setup.audit_log, &plan, &done);
    }
}
