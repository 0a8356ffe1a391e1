//! The parts of a node below its roles: the admin listener, which answers first so that the start
//! can be observed; the certificate, the audit log, the metrics and the data directories.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::admin::AdminServer;
use crate::admin::AdminState;
use crate::admin::Token;
use crate::audit_log;
use crate::audit_log::AuditLog;
use crate::audit_log::Destination;
use crate::audit_log::StartedLog;
use crate::audit_log::Writer;
use crate::capacity::CapacityMetrics;
use crate::capacity::DiskMetrics;
use crate::env::Env;
use crate::frontend::Tls;
use crate::protocol::KnownHosts;
use crate::telemetry::Registry;

use super::admin_token;
use super::config::AdminAddress;
use super::config::Config;
use super::error::NodeError;
use super::listeners::AdminBound;
use super::metrics;
use super::storage::Owner;
use super::storage::Storage;
use super::tls;
use super::tls::Certificate;

/// A node without its roles.
#[derive(Debug)]
pub(super) struct Foundation {
    pub(super) env: Env,
    pub(super) admin: AdminState,
    /// The address of the admin listener.
    pub(super) admin_address: AdminAddress,
    pub(super) certificate: Option<Certificate>,
    pub(super) audit_log: AuditLog,
    stop_admin: CancellationToken,
    writer: Option<Writer>,
}

impl Foundation {
    /// Starts the admin listener and opens certificate and audit log. Their metrics are registered,
    /// and those of the process.
    ///
    /// # Errors
    /// [`NodeError`]; no data was touched.
    pub(super) async fn start(
        config: &Config,
        env: Env,
        admin_bound: AdminBound,
        registry: &mut Registry,
    ) -> Result<Self, NodeError> {
        // Creates the folder too: the admin listener answers before storage is open.
        let token = Token::new(&admin_token::read_or_make(&config.admin_token_file)?);
        let certificate = tls::certificate(config, env.clock.now())?;
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
        let ours = metrics::register(registry, &env, secure.as_ref());
        env.tasks.health().register(ours);
        log_metrics.register(ours);
        let (admin_address, writer) =
            (admin_bound.address, started_log.map(|started| started.writer));
        Ok(Self { env, admin, admin_address, certificate, audit_log, stop_admin, writer })
    }

    /// Opens the data directories.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub(super) async fn open_storage(
        &self,
        config: &Config,
        owner: Owner,
        registry: &mut Registry,
    ) -> Result<Storage, NodeError> {
        let ours = metrics::of_roles(registry);
        let metrics = CapacityMetrics::registered(ours);
        let storage = Storage::open(config, &self.env, metrics, owner).await?;
        DiskMetrics::register(&storage.capacity, ours);
        Ok(storage)
    }

    /// For handshakes, if https is served.
    pub(super) fn tls(&self) -> Option<Tls> {
        self.certificate.as_ref().map(|certificate| certificate.tls.clone())
    }

    /// The file of the node's own authority, if it serves https; the inner value is `None` if it
    /// does so with another certificate.
    pub(super) fn authority(&self) -> Option<Option<PathBuf>> {
        self.certificate.as_ref().map(|certificate| certificate.authority.clone())
    }

    /// The path of a new link that logs one browser in to the console, once, within a minute.
    /// `None` if the operating system returns no random bytes.
    pub(super) fn login_link(&self) -> Option<String> {
        let made = self.admin.login_link(self.env.clock.as_ref());
        made.inspect_err(|error| tracing::warn!(%error, "no login link was made")).ok()
    }

    /// Cancelled when the admin listener stops, and all that it observes has stopped.
    pub(super) const fn stopping(&self) -> &CancellationToken {
        &self.stop_admin
    }

    /// Reads replaced files of the certificate from now on.
    pub(super) fn keep_certificate(&mut self) {
        if let Some(certificate) = &mut self.certificate
            && let Some(files) = certificate.files.take()
        {
            files.keep(certificate.tls.clone(), &self.env, self.stop_admin.clone());
        }
    }

    /// Ends the audit log, and nothing else.
    pub(super) async fn close_audit_log(self) {
        if let Some(writer) = self.writer {
            writer.close().await;
        }
    }

    /// Stops the admin listener and ends the audit log.
    pub(super) async fn stop(self) {
        self.stop_admin.cancel();
        self.env.tasks.shutdown().await;
        if let Some(writer) = self.writer {
            writer.close().await;
        }
        tracing::info!("stopped");
    }
}

/// The hosts under which the admin listener is served.
fn admin_hosts(config: &Config, address: &AdminAddress) -> KnownHosts {
    match address {
        AdminAddress::Tcp(_) => config.known_hosts(),
        // No web page can reach a socket.
        AdminAddress::Unix(_) => KnownHosts { any: true, ..KnownHosts::default() },
    }
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
