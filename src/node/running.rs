//! A node that serves: its roles are built from below and taken down from above.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::admin::AdminServer;
use crate::admin::AdminState;
use crate::admin::Phase;
use crate::admin::Token;
use crate::audit_log;
use crate::audit_log::AuditLog;
use crate::audit_log::Destination;
use crate::audit_log::Writer;
use crate::capacity::CapacityMetrics;
use crate::capacity::DiskMetrics;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::protocol::KnownHosts;
use crate::telemetry::Registry;

use super::admin_token;
use super::config::AdminAddress;
use super::config::Config;
use super::disks::NodeDisks;
use super::error::NodeError;
use super::keys::master_key;
use super::listeners::Listeners;
use super::metrics;
use super::roles::Roles;
use super::storage::Storage;
use super::tls;

/// Where a node serves.
#[derive(Debug)]
pub struct Serving {
    /// The address of Blob, as bound.
    pub blob: SocketAddr,
    /// The address of the admin listener, as bound.
    pub admin: AdminAddress,
    /// Whether https is served; inside, the authority to trust when it is the node's own.
    pub certificate: Option<Option<PathBuf>>,
}

/// A node that serves.
#[derive(Debug)]
pub struct Node {
    /// Where it serves.
    pub serving: Serving,
    env: Env,
    admin: AdminState,
    stop_admin: CancellationToken,
    storage: Storage,
    roles: Roles,
    audit_log: Option<Writer>,
}

impl Node {
    /// Starts the roles from below. The admin listener answers first, so that the start can be
    /// watched.
    ///
    /// # Errors
    /// [`NodeError`] when the node cannot start; nothing was lost.
    pub async fn start(config: &Config, env: Env, listeners: Listeners) -> Result<Self, NodeError> {
        let Listeners { blob, admin: admin_bound } = listeners;
        // The folder may be new: storage makes it too, but the admin listener answers before
        // storage is open.
        let token = Token::new(&admin_token::read_or_make(&config.admin_token_file)?);
        let mut certificate = tls::certificate(config, env.clock.now())?;
        let secure = certificate.as_ref().map(|certificate| certificate.tls.clone());
        let known_hosts = match admin_bound.address {
            AdminAddress::Tcp(_) => config.known_hosts(),
            // No page of a browser gets there.
            AdminAddress::Unix(_) => KnownHosts { any: true, ..KnownHosts::default() },
        };
        let log_metrics = audit_log::Metrics::default();
        let (audit_log, writer) = open_audit_log(config, &env, &log_metrics).await?;
        let admin = AdminState::new(token).under(known_hosts).telling(audit_log.clone());
        let stop_admin = CancellationToken::new();
        let tls_of_admin = match admin_bound.address {
            AdminAddress::Tcp(_) if config.admin_tls => secure.clone(),
            AdminAddress::Tcp(_) | AdminAddress::Unix(_) => None,
        };
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
        let blob_address = blob.address;
        let (coordinator, now) = (storage.coordinator.as_ref(), env.clock.now());
        let key_ring = master_key::open(&config.master_key_file, coordinator, is_new, now).await?;
        let plain = key_ring.plain;
        let secrets = Secrets::new(key_ring.ring, Arc::clone(&env.rand));
        let with = (&secrets, &mut *registry, &audit_log);
        let roles = Roles::start(config, &env, &storage, (blob, secure), with).await?;
        if plain {
            roles.erase_plain_secrets(&storage, &secrets);
        }
        let parts = (Arc::clone(&storage.capacity), Arc::clone(&storage.coordinator));
        let disks = NodeDisks::start(parts, roles.index(), env.clone()).await?;
        admin.disks.set(Arc::new(disks)).expect("set once");
        let backups = roles.backups(&storage, &env, registry);
        admin.backups.set(Arc::new(backups)).expect("set once");
        admin.registry.set(all).expect("set once");
        let keys = roles.keys(&config.master_key_file, secrets.clone());
        admin.keys.set(Arc::new(keys)).expect("set once");
        admin.control.set(roles.control.clone()).expect("set once");
        admin.readiness.set(Phase::Ready);
        if let Some(certificate) = &mut certificate
            && let Some(files) = certificate.files.take()
        {
            files.keep(certificate.tls.clone(), &env, stop_admin.clone());
        }
        let serving = Serving {
            blob: blob_address,
            admin: admin_bound.address,
            certificate: certificate.map(|certificate| certificate.authority),
        };
        Ok(Self { serving, env, admin, stop_admin, storage, roles, audit_log: writer })
    }

    /// Takes the roles down from above, each when nothing uses it any more. The admin listener goes
    /// last, so that the drain can be watched.
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

async fn open_audit_log(
    config: &Config,
    env: &Env,
    metrics: &audit_log::Metrics,
) -> Result<(AuditLog, Option<Writer>), NodeError> {
    let settings = &config.audit_log;
    let started = Writer::start(settings, env, metrics.clone()).await;
    let started = started.map_err(|error| {
        let path = match &settings.to {
            Some(Destination::File(path)) => path.clone(),
            Some(Destination::Stdout) | None => "-".into(),
        };
        NodeError::AuditLog { path, error }
    })?;
    Ok(started.map_or_else(|| (AuditLog::default(), None), |(log, writer)| (log, Some(writer))))
}
