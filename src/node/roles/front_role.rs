//! The role that answers clients.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::AccountStore;
use crate::admin::AccountStoreParts;
use crate::admin::Control;
use crate::admin::Endpoints;
use crate::admin::PartitionStore;
use crate::audit_log::AuditLog;
use crate::auth::TrustedIssuer;
use crate::auth::UnsealError;
use crate::auth::unsigned_issuer;
use crate::coordinator::counter;
use crate::env::Env;
use crate::frontend;
use crate::frontend::Accounts;
use crate::frontend::Client;
use crate::frontend::FrontEnd;
use crate::frontend::FrontEndConfig;
use crate::frontend::Secrets;
use crate::frontend::Tls;
use crate::frontend::Tokens;
use crate::frontend::dialect::Dialects;
use crate::frontend::faults::Faults;
use crate::frontend::server::ServerConfig;
use crate::frontend::source::Listening;
use crate::frontend::source::Outside;
use crate::frontend::spans::Spans;
use crate::frontend::trace::Trace;
use crate::frontend::write::WriteConfig;
use crate::index::PartitionControl;
use crate::index::Router;
use crate::index::remote::ClusterIndex;
use crate::node::account_list::AccountList;
use crate::node::assembly::FrontParts;
use crate::node::config::AccountConfig;
use crate::node::config::Config;
use crate::node::config::OidcConfig;
use crate::node::config::reachable;
use crate::node::error::NodeError;
use crate::node::keys::MasterKeyError;
use crate::node::keys::reseal::reseal;
use crate::node::listeners::Bound;
use crate::telemetry::Registry;

/// Memory of all answers that are being sent. A step of a body is at most 1 MiB, so it always
/// suffices for 64 answers.
const ANSWER_BYTES_MAX: u64 = 128 << 20;
/// How long tasks of connections may continue after the drain, before the roles below them stop.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// The parts with which the front end is started.
#[derive(Debug)]
pub(in crate::node) struct FrontEndSetup<'a> {
    pub(in crate::node) blob: Bound,
    pub(in crate::node) s3: Option<Bound>,
    pub(in crate::node) dialects: Dialects,
    /// With a certificate, https is served too.
    pub(in crate::node) tls: Option<Tls>,
    pub(in crate::node) secrets: &'a Secrets,
    pub(in crate::node) audit_log: &'a AuditLog,
}

/// A front end that serves.
#[derive(Debug)]
pub(in crate::node) struct FrontRole {
    pub(in crate::node) parts: FrontParts,
    accounts: Accounts,
    serving: JoinHandle<()>,
    stop_serving: CancellationToken,
    /// The parts of the node that the admin listener shows and changes.
    pub(in crate::node) control: Control,
    /// The tasks of requests.
    pub(in crate::node) env: Env,
}

