//! The front end of a node. It answers clients wherever the index is served.

use std::sync::Arc;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::capacity::ExtentIds;
use crate::coordinator;
use crate::frontend::Secrets;
use crate::index;
use crate::index::IndexHost;
use crate::node::assembly::Base;
use crate::node::assembly::FrontParts;
use crate::node::config::Config;
use crate::node::error::NodeError;
use crate::node::foundation::Foundation;
use crate::node::listeners::bind_clients;
use crate::node::listeners::dialects;
use crate::node::metrics;
use crate::node::roles::FrontEndSetup;
use crate::node::roles::FrontRole;
use crate::node::roles::with_own_tasks;
use crate::node::running::Serving;
use crate::telemetry::Registry;

use super::join::Joined;

/// The pause before the next try, while there are no partitions. It doubles each time.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Starts the front end when there are partitions.
///
/// # Errors
/// [`NodeError`].
pub(super) async fn start(
    config: &Config,
    foundation: &Foundation,
    (joined, secrets): (&Joined, &Secrets),
) -> Result<(FrontRole, Serving), NodeError> {
    let (mut pause, mut is_logged) = (PAUSE, false);
    loop {
        let error = match attempt(config, foundation, (joined, secrets)).await {
            Err(error) if passes(&error) => error,
            ended => return ended,
        };
        if !is_logged {
            tracing::info!(%error, "the front end starts when there are partitions");
        }
        is_logged = true;
        foundation.env.clock.sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Whether the next try may succeed.
fn passes(error: &NodeError) -> bool {
    if let NodeError::Index(error) = error {
        return match error {
            index::Error::WrongPartition
            | index::Error::Overloaded
            | index::Error::Unavailable(_)
            | index::Error::NoAnswer(_) => true,
            index::Error::Full(_) | index::Error::Corrupt(_) | index::Error::Refused(_) => false,
        };
    }
    let NodeError::CoordinatorFailed(error) = error else { return false };
    match error {
        coordinator::Error::Unavailable { .. }
        | coordinator::Error::Ambiguous
        | coordinator::Error::Compacted => true,
        coordinator::Error::SessionEnded | coordinator::Error::Corrupt { .. } => false,
    }
}

async fn attempt(
    config: &Config,
    foundation: &Foundation,
    (joined, secrets): (&Joined, &Secrets),
) -> Result<(FrontRole, Serving), NodeError> {
    let index = &joined.links.index;
    // Before a cluster's first start there is no partition map, which would count as damage.
    if joined.map.all(|_| true).is_empty() {
        return Err(index::Error::Overloaded.into());
    }
    let env = with_own_tasks(&foundation.env);
    let base = Base {
        env: foundation.env.clone(),
        capacity: Arc::clone(&joined.capacity) as Arc<dyn Capacity>,
        coordinator: Arc::clone(&joined.coordinator),
        node: joined.identity.node,
        cluster: joined.cluster.number,
        extent_ids: joined.groups_for_us() as Arc<dyn ExtentIds>,
        leases: None,
        writers: None,
    };
    let (host, requests) = (Arc::clone(index) as Arc<dyn IndexHost>, joined.links.requests.clone());
    let parts = FrontParts::new(base, host, requests, &env).await?;
    let (blob, s3) = bind_clients(config).await?;
    let serving = Serving {
        blob: blob.address,
        s3: s3.as_ref().map(|bound| bound.address),
        admin: foundation.admin_address.clone(),
        unserved: Vec::new(),
        certificate: foundation.authority(),
    };
    let setup = FrontEndSetup {
        blob,
        s3,
        dialects: dialects(config),
        tls: foundation.tls(),
        secrets,
        audit_log: &foundation.audit_log,
    };
    let mut all = Registry::default();
    let cluster = (Some(Arc::clone(index)), metrics::of_roles(&mut all));
    match FrontRole::start(config, (parts, env.clone()), setup, cluster).await {
        Ok(front) => {
            let admin = &foundation.admin;
            admin.registry_of_roles.set(all).expect("set once");
            admin.control.set(front.control.clone()).expect("set once");
            Ok((front, serving))
        }
        Err(error) => {
            env.tasks.shutdown().await;
            Err(error)
        }
    }
}
