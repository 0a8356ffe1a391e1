//! A node that serves. Its roles start from the bottom up and stop from the top down.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::admin::AdminServer;
use crate::admin::AdminState;
use crate::admin::ErrorForm;
use crate::admin::Phase;
use crate::admin::Token;
use crate::admin::UnservedServer;
use crate::audit_log;
use crate::audit_log::Destination;
use crate::audit_log::StartedLog;
use crate::audit_log::Writer;
use crate::capacity::CapacityMetrics;
use crate::capacity::DiskMetrics;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::frontend::Tls;
use crate::protocol::KnownHosts;
use crate::telemetry::Registry;

use super::admin_token;
use super::config::AdminAddress;
use super::config::Config;
use super::config::UnservedService;
use super::disks::NodeDisks;
use super::error::NodeError;
use super::keys::master_key;
use super::listeners::Bound;
use super::listeners::Listeners;
use super::metrics;
use super::roles::FrontEndSetup;
use super::roles::Roles;
use super::storage::Storage;
use super::tls;

/// The addresses of a node.
#[derive(Debug)]
pub struct Serving {
    /// The bound address of the blob listener.
    pub blob: SocketAddr,
    /// The bound address of the listener of S3 alone, if there is one.
    pub s3: Option<SocketAddr>,
    /// The bound address of the admin listener.
    pub admin: AdminAddress,
    /// The bound addresses of services that are not served.
    pub unserved: Vec<(UnservedService, SocketAddr)>,
    /// Set if https is served. The inner value is the file of the node's own authority, if it has
    /// one.
    pub certificate: Option<Option<PathBuf>>,
}

/// The hosts under which the admin listener is served.
fn admin_hosts(config: &Config, address: &AdminAddress) -> KnownHosts {
    match address {
        AdminAddress::Tcp(_) => config.known_hosts(),
        // No web page can reach a socket.
        AdminAddress::Unix(_) => KnownHosts { any: true, ..KnownHosts::default() },
    }
}

/// A node that serves.
#[derive(Debug)]
pub struct Node {
    /// Its addresses.
    pub serving: Serving,
    env: Env,
    admin: AdminState,
    stop_admin: CancellationToken,
    storage: Storage,
    roles: Roles,
    audit_log: Option<Writer>,
}

