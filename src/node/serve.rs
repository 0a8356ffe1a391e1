//! `blockyard serve`: builds the roles from below, serves, and takes them down from above.

use std::io::Write;
use std::net::SocketAddr;
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
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::frontend::Secrets;
use crate::protocol::KnownHosts;
use crate::telemetry::Registry;

use super::admin_address::AdminAddress;
use super::admin_token;
use super::banner::Banner;
use super::config::Config;
use super::config::ConfigError;
use super::disk_store::NodeDisks;
use super::error::NodeError;
use super::listeners::Listeners;
use super::master_key;
use super::metrics;
use super::oidc::OidcConfig;
use super::roles::Roles;
use super::signals::Signals;
use super::storage::Storage;
use super::tls;
use super::tls::Certificate;

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Running requests were answered, everything is durable where the next start finds it fastest.
    Drained,
    /// A second signal cut the drain short: the next start recovers, as after a crash.
    Cut,
}

/// Serves until a signal asks for the end.
///
/// # Errors
/// [`NodeError`] when the node cannot start.
pub async fn serve(config: Config) -> Result<Ended, NodeError> {
    if config.accounts.is_empty() && Storage::is_new(&config.data) {
        return Err(ConfigError::NoAccount.into());
    }
    let mut signals = Signals::new()
        .map_err(|error| NodeError::System { what: "signals", reason: error.to_string() })?;
    let env = Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
    let listeners = Listeners::bind(&config).await?;
    let node = tokio::select! {
        biased;
        node = Node::start(&config, env, listeners) => node?,
        signal = signals.next() => {
            // Recovery is safe to cut at any point.
            tracing::info!(signal, "stopped while starting");
            return Ok(Ended::Cut);
        }
    };
    let signal = signals.next().await;
    tracing::info!(signal, "draining; a second signal ends the program at once");
    tokio::select! {
        biased;
        () = node.stop() => Ok(Ended::Drained),
        signal = signals.next() => {
            tracing::warn!(signal, "ended at once");
            Ok(Ended::Cut)
        }
    }
}

/// A node that serves.
#[derive(Debug)]
struct Node {
    env: Env,
    admin: AdminState,
    stop_admin: CancellationToken,
    storage: Storage,
    roles: Roles,
    audit_log: Option<Writer>,
}

impl Node {
    async fn start(config: &Config, env: Env, listeners: Listeners) -> Result<Self, NodeError> {
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
        let disks = NodeDisks::start(parts, roles.fleet(), env.clone()).await?;
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
        announce(config, (blob_address, &admin_bound.address), certificate.as_ref(), &env);
        Ok(Self { env, admin, stop_admin, storage, roles, audit_log: writer })
    }

    /// Takes the roles down from above, each when nothing uses it any more. The admin listener goes
    /// last, so that the drain can be watched.
    async fn stop(self) {
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

fn announce(
    config: &Config,
    (blob, admin): (SocketAddr, &AdminAddress),
    certificate: Option<&Certificate>,
    env: &Env,
) {
    let data: Vec<String> = config.data.iter().map(|path| path.display().to_string()).collect();
    let issuers: Vec<_> = config.oidc.iter().map(OidcConfig::trusted).collect();
    for issuer in &issuers {
        let accounts = issuer.accounts.join(", ");
        let claims = if accounts.is_empty() { "nowhere: no account= in --oidc" } else { &accounts };
        tracing::info!(
            issuer = issuer.name,
            claims,
            "bearer tokens are accepted; roles that they claim count in the accounts of `claims`"
        );
    }
    let banner = Banner {
        blob,
        admin,
        admin_tls: config.admin_tls,
        accounts: &config.accounts,
        token_file: &config.admin_token_file,
        data: &data.join(", "),
        certificate: certificate.map(|certificate| certificate.authority.as_deref()),
        issuers: &issuers,
        https_only: config.https_only,
        now: env.clock.now(),
        started_in_ms: env.clock.monotonic().as_millis(),
    };
    let text = banner.text();
    // Nobody may be listening to standard output; that is no reason not to serve.
    let written = if config.audit_log.to == Some(Destination::Stdout) {
        // There are lines for machines.
        std::io::stderr().write_all(text.as_bytes())
    } else {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    if let Err(error) = written {
        tracing::debug!(%error, "the banner was not printed");
    }
    tracing::info!(%blob, %admin, "serving");
}
