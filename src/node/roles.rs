//! The roles above storage: index, front end, reclaim. Started from below, taken down from above.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::AccountStore;
use crate::admin::Control;
use crate::admin::Endpoints;
use crate::admin::PartitionStore;
use crate::admin::new_delegation_secret;
use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::audit_log::Thing;
use crate::auth::DelegationSecret;
use crate::capacity::Capacity;
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::coordinator::counter;
use crate::env::Env;
use crate::env::Tasks;
use crate::frontend;
use crate::frontend::Accounts;
use crate::frontend::Client;
use crate::frontend::FrontEnd;
use crate::frontend::FrontEndConfig;
use crate::frontend::Router;
use crate::frontend::Tls;
use crate::frontend::Tokens;
use crate::frontend::accounts::Account;
use crate::frontend::faults::Faults;
use crate::frontend::server::ServerConfig;
use crate::frontend::source::Listening;
use crate::frontend::source::Outside;
use crate::frontend::trace::Trace;
use crate::frontend::write::WriteConfig;
use crate::frontend::write::WritePool;
use crate::index;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::index::Fleet;
use crate::index::InFlight;
use crate::index::IndexHost;
use crate::index::ListAccounts;
use crate::index::Objects;
use crate::index::PolicyConfig;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Write;
use crate::index::WriteReply;
use crate::protocol::azure::Addressing;
use crate::reclaim::CoordinatorPartitions;
use crate::reclaim::Reclaim;
use crate::reclaim::ReclaimConfig;
use crate::reclaim::ReclaimMetrics;
use crate::reclaim::Setup;
use crate::telemetry::Registry;
use crate::types::AccountId;
use crate::types::AccountName;

use super::config::Config;
use super::config::ConfigError;
use super::error::NodeError;
use super::health::reachable;
use super::listeners::Bound;
use super::oidc::OidcConfig;
use super::storage::Storage;

/// Accounts read at a time.
const ACCOUNTS_PAGE: usize = 1000;
/// Bytes that answers on their way out hold together. A step of a body is 1 MiB at most, so 64 at a
/// time are never short of it.
const ANSWER_BYTES_MAX: u64 = 128 << 20;
/// What tasks of connections that outlived the drain get before the roles below them stop.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// The running roles.
#[derive(Debug)]
pub struct Roles {
    host: Arc<Fleet>,
    inflight: InFlight,
    serving: JoinHandle<()>,
    stop_serving: CancellationToken,
    /// What the admin listener shows and changes.
    pub control: Control,
    /// Threads of hosts that have their own.
    host_tasks: Vec<Tasks>,
    /// Each role has tasks of its own, so that one can be waited for while those below still work.
    front: Env,
    reclaim: Env,
}

/// What a start needs of the layers below.
#[derive(Debug)]
struct Base {
    env: Env,
    capacity: Arc<dyn Capacity>,
    coordinator: Arc<dyn Coordinator>,
    inflight: InFlight,
}

impl Base {
    fn ids(&self, counter: &[u8]) -> Arc<IdAllocator> {
        Arc::new(IdAllocator::new(Arc::clone(&self.coordinator), counter))
    }

    fn with_own_tasks(&self) -> Env {
        Env { tasks: Tasks::new().reporting_to(&self.env.tasks), ..self.env.clone() }
    }
}