impl FrontRole {
    /// Creates the configured accounts, and serves the blob listener. `env` has the tasks of
    /// requests. With the index of a `cluster` there are other front ends: they change accounts
    /// and carry out pending copies too.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub(in crate::node) async fn start(
        config: &Config,
        (parts, env): (FrontParts, Env),
        front_end: FrontEndSetup<'_>,
        (cluster, registry): (Option<Arc<ClusterIndex>>, &mut Registry),
    ) -> Result<Self, NodeError> {
        let FrontEndSetup { blob, s3, dialects, tls, secrets, audit_log } = front_end;
        let list = account_list(config, &parts, secrets, audit_log);
        let accounts = list.read().await?;
        accounts.register(registry);
        let list = Arc::new(list);
        if let Some(index) = &cluster {
            Arc::clone(&list).follow(Arc::clone(index), &accounts, &env);
        }
        list.complete(&accounts, &env);
        let (trace, faults) = (Trace::default(), Faults::new(env.clone(), registry));
        let faults = faults.with_audit_log(audit_log.clone());
        let (http, https) = (!config.https_only, tls.is_some());
        let endpoints = Endpoints { blob: reachable(blob.address), http, https };
        let control = Control {
            accounts: account_store(config, &parts, accounts.clone(), endpoints),
            partitions: Arc::new(OnceLock::new()),
            trace: trace.clone(),
            faults: faults.clone(),
        };
        let client = Client::new();
        let tokens = tokens(config, &client, &env, registry)?;
        let spans = spans(config, &client, &env, registry)?;
        let dependencies = frontend::Dependencies {
            router: Arc::clone(&parts.router),
            pool: parts.write_pool(&env, WriteConfig::default()),
            accounts: accounts.clone(),
            tokens,
            env: env.clone(),
            container_ids: parts.base.ids(counter::CONTAINER_IDS),
            metrics: frontend::metrics::Metrics::register(registry),
            trace,
            spans,
            faults,
            audit_log: audit_log.clone(),
            capacity: Arc::clone(&parts.base.capacity),
            inflight: parts.requests.inflight.clone(),
            requests: Arc::clone(&parts.requests.all),
        };
        let listener = BlobListener { bound: blob, s3, dialects, tls };
        let BlobService { serving, stop: stop_serving } =
            serve(config, client, dependencies, (listener, cluster.is_some()))?;
        Ok(Self { parts, accounts, serving, stop_serving, control, env })
    }

    /// Shows and changes these partitions from now on.
    pub(in crate::node) fn show_partitions(&self, index: Arc<dyn PartitionControl>) {
        self.control.partitions.get_or_init(|| {
            let (router, clock) = (Arc::clone(&self.parts.router), Arc::clone(&self.env.clock));
            let partitions = PartitionStore::new(index, self.accounts.clone(), router, clock);
            partitions.keep_history(&self.env, self.env.tasks.stopping());
            partitions
        });
    }

    /// Finishes running requests and refuses new ones.
    pub(in crate::node) async fn stop(self) {
        self.stop_serving.cancel();
        if self.serving.await.is_err() {
            tracing::error!("the blob listener panicked");
        }
        tokio::select! {
            biased;
            () = self.env.tasks.shutdown() => {}
            () = self.env.clock.sleep(CUT_GRACE) => {
                tracing::warn!("some requests did not end; they are cut");
            }
        }
    }
}

fn tokens(
    config: &Config,
    client: &Client,
    env: &Env,
    registry: &mut Registry,
) -> Result<Tokens, NodeError> {
    let issuers = config.oidc.iter().map(OidcConfig::open).collect::<Result<_, _>>()?;
    Ok(Tokens::start(issuers, client, env, registry))
}

fn spans(
    config: &Config,
    client: &Client,
    env: &Env,
    registry: &mut Registry,
) -> Result<Spans, NodeError> {
    let collector = config.otlp.as_ref().map(|otlp| (otlp.endpoint.as_str(), otlp.sample));
    Ok(Spans::start(collector, client, env, registry)?)
}

/// Seals secrets that are plain or sealed under a retired master key. Returns whether all are
/// sealed under the active one: a partition that cannot be read or changed now does not end the
/// start.
pub(in crate::node) async fn seal_all(
    config: &Config,
    router: &Router,
    secrets: &Secrets,
) -> Result<bool, NodeError> {
    let done = match reseal(router, secrets).await {
        Err(NodeError::Secret { error: UnsealError::NoKey(key), .. }) => {
            let path = config.master_key_file.clone();
            return Err(MasterKeyError::Lacks { path, key }.into());
        }
        done => done?,
    };
    if done.secrets > 0 {
        let key = secrets.ring().active().id();
        tracing::info!(secrets = done.secrets, key, "secrets sealed under the active master key");
    }
    Ok(!done.incomplete)
}

/// The sources of the accounts that the front end serves.
fn account_list(
    config: &Config,
    parts: &FrontParts,
    secrets: &Secrets,
    audit_log: &AuditLog,
) -> AccountList {
    AccountList {
        configured: config.accounts.clone(),
        users: config.users.clone(),
        public_access: config.public_access,
        router: Arc::clone(&parts.router),
        secrets: secrets.clone(),
        ids: parts.base.ids(counter::ACCOUNT_IDS),
        audit_log: audit_log.clone(),
    }
}

