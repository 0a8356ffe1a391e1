//! A node of a cluster. It has copies of extents for others from the start on, serves the
//! partitions that the map gives to it, answers clients as soon as there are partitions, and
//! manages the index once it has the claim to do so.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::Phase;
use crate::coordinator::Coordinator;
use crate::coordinator::cluster::ClusterError;
use crate::coordinator::cluster::ClusterRecord;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::node::config::Config;
use crate::node::error::NodeError;
use crate::node::foundation::Foundation;
use crate::node::keys::master_key;
use crate::node::listeners::bind;
use crate::node::listeners::bind_admin;
use crate::node::listeners::bind_clients;
use crate::node::metrics::of_roles;
use crate::node::roles::FrontRole;
use crate::node::running::Serving;
use crate::node::storage::Owner;
use crate::node::storage::Storage;
use crate::telemetry::Registry;
use crate::types::NodeRoles;

use super::authority::Authority;
use super::coordinator::connect;
use super::front;
use super::join::Joined;
use super::join::Joining;
use super::manage::ManagerSetup;
use super::manage::ManagerTask;
use super::serve::IndexSetup;
use super::serve::IndexTask;
use super::settings::NodeSettings;
use super::settings::Place;
use super::settings::Proof;
use super::token::redeem;

/// How often it is looked at whether this node can answer.
const READINESS_EVERY: Duration = Duration::from_millis(100);

/// What a node needs of the master keys.
#[derive(Debug, Default)]
struct Keys {
    secrets: Option<Secrets>,
    /// Issues its certificate.
    authority: Option<Arc<Authority>>,
}

/// Opens the master key file, if the node needs it. A token gets it.
async fn keys(
    (env, coordinator, cluster): (&Env, &dyn Coordinator, &ClusterRecord),
    place: &Place,
    (file, token): (&Path, Option<&str>),
) -> Result<Keys, NodeError> {
    let has_certificate = place.proof == Proof::Certificates;
    let has_secrets = place.roles.has_some(NodeRoles::FRONT.with(NodeRoles::MANAGER));
    if !has_secrets && !has_certificate {
        return Ok(Keys::default());
    }
    if let Some(token) = token.filter(|token| !token.is_empty())
        && master_key::read(file)?.is_none()
    {
        master_key::write(file, &redeem(coordinator, token).await?)?;
        tracing::info!(path = %file.display(), "the token gave the master key file");
    }
    // `cluster init` has made it. A node that made one would have another ring than others.
    let ring = master_key::open_for_check(file, coordinator).await?;
    let ring = ring.ok_or(ClusterError::NotMade)?;
    let mut authority = None;
    if has_certificate {
        let opened = Authority::open(coordinator, &ring, cluster, env.clock.now()).await?;
        authority = Some(Arc::new(opened));
    }
    let secrets = has_secrets.then(|| Secrets::new(ring, Arc::clone(&env.rand)));
    Ok(Keys { secrets, authority })
}

/// A node of a cluster.
#[derive(Debug)]
pub struct ClusterNode {
    config: Config,
    pub(super) foundation: Foundation,
    storage: Storage,
    joined: Arc<Joined>,
    /// Opens the secrets of the cluster, if the node has accounts or manages.
    secrets: Option<Secrets>,
    roles: NodeRoles,
    index: Option<IndexTask>,
    manager: Option<ManagerTask>,
    front: Option<FrontRole>,
}

