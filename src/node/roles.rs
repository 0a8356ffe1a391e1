//! The roles above storage: index, front end, reclaim. They start from the bottom up and stop from
//! the top down.

use std::path::Path;
use std::sync::Arc;
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
use crate::env::Tasks;
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
use crate::index;
use crate::index::IndexServer;
use crate::index::Router;
use crate::index::RunningRequests;
use crate::manager::Manager;
use crate::manager::PolicyConfig;
use crate::reclaim::ReclaimConfig;
use crate::telemetry::Registry;

use super::account_list::AccountList;
use super::assembly::Assembly;
use super::assembly::Base;
use super::assembly::IndexPlan;
use super::backup::NodeBackups;
use super::backup::Source;
use super::config::AccountConfig;
use super::config::Config;
use super::config::OidcConfig;
use super::config::reachable;
use super::error::NodeError;
use super::keys::Erase;
use super::keys::MasterKeyError;
use super::keys::NodeKeys;
use super::keys::reseal::reseal;
use super::listeners::Bound;
use super::storage::Storage;

/// Memory of all answers that are being sent. A step of a body is at most 1 MiB, so it always
/// suffices for 64 answers.
const ANSWER_BYTES_MAX: u64 = 128 << 20;
/// How long tasks of connections may continue after the drain, before the roles below them stop.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// The running roles.
#[derive(Debug)]
pub(super) struct Roles {
    host: Arc<IndexServer>,
    manager: Manager,
    router: Arc<Router>,
    requests: Arc<dyn RunningRequests>,
    serving: JoinHandle<()>,
    stop_serving: CancellationToken,
    /// Whether this start sealed the secrets of all partitions.
    all_sealed: bool,
    /// The parts of the node that the admin listener shows and changes.
    pub control: Control,
    /// The tasks of index hosts with a thread of their own.
    host_tasks: Vec<Tasks>,
    /// Each role has tasks of its own, so that a shutdown can wait for one role while those below
    /// it still work.
    front: Env,
    reclaim: Env,
}

/// The same environment with tasks of its own.
fn with_own_tasks(env: &Env) -> Env {
    Env { tasks: Tasks::new().reporting_to(&env.tasks), ..env.clone() }
}

/// The parts with which the front end is started.
#[derive(Debug)]
pub(super) struct FrontEndSetup<'a> {
    pub(super) blob: Bound,
    pub(super) s3: Option<Bound>,
    pub(super) dialects: Dialects,
    /// With a certificate, https is served too.
    pub(super) tls: Option<Tls>,
    pub(super) secrets: &'a Secrets,
    pub(super) audit_log: &'a AuditLog,
}