/// The accounts, as the admin listener shows and changes them.
fn account_store(
    config: &Config,
    parts: &FrontParts,
    accounts: Accounts,
    endpoints: Endpoints,
) -> AccountStore {
    let ids = parts.base.ids(counter::ACCOUNT_IDS);
    let (containers, tasks) = (parts.containers(), parts.base.env.tasks.clone());
    AccountStore::new(AccountStoreParts { accounts, containers, ids, endpoints, tasks })
        .with_issuers(config.oidc.iter().map(|oidc| oidc.trusted().name))
}

/// The addresses on which the front end listens, and the protocols that it serves there.
struct BlobListener {
    bound: Bound,
    s3: Option<Bound>,
    dialects: Dialects,
    tls: Option<Tls>,
}

/// The running front end.
struct BlobService {
    serving: JoinHandle<()>,
    stop: CancellationToken,
}

/// The issuer of unsigned tokens, if the configuration takes them in accounts for development.
fn unsigned_tokens(config: &Config) -> Option<TrustedIssuer> {
    let is_taken = |account: &&AccountConfig| {
        config.development_tokens && (account.is_public() || account.is_for_development())
    };
    let named = config.accounts.iter().filter(is_taken);
    let named: Vec<String> = named.map(|account| account.name().as_str().to_owned()).collect();
    for account in &named {
        tracing::warn!(
            account,
            "bearer tokens are accepted without verifying their signature (--development-tokens)"
        );
    }
    (!named.is_empty()).then(|| unsigned_issuer(named))
}

fn serve(
    config: &Config,
    client: Client,
    dependencies: frontend::Dependencies,
    (listener, is_in_cluster): (BlobListener, bool),
) -> Result<BlobService, NodeError> {
    let BlobListener { bound, s3, dialects, tls } = listener;
    let wide = |number: u32| {
        usize::try_from(number).map_err(|error| NodeError::System {
            what: "a limit of this size",
            reason: error.to_string(),
        })
    };
    let limits = FrontEndConfig {
        known_hosts: config.account_hosts(),
        unsigned_tokens: unsigned_tokens(config),
        https_only: config.https_only,
        dialects,
        requests_max: wide(config.requests_max)?,
        account_requests_per_second: config.account_requests_per_second,
        last_access: config.last_access,
        body_idle: config.body_idle,
        request_rate_min: config.request_rate_min,
        response_stall: config.response_stall,
        response_rate_min: config.response_rate_min,
        answer_bytes_max: ANSWER_BYTES_MAX,
        listening: Listening(
            [Some(bound.address), s3.as_ref().map(|s3| s3.address)].into_iter().flatten().collect(),
        ),
        outside: Outside::new(config.copy_source.clone(), client)
            .at_least(config.copy_source_bytes_per_second_min),
        rehydration: config.rehydration,
        retention_day: config.retention_day,
    };
    let server = ServerConfig {
        connections_max: wide(config.connections_max)?,
        peer_connections_max: config.peer_connections_max.map(wide).transpose()?,
        first_byte_timeout: config.first_byte,
        drain: config.drain,
        ..ServerConfig::default()
    };
    let env = dependencies.env.clone();
    let tasks = &env.tasks;
    let stop = CancellationToken::new();
    let front = Arc::new(FrontEnd::new(dependencies, limits));
    let of = Arc::clone(&front);
    let watching = move || frontend::watch_answers(Arc::clone(&of));
    drop(env.supervise("answers", tasks.stopping(), watching));
    let of = Arc::clone(&front);
    let copies = move || frontend::carry_out_copies(Arc::clone(&of), is_in_cluster);
    drop(env.supervise("pending copies", tasks.stopping(), copies));
    if config.last_access {
        let of = Arc::clone(&front);
        let writing = move || frontend::write_last_access(Arc::clone(&of));
        drop(env.supervise("last access", tasks.stopping(), writing));
    }
    let listeners = frontend::Listeners { all: bound.listener, s3: s3.map(|s3| s3.listener) };
    let serving = frontend::serve(listeners, front, tls, server, stop.clone());
    let down =
        |_: &str| tracing::error!("the blob listener has ended; it accepts no more connections");
    Ok(BlobService { serving: tasks.spawn_or_stop("blob listener", serving, down), stop })
}