impl Roles {
    /// Recovers the index, makes the configured accounts, and serves on `blob`, https too when there is a certificate.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub async fn start(
        config: &Config,
        env: &Env,
        storage: &Storage,
        (blob, tls): (Bound, Option<Tls>),
        (registry, audit_log): (&mut Registry, &AuditLog),
    ) -> Result<Self, NodeError> {
        let base = Base {
            env: env.clone(),
            capacity: Arc::clone(&storage.capacity) as Arc<dyn Capacity>,
            coordinator: Arc::clone(&storage.coordinator),
            inflight: InFlight::default(),
        };
        let inflight = base.inflight.clone();
        let extents_before_open = base.capacity.extents().await;
        let extent_ids = base.ids(counter::EXTENT_IDS);
        let index_metrics = index::Metrics::default();
        index_metrics.register(registry);
        let (host, host_tasks) =
            open_index(config, &base, &extent_ids, (&index_metrics, audit_log)).await?;
        let hosted = Arc::clone(&host) as Arc<dyn IndexHost>;
        let hot_requests = f64::from(config.split_requests);
        let policy = (config.split_requests > 0)
            .then(|| PolicyConfig { hot_requests, ..PolicyConfig::default() });
        Arc::clone(&host).start_balance(policy);
        let (front, reclaim) = (base.with_own_tasks(), base.with_own_tasks());
        let router =
            Router::new(Arc::clone(&hosted), Arc::clone(&base.coordinator), front.clone()).await?;
        let router = Arc::new(router);
        let accounts = make_accounts(config, &base, (&router, audit_log)).await?;
        Reclaim::start(Setup {
            host: hosted,
            partitions: Arc::new(CoordinatorPartitions(Arc::clone(&base.coordinator))),
            capacity: Arc::clone(&base.capacity),
            inflight: base.inflight.clone(),
            env: reclaim.clone(),
            config: ReclaimConfig::default(),
            metrics: ReclaimMetrics::registered(registry),
            index: index_metrics,
            extents_before_open,
        });
        let pool = WritePool::start(
            WriteConfig::default(),
            Arc::clone(&base.capacity),
            extent_ids,
            base.inflight.clone(),
            front.clone(),
        );
        let (http, https) = (!config.https_only, tls.is_some());
        let endpoints = Endpoints { blob: reachable(blob.address), http, https };
        let accounts_admin = AccountStore::new(
            (accounts.clone(), Arc::clone(&router)),
            base.ids(counter::ACCOUNT_IDS),
            endpoints,
        )
        .with_issuers(config.oidc.iter().map(|oidc| oidc.trusted().name));
        let partitions = PartitionStore::new(
            Arc::clone(&host),
            (accounts.clone(), Arc::clone(&router)),
            Arc::clone(&front.clock),
        );
        let (trace, faults) = (Trace::default(), Faults::new(front.clone(), registry));
        let faults = faults.telling(audit_log.clone());
        let client = Client::new();
        let issuers = config.oidc.iter().map(OidcConfig::open).collect::<Result<_, _>>()?;
        let tokens = Tokens::start(issuers, &client, &front, registry);
        let parts = frontend::Parts {
            router,
            pool,
            accounts,
            tokens,
            env: front.clone(),
            container_ids: base.ids(counter::CONTAINER_IDS),
            metrics: frontend::metrics::Metrics::register(registry),
            trace: trace.clone(),
            faults: faults.clone(),
            audit_log: audit_log.clone(),
            capacity: base.capacity,
            inflight: base.inflight,
        };
        let (serving, stop_serving) = serve((config, client), parts, (blob, tls))?;
        let control = Control { accounts: accounts_admin, trace, faults, partitions };
        Ok(Self { host, inflight, serving, stop_serving, control, host_tasks, front, reclaim })
    }

    /// What running requests need.
    #[must_use]
    pub fn inflight(&self) -> InFlight {
        self.inflight.clone()
    }

    /// The partitions served here.
    #[must_use]
    pub fn fleet(&self) -> Arc<Fleet> {
        Arc::clone(&self.host)
    }

    /// Answers what runs, takes nothing new, and leaves nothing to replay for the next start.
    pub async fn stop(self) {
        self.stop_serving.cancel();
        if self.serving.await.is_err() {
            tracing::error!("the blob listener had panicked");
        }
        tokio::select! {
            biased;
            () = self.front.tasks.shutdown() => {}
            () = self.front.clock.sleep(CUT_GRACE) => {
                tracing::warn!("some requests did not end; they are cut");
            }
        }
        self.reclaim.tasks.shutdown().await;
        self.host.shutdown().await;
        for tasks in self.host_tasks {
            tasks.shutdown().await;
        }
    }
}

async fn open_index(
    config: &Config,
    base: &Base,
    extent_ids: &Arc<IdAllocator>,
    (metrics, audit_log): (&index::Metrics, &AuditLog),
) -> Result<(Arc<Fleet>, Vec<Tasks>), NodeError> {
    let parts = index::Parts {
        env: base.env.clone(),
        capacity: Arc::clone(&base.capacity),
        coordinator: Arc::clone(&base.coordinator),
        extents: Arc::clone(extent_ids) as Arc<dyn index::ExtentIds>,
        machine: Arc::new(Objects),
        metrics: metrics.clone(),
    };
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
    let on = |tasks: &Tasks| Env { tasks: tasks.clone(), ..base.env.clone() };
    let hosts = match own.as_slice() {
        [] => vec![parts],
        own => own.iter().map(|tasks| index::Parts { env: on(tasks), ..parts.clone() }).collect(),
    };
    let control = thread("index-control")?;
    let fleet = Fleet::open(hosts, limits).await?.controlled_by(control.clone());
    let fleet = fleet.telling(audit_log.clone());
    own.push(control);
    Ok((Arc::new(fleet), own))
}

/// The account's row with a secret for user delegation keys, made now if an older program wrote the row.
async fn with_delegation_secret(
    router: &Router,
    name: &AccountName,
    record: AccountRecord,
) -> Result<AccountRecord, NodeError> {
    if DelegationSecret::stored(&record.delegation_secret).is_some() {
        return Ok(record);
    }
    let secret = new_delegation_secret().map_err(|error| NodeError::System {
        what: "randomness for user delegation keys",
        reason: error.to_string(),
    })?;
    let change = AccountChange::DelegationSecret(secret.clone());
    router.write(Write::UpdateAccount { name: name.clone(), change }).await?;
    Ok(AccountRecord { delegation_secret: secret, ..record })
}