impl Roles {
    /// Recovers the index, creates the configured accounts, and serves the blob listener.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub(super) async fn start(
        config: &Config,
        base: Base,
        front_end: FrontEndSetup<'_>,
        registry: &mut Registry,
    ) -> Result<Self, NodeError> {
        let FrontEndSetup { blob, s3, dialects, tls, secrets, audit_log } = front_end;
        let (front, reclaim) = (with_own_tasks(&base.env), with_own_tasks(&base.env));
        let OpenIndex { assembly, host_tasks, control } =
            open_index(config, base, &front, registry).await?;
        let host = Arc::clone(&assembly.index);
        let manager = assembly.manager(control, balancing(config), audit_log.clone());
        let router = Arc::clone(&assembly.router);
        let base = &assembly.base;
        let all_sealed = seal_all(config, &router, secrets).await?;
        let list = account_list(config, &assembly, secrets, audit_log);
        let accounts = list.read().await?;
        accounts.register(registry);
        Arc::new(list).complete(&accounts, &front);
        let freed_from = Arc::clone(&base.capacity);
        drop(assembly.reclaim(&reclaim, ReclaimConfig::default(), freed_from, registry));
        let (trace, faults) = (Trace::default(), Faults::new(front.clone(), registry));
        let faults = faults.with_audit_log(audit_log.clone());
        let (http, https) = (!config.https_only, tls.is_some());
        let endpoints = Endpoints { blob: reachable(blob.address), http, https };
        let partitions = partition_store(&assembly, accounts.clone(), &front);
        partitions.keep_history(&front, front.tasks.stopping());
        let control = Control {
            accounts: account_store(config, &assembly, accounts.clone(), endpoints),
            partitions,
            trace: trace.clone(),
            faults: faults.clone(),
        };
        let client = Client::new();
        let tokens = tokens(config, &client, &front, registry)?;
        let spans = spans(config, &client, &front, registry)?;
        let requests = assembly.requests();
        let dependencies = frontend::Dependencies {
            router: Arc::clone(&router),
            pool: assembly.write_pool(&front, WriteConfig::default()),
            accounts,
            tokens,
            env: front.clone(),
            container_ids: base.ids(counter::CONTAINER_IDS),
            metrics: frontend::metrics::Metrics::register(registry),
            trace,
            spans,
            faults,
            audit_log: audit_log.clone(),
            capacity: Arc::clone(&base.capacity),
            inflight: assembly.inflight.clone(),
            requests: Arc::clone(&requests),
        };
        let listener = BlobListener { bound: blob, s3, dialects, tls };
        let BlobService { serving, stop: stop_serving } =
            serve(config, client, dependencies, listener)?;
        Ok(Self {
            host,
            manager,
            router,
            requests,
            serving,
            stop_serving,
            all_sealed,
            control,
            host_tasks,
            front,
            reclaim,
        })
    }

    /// The partitions served here.
    #[must_use]
    pub(super) fn index(&self) -> Arc<IndexServer> {
        Arc::clone(&self.host)
    }

    /// Backups of the store.
    #[must_use]
    pub(super) fn backups(
        &self,
        storage: &Storage,
        env: &Env,
        registry: &mut Registry,
    ) -> NodeBackups {
        let source = Source::serving(storage, self.index(), Arc::clone(&self.requests));
        NodeBackups::new(source, env.clone()).registered(registry)
    }

    /// The master keys, as the admin listener shows and rotates them.
    #[must_use]
    pub(super) fn keys(&self, file: &Path, secrets: Secrets) -> NodeKeys {
        NodeKeys::new(file, secrets, Arc::clone(&self.router), self.front.clone())
    }

    /// Rewrites files in which older releases left secrets plain.
    pub(super) fn erase_plain_secrets(&self, storage: &Storage, secrets: &Secrets) {
        let erase = Erase {
            index: self.index(),
            capacity: Arc::clone(&storage.capacity),
            coordinator: Arc::clone(&storage.coordinator),
            ring: secrets.ring().id(),
            sealed: self.all_sealed,
            router: Arc::clone(&self.router),
            secrets: secrets.clone(),
        };
        erase.start(&self.reclaim);
    }

    /// Finishes running requests and refuses new ones. The next start has nothing to replay.
    pub(super) async fn stop(self) {
        self.stop_serving.cancel();
        if self.serving.await.is_err() {
            tracing::error!("the blob listener panicked");
        }
        tokio::select! {
            biased;
            () = self.front.tasks.shutdown() => {}
            () = self.front.clock.sleep(CUT_GRACE) => {
                tracing::warn!("some requests did not end; they are cut");
            }
        }
        self.reclaim.tasks.shutdown().await;
        self.manager.stop().await;
        self.host.shutdown().await;
        for tasks in self.host_tasks {
            tasks.shutdown().await;
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

/// The index, and the tasks that it runs on.
struct OpenIndex {
    assembly: Assembly,
    host_tasks: Vec<Tasks>,
    /// The tasks that change the partition map; `host_tasks` has them too.
    control: Tasks,
}

async fn open_index(
    config: &Config,
    base: Base,
    front: &Env,
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
    let assembly = Assembly::open(base, plan, front, registry).await?;
    Ok(OpenIndex { assembly, host_tasks: own, control })
}

/// Seals secrets that are plain or sealed under a retired master key. Returns whether all are
/// sealed under the active one: a partition that cannot be read or changed now does not end the
/// start.
async fn seal_all(config: &Config, router: &Router, secrets: &Secrets) -> Result<bool, NodeError> {
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

/// When partitions are split, merged and moved; `None` when only commands do that.
fn balancing(config: &Config) -> Option<PolicyConfig> {
    let hot_requests = f64::from(config.split_requests);
    (config.split_requests > 0).then(|| PolicyConfig { hot_requests, ..PolicyConfig::default() })
}

/// The sources of the accounts that the front end serves.
fn account_list(
    config: &Config,
    assembly: &Assembly,
    secrets: &Secrets,
    audit_log: &AuditLog,
) -> AccountList {
    AccountList {
        configured: config.accounts.clone(),
        users: config.users.clone(),
        public_access: config.public_access,
        router: Arc::clone(&assembly.router),
        secrets: secrets.clone(),
        ids: assembly.base.ids(counter::ACCOUNT_IDS),
        audit_log: audit_log.clone(),
    }
}

/// The partitions, as the admin listener shows and changes them.
fn partition_store(assembly: &Assembly, accounts: Accounts, front: &Env) -> PartitionStore {
    let (host, router) = (Arc::clone(&assembly.index), Arc::clone(&assembly.router));
    PartitionStore::new(host, accounts, router, Arc::clone(&front.clock))
}

/// The accounts, as the admin listener shows and changes them.
fn account_store(
    config: &Config,
    assembly: &Assembly,
    accounts: Accounts,
    endpoints: Endpoints,
) -> AccountStore {
    let ids = assembly.base.ids(counter::ACCOUNT_IDS);
    let (containers, tasks) = (assembly.containers(), assembly.base.env.tasks.clone());
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
    BlobListener { bound, s3, dialects, tls }: BlobListener,
) -> Result<BlobService, NodeError> {
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
    let copies = move || frontend::carry_out_copies(Arc::clone(&of));
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

#[cfg(test)]
mod tests;