impl Node {
    /// Starts the roles from the bottom up. The admin listener answers first, so that the start can
    /// be observed.
    ///
    /// # Errors
    /// [`NodeError`] when the node cannot start; nothing was lost.
    pub async fn start(config: &Config, env: Env, listeners: Listeners) -> Result<Self, NodeError> {
        let dialects = listeners.dialects(config);
        let Listeners { blob, s3, admin: admin_bound, unserved, .. } = listeners;
        // Creates the folder too: the admin listener answers before storage is open.
        let token = Token::new(&admin_token::read_or_make(&config.admin_token_file)?);
        let mut certificate = tls::certificate(config, env.clock.now())?;
        let secure = certificate.as_ref().map(|certificate| certificate.tls.clone());
        let known_hosts = admin_hosts(config, &admin_bound.address);
        let log_metrics = audit_log::Metrics::default();
        let started_log = open_audit_log(config, &env, &log_metrics).await?;
        let audit_log = started_log.as_ref().map(|started| started.log.clone()).unwrap_or_default();
        let admin =
            AdminState::new(token).with_known_hosts(known_hosts).with_audit_log(audit_log.clone());
        let stop_admin = CancellationToken::new();
        let is_tcp = matches!(admin_bound.address, AdminAddress::Tcp(_));
        let tls_of_admin = secure.clone().filter(|_| is_tcp && config.admin_tls);
        let server = AdminServer::new(admin_bound.listener, admin.clone(), env.clone())
            .with_tls(tls_of_admin)
            .with_stall_limits(config.response_stall, config.response_rate_min);
        server.start(stop_admin.clone());
        let mut all = Registry::default();
        let registry = metrics::register(&mut all, &env, secure.as_ref());
        env.tasks.health().register(registry);
        log_metrics.register(registry);
        let is_new = Storage::is_new(&config.data);
        let storage = Storage::open(config, &env, CapacityMetrics::registered(registry)).await?;
        DiskMetrics::register(&storage.capacity, registry);
        let (blob_address, s3_address) = (blob.address, s3.as_ref().map(|bound| bound.address));
        let (coordinator, now) = (storage.coordinator.as_ref(), env.clock.now());
        let key_ring = master_key::open(&config.master_key_file, coordinator, is_new, now).await?;
        let plain = key_ring.plain;
        let secrets = Secrets::new(key_ring.ring, Arc::clone(&env.rand));
        let front = FrontEndSetup {
            blob,
            s3,
            dialects,
            tls: secure.clone(),
            secrets: &secrets,
            audit_log: &audit_log,
        };
        let roles = Roles::start(config, &env, &storage, front, registry).await?;
        if plain {
            roles.erase_plain_secrets(&storage, &secrets);
        }
        let (capacity, coordinator) =
            (Arc::clone(&storage.capacity), Arc::clone(&storage.coordinator));
        let disks = NodeDisks::start(capacity, coordinator, roles.index(), env.clone()).await?;
        admin.disks.set(Arc::new(disks)).expect("set once");
        let backups = roles.backups(&storage, &env, registry);
        admin.backups.set(Arc::new(backups)).expect("set once");
        admin.registry.set(all).expect("set once");
        let keys = roles.keys(&config.master_key_file, secrets.clone());
        admin.keys.set(Arc::new(keys)).expect("set once");
        admin.control.set(roles.control.clone()).expect("set once");
        let unserved = start_unserved(unserved, secure.as_ref(), (config, &env, &stop_admin));
        admin.readiness.set(Phase::Ready);
        if let Some(certificate) = &mut certificate
            && let Some(files) = certificate.files.take()
        {
            files.keep(certificate.tls.clone(), &env, stop_admin.clone());
        }
        let serving = Serving {
            blob: blob_address,
            s3: s3_address,
            admin: admin_bound.address,
            unserved,
            certificate: certificate.map(|certificate| certificate.authority),
        };
        let audit_log = started_log.map(|started| started.writer);
        Ok(Self { serving, env, admin, stop_admin, storage, roles, audit_log })
    }

    /// The path of a new link that logs one browser in to the console, once, within a minute.
    /// `None` if the operating system returns no random bytes.
    #[must_use]
    pub fn login_link(&self) -> Option<String> {
        let made = self.admin.login_link(self.env.clock.as_ref());
        made.inspect_err(|error| tracing::warn!(%error, "no login link was made")).ok()
    }

    /// Stops the roles from the top down, each when nothing uses it any more. The admin listener
    /// stops last, so that the drain can be observed.
    pub async fn stop(self) {
        self.admin.readiness.set(Phase::Draining);
        self.roles.stop().await;
        self.storage.capacity.shutdown().await;
        self.stop_admin.cancel();
        self.env.tasks.shutdown().await;
        if let Some(audit_log) = self.audit_log {
            audit_log.close().await;
        }
        tracing::info!("stopped");
    }
}

/// Answers on the ports of services that are not served. Returns their addresses.
fn start_unserved(
    ports: Vec<(UnservedService, Bound)>,
    tls: Option<&Tls>,
    (config, env, stop): (&Config, &Env, &CancellationToken),
) -> Vec<(UnservedService, SocketAddr)> {
    let start = |(service, bound): (UnservedService, Bound)| {
        let form = match service {
            UnservedService::Queue => ErrorForm::Xml,
            UnservedService::Table => ErrorForm::Odata,
        };
        let server = UnservedServer {
            listener: bound.listener,
            tls: tls.cloned(),
            service: service.name(),
            form,
            stall: config.response_stall,
        };
        server.start(env, stop.clone());
        (service, bound.address)
    };
    ports.into_iter().map(start).collect()
}

async fn open_audit_log(
    config: &Config,
    env: &Env,
    metrics: &audit_log::Metrics,
) -> Result<Option<StartedLog>, NodeError> {
    let settings = &config.audit_log;
    let started = Writer::start(settings, env, metrics.clone()).await;
    started.map_err(|error| {
        let path = match &settings.to {
            Some(Destination::File(path)) => path.clone(),
            Some(Destination::Stdout) | None => "-".into(),
        };
        NodeError::AuditLog { path, error }
    })
}