/// Looks the configured accounts up, making those that are new, and those that were made while a node ran.
async fn make_accounts(
    config: &Config,
    base: &Base,
    (router, audit_log): (&Router, &AuditLog),
) -> Result<Accounts, NodeError> {
    let ids = base.ids(counter::ACCOUNT_IDS);
    let mut accounts = Vec::new();
    for account in &config.accounts {
        // An id that turns out not to be needed is never used.
        let id = AccountId::new(ids.next().await?);
        let name = account.name().clone();
        // Whoever knows the published key may read everything there already: clients are used to it
        // being open.
        let anonymous = account.is_public();
        let create = Write::CreateAccount { name: name.clone(), id, anonymous };
        let reply = router.write(create).await?;
        let WriteReply::Account(record) = reply else {
            let what = "the index's answer";
            return Err(NodeError::System { what, reason: "not an account".to_owned() });
        };
        if record.id == id {
            let detail = json!({ "anonymous": anonymous });
            tell(audit_log, "CreateAccount", &name, detail).await;
        }
        let record = switched(config, (router, audit_log), &name, *record).await?;
        let record = with_delegation_secret(router, &name, record).await?;
        accounts.push(Account::new(name, account.keys()?, record));
    }
    let mut list = ListAccounts { from: None, limit: ACCOUNTS_PAGE };
    loop {
        let reply = router.read(&list.position(), Read::Accounts(list.clone())).await?;
        let ReadReply::Accounts(page) = reply else {
            let what = "the index's answer";
            return Err(NodeError::System { what, reason: "not a page of accounts".to_owned() });
        };
        for (name, record) in page.entries {
            let Ok(name) = AccountName::new(&name) else { continue };
            if accounts.iter().all(|known| known.name != name) {
                let record = with_delegation_secret(router, &name, record).await?;
                accounts.extend(Account::stored(name, record));
            }
        }
        list.from = page.next;
        if list.from.is_none() {
            break;
        }
    }
    if accounts.is_empty() {
        return Err(ConfigError::NoAccount.into());
    }
    Ok(Accounts::new(accounts))
}

/// Tells the audit log what the configuration changed.
async fn tell(audit_log: &AuditLog, operation: &'static str, account: &AccountName, detail: Value) {
    let entry = Entry {
        account: Some(account.as_str().to_owned()),
        principal: Principal::Node { task: "configuration" },
        operation: operation.into(),
        ..Entry::default()
    };
    audit_log.change(&entry, &Change { of: Thing::Account, detail }).await;
}

/// The account with its switch for public access as the configuration wants it.
async fn switched(
    config: &Config,
    (router, audit_log): (&Router, &AuditLog),
    name: &AccountName,
    record: AccountRecord,
) -> Result<AccountRecord, NodeError> {
    let Some(open) = config.public_access.filter(|open| *open != record.anonymous) else {
        return Ok(record);
    };
    let change = AccountChange::Anonymous(open);
    router.write(Write::UpdateAccount { name: name.clone(), change }).await?;
    tell(audit_log, "SetAnonymousAccess", name, json!({ "anonymous": open })).await;
    Ok(AccountRecord { anonymous: open, ..record })
}

fn serve(
    (config, client): (&Config, Client),
    parts: frontend::Parts,
    (blob, tls): (Bound, Option<Tls>),
) -> Result<(JoinHandle<()>, CancellationToken), NodeError> {
    let wide = |number: u32| {
        usize::try_from(number).map_err(|error| NodeError::System {
            what: "a limit of this size",
            reason: error.to_string(),
        })
    };
    let limits = FrontEndConfig {
        known_hosts: config.known_hosts(),
        https_only: config.https_only,
        addressing: Addressing { domains: config.blob_domains.clone() },
        requests_max: wide(config.requests_max)?,
        account_requests_per_second: config.account_requests_per_second,
        last_access: config.last_access,
        body_idle: config.body_idle,
        response_stall: config.response_stall,
        response_rate_min: config.response_rate_min,
        answer_bytes_max: ANSWER_BYTES_MAX,
        listening: Listening(vec![blob.address]),
        outside: Outside::new(config.copy_source.clone(), client)
            .at_least(config.copy_source_bytes_per_second_min),
        rehydration: config.rehydration,
    };
    let server = ServerConfig {
        connections_max: wide(config.connections_max)?,
        peer_connections_max: config.peer_connections_max.map(wide).transpose()?,
        first_byte_timeout: config.first_byte,
        drain: config.drain,
        ..ServerConfig::default()
    };
    let env = parts.env.clone();
    let tasks = &env.tasks;
    let stop = CancellationToken::new();
    let front = Arc::new(FrontEnd::new(parts, limits));
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
    let serving = frontend::serve(blob.listener, front, tls, server, stop.clone());
    let down = |_: &str| tracing::error!("no connection is accepted any more");
    Ok((tasks.spawn_or_stop("blob listener", serving, down), stop))
}