impl ClusterNode {
    /// Starts the node up to its copies, which other nodes can use from then on.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub async fn start(
        config: Config,
        settings: &NodeSettings,
        env: Env,
    ) -> Result<Self, NodeError> {
        let place = settings.checked()?;
        // A port that is busy is found before data is touched.
        drop(bind(place.listen, "--node-listen").await?);
        let admin = bind_admin(&config.admin_listen).await?;
        let roles = place.roles;
        if roles.has(NodeRoles::FRONT) {
            // A port that is busy is found now, and not when there are partitions.
            drop(bind_clients(&config).await?);
        }
        let mut registry = Registry::default();
        let mut foundation = Foundation::start(&config, env, admin, &mut registry).await?;
        let env = foundation.env.clone();
        let coordinator = connect(&settings.coordinator, &env).await?;
        let cluster = ClusterRecord::read(&*coordinator).await?;
        let owner = Owner::Cluster(cluster);
        let storage = foundation.open_storage(&config, owner, &mut registry).await?;
        let (file, token) = (&config.master_key_file, settings.token.as_deref());
        let Keys { secrets, authority } =
            keys((&env, &*coordinator, &cluster), &place, (file, token)).await?;
        // Until it is bound, calls of other nodes are refused rather than kept waiting.
        let listener = bind(place.listen, "--node-listen").await?;
        let (storage_of, place) = (&storage, &place);
        let joining = Joining {
            env: &env,
            storage: storage_of,
            coordinator,
            cluster,
            place,
            authority,
            listener,
        };
        let joined = Arc::new(Joined::join(joining).await?);
        joined.register(of_roles(&mut registry));
        foundation.admin.registry.set(registry).expect("set once");
        if !roles.has(NodeRoles::FRONT) {
            foundation.admin.without_front_end.get_or_init(|| ());
        }
        let is_ready = !roles.has_some(NodeRoles::FRONT.with(NodeRoles::INDEX));
        foundation.admin.readiness.set(if is_ready { Phase::Ready } else { Phase::Standby });
        foundation.keep_certificate();
        if roles.has_some(NodeRoles::WRITING) {
            joined.look_after_groups();
        }
        let index = roles.has(NodeRoles::INDEX).then(|| {
            IndexTask::start(IndexSetup {
                config: config.clone(),
                env: foundation.env.clone(),
                admin: foundation.admin.clone(),
                audit_log: foundation.audit_log.clone(),
                joined: Arc::clone(&joined),
            })
        });
        let manages = secrets.clone().filter(|_| roles.has(NodeRoles::MANAGER));
        let manager = manages.map(|secrets| {
            let (config, joined) = (config.clone(), Arc::clone(&joined));
            let (env, audit_log) = (env.clone(), foundation.audit_log.clone());
            ManagerTask::start(ManagerSetup { config, env, audit_log, secrets, joined })
        });
        let front = None;
        Ok(Self { config, foundation, storage, joined, secrets, roles, index, manager, front })
    }

    /// Waits until some node serves the index, and answers clients. Returns the addresses. A node
    /// without the role for that waits for ever.
    ///
    /// Cancel safe: stop the node then.
    ///
    /// # Errors
    /// [`NodeError`]: the process must end.
    pub async fn serve(&mut self) -> Result<Serving, NodeError> {
        let answers = self.secrets.as_ref().filter(|_| self.roles.has(NodeRoles::FRONT));
        let Some(secrets) = answers else { return Err(self.ended().await) };
        let (front, serving) = tokio::select! {
            biased;
            error = self.joined.over() => return Err(error),
            started = front::start(&self.config, &self.foundation, (&self.joined, secrets)) => started?,
        };
        front.show_partitions(self.joined.partitions());
        self.front = Some(front);
        self.foundation.admin.readiness.set(Phase::Ready);
        Ok(serving)
    }

    /// Waits until the node must not serve any more, and returns why. The process must end.
    pub async fn ended(&self) -> NodeError {
        tokio::select! {
            biased;
            error = self.joined.over() => error,
            () = self.show_readiness() => NodeError::ClaimLost,
        }
    }

    /// Shows whether this node does what its roles say: a load balancer need not send clients here
    /// while it cannot answer.
    async fn show_readiness(&self) {
        let Foundation { env, admin, .. } = &self.foundation;
        loop {
            let phase = if self.is_ready() { Phase::Ready } else { Phase::Standby };
            if admin.readiness.phase() != phase {
                admin.readiness.set(phase);
            }
            env.clock.sleep(READINESS_EVERY).await;
        }
    }

    fn is_ready(&self) -> bool {
        let answers = self.front.is_some() && self.joined.links.index.is_reached();
        let serves = |index: &IndexTask| {
            // A node that answers clients may do so while others serve all partitions.
            let may_wait = self.front.is_some();
            index.is_sure(&self.joined.capacity, may_wait)
        };
        (answers || !self.roles.has(NodeRoles::FRONT)) && self.index.as_ref().is_none_or(serves)
    }

    /// Writes what is left of the audit log, before the process ends without a stop.
    pub async fn close_audit_log(self) {
        self.foundation.close_audit_log().await;
    }

    /// As [`crate::node::running::Node::login_link`].
    #[must_use]
    pub fn login_link(&self) -> Option<String> {
        self.foundation.login_link()
    }

    /// Stops the node from the top down. Another one can serve clients at once.
    pub async fn stop(self) {
        self.foundation.admin.readiness.set(Phase::Draining);
        if let Some(front) = self.front {
            front.stop().await;
        }
        // First: another node then manages when this one's partitions are free.
        if let Some(manager) = self.manager {
            manager.stop().await;
        }
        if let Some(index) = self.index {
            index.stop().await;
        }
        self.joined.leave().await;
        self.storage.capacity.shutdown().await;
        self.foundation.stop().await;
    }
}
