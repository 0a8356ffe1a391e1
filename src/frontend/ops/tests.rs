//! Operations of a whole front end over an index whose writes wait for the test.

mod empty_pages;
mod uploads;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::poll;
use tokio::sync::RwLock;

use super::*;
use crate::audit_log::AuditLog;
use crate::audit_log::testing::Kept;
use crate::auth::AccountKeys;
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::coordinator::SimulatedStore;
use crate::coordinator::counter;
use crate::frontend::accounts::Account;
use crate::frontend::accounts::Accounts;
use crate::frontend::audit_log::RequestStart;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::client::Client;
use crate::frontend::config::FrontEndConfig;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::Dialects;
use crate::frontend::dispatch::RequestContent;
use crate::frontend::dispatch::dispatch;
use crate::frontend::faults::Faults;
use crate::frontend::ingest::read_document;
use crate::frontend::metrics::Metrics;
use crate::frontend::observe::RequestContext;
use crate::frontend::secrets::Secrets;
use crate::frontend::source::Listening;
use crate::frontend::source::Outside;
use crate::frontend::source::Requester;
use crate::frontend::source::Rules;
use crate::frontend::spans::Spans;
use crate::frontend::state::Dependencies;
use crate::frontend::state::FrontEnd;
use crate::frontend::tokens::Tokens;
use crate::frontend::trace::Trace;
use crate::frontend::write::BodyMemory;
use crate::frontend::write::WriteConfig;
use crate::frontend::write::tests::Rig;
use crate::frontend::write::tests::rig;
use crate::index;
use crate::index::CreateAccount;
use crate::index::IndexHost;
use crate::index::LocalRequests;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Router;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::client::testing::publish;
use crate::index::objects::fake::Partition;
use crate::protocol::KnownHosts;
use crate::protocol::azure;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerSettings;
use crate::protocol::model::operation::KeyInfo;
use crate::telemetry::Registry;
use crate::types::Protocols;
use crate::types::*;

const BUDGET: usize = 1 << 20;
const SOON: Duration = Duration::from_millis(1);

/// One partition in memory, whose writes wait while the test has the gate.
#[derive(Debug)]
pub(in crate::frontend::ops) struct Gated {
    pub(in crate::frontend::ops) partition: Mutex<Partition>,
    gate: RwLock<()>,
}

#[async_trait]
impl IndexHost for Gated {
    async fn read(&self, _: Target, read: Read) -> Result<ReadReply, index::Error> {
        self.partition.lock().unwrap().read(&read)
    }

    async fn write_shared(&self, _: Target, write: Arc<Write>) -> Result<WriteReply, index::Error> {
        let _open = self.gate.read().await;
        self.partition.lock().unwrap().write(&write)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

struct Fixture {
    front: FrontEnd,
    index: Arc<Gated>,
    account: Account,
}

/// A front end with little memory for bodies, its index, and its account with the container
/// "photos".
async fn front() -> Fixture {
    let index = gated();
    let (front, account) = front_over(Arc::clone(&index) as _).await;
    Fixture { front, index, account }
}

pub(in crate::frontend::ops) fn gated() -> Arc<Gated> {
    let partition = Mutex::new(Partition::new(KeyRange::all()));
    Arc::new(Gated { partition, gate: RwLock::new(()) })
}

pub(in crate::frontend::ops) async fn front_over(host: Arc<dyn IndexHost>) -> (FrontEnd, Account) {
    let write = WriteConfig { body_bytes_max: BUDGET as u64, ..WriteConfig::default() };
    let Rig { node, pool, env, inflight, .. } = rig(64 << 20, write).await;
    let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
    publish(coordinator.as_ref(), (1, 1), KeyRange::all()).await;
    let router = Router::new(host, Arc::clone(&coordinator), env.clone()).await.unwrap();
    let name = AccountName::new("account").unwrap();
    let create = CreateAccount { name: name.clone(), id: AccountId::new(9), anonymous: false };
    let record = router.tell(create).await.unwrap();
    let keys = AccountKeys::new(&["AAAAAAAAAAAAAAAAAAAAAAAAAAA="]).unwrap();
    let secrets = Secrets::known(&env.rand);
    let account = Account::new(name, keys, record, &secrets).unwrap();
    let (client, mut registry) = (Client::default(), Registry::default());
    let dependencies = Dependencies {
        router: Arc::new(router),
        capacity: node,
        pool,
        accounts: Accounts::new(vec![account.clone()], secrets),
        tokens: Tokens::start(Vec::new(), &client, &env, &mut registry),
        requests: LocalRequests::shared(inflight.clone(), Arc::clone(&env.clock)),
        inflight,
        container_ids: Arc::new(IdAllocator::new(
            coordinator,
            ClusterNumber::ALONE,
            counter::CONTAINER_IDS,
        )),
        metrics: Metrics::register(&mut registry),
        trace: Trace::default(),
        spans: Spans::default(),
        faults: Faults::new(env.clone(), &mut registry),
        audit_log: AuditLog::default(),
        env,
    };
    let config = FrontEndConfig {
        unsigned_tokens: None,
        retention_day: Duration::from_secs(86_400),
        known_hosts: KnownHosts::default(),
        https_only: false,
        dialects: Dialects::default(),
        requests_max: 64,
        account_requests_per_second: 0,
        rehydration: Duration::from_secs(1),
        last_access: false,
        body_idle: Duration::from_secs(60),
        request_rate_min: 0,
        response_stall: Duration::from_secs(60),
        response_rate_min: 0,
        answer_bytes_max: 128 << 20,
        listening: Listening::default(),
        outside: Outside::new(Rules::default(), client),
    };
    let front = FrontEnd::new(dependencies, config);
    let new = containers::NewContainer {
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        settings: ContainerSettings::default(),
    };
    // Another front end over the same index may have made it.
    if let Err(refusal) = containers::create(&front, &account, photos(), new).await {
        assert_eq!(refusal.reason, Reason::ContainerAlreadyExists);
    }
    (front, account)
}

fn photos() -> ContainerName {
    ContainerName::new("photos").unwrap()
}

/// The request by which a client asks for it, with a body of `len` bytes.
fn head(what: &str, len: usize) -> http::request::Parts {
    let target = match what {
        "Put Blob" => "/account/photos/a",
        "Put Block List" => "/account/photos/a?comp=blocklist",
        "Set Blob Tags" => "/account/photos/a?comp=tags",
        "Set Container ACL" => "/account/photos?restype=container&comp=acl",
        "Set Blob Service Properties" => "/account?restype=service&comp=properties",
        _ => panic!("{what}"),
    };
    let request = http::Request::put(target)
        .header("x-ms-version", "2026-02-06")
        .header("x-ms-blob-type", "BlockBlob")
        .header("content-length", len);
    request.body(()).unwrap().into_parts().0
}

/// What a client sends, most of it white space.
fn sent(what: &str) -> Bytes {
    let long = |text: &str| text.to_owned() + &" ".repeat(60_000);
    match what {
        "Put Blob" => Bytes::from(vec![7; 4 << 10]),
        "Put Block List" => long("<BlockList></BlockList>").into(),
        "Set Blob Tags" => long("<Tags><TagSet></TagSet></Tags>").into(),
        "Set Container ACL" => long("<SignedIdentifiers></SignedIdentifiers>").into(),
        "Set Blob Service Properties" => {
            long("<StorageServiceProperties></StorageServiceProperties>").into()
        }
        _ => panic!("{what}"),
    }
}

async fn carry_out(
    front: &FrontEnd,
    account: &Account,
    what: &str,
    mut body: RequestBody,
) -> Result<Reply, Refusal> {
    let head = head(what, sent(what).len());
    let dialect = front.config.dialects.of(&head, Protocols::All);
    let address = dialect.address(&head).unwrap();
    let context = azure::Context::from_head(&head).unwrap();
    let parsed = azure::parse(&head, &address, &context).unwrap();
    let (mut operation, document) = parsed.into_parts();
    let memory = match document {
        Some(one) => Some(read_document(&front.pool, &mut body, one, &mut operation).await?),
        None => None,
    };
    let peer =
        Peer { address: "192.0.2.1:9".parse().unwrap(), secure: true, protocols: Protocols::All };
    let arrival = Arrival { dialect, head: &head, peer };
    let requester =
        Requester { account, arrival, authenticated: true, create_only: false, admitted: None };
    let content = RequestContent { body: &mut body, document: memory };
    let answer = dispatch(front, requester, operation, content).await;
    answer.map(|answered| answered.reply)
}

/// A client may be gone while its change waits for a slow index, and its body, or what was read
/// from it, is in memory until the change is made.
#[tokio::test(start_paused = true)]
async fn body_counts_until_its_change_is_made_even_when_its_client_left() {
    let all = [
        "Put Blob",
        "Put Block List",
        "Set Blob Tags",
        "Set Container ACL",
        "Set Blob Service Properties",
    ];
    let Fixture { front, index, account } = front().await;
    let mut found = Vec::new();
    for what in all {
        let body = sent(what);
        let counts = || {
            let taken = front.pool.budget().take(&BodyMemory::of(account.id), BUDGET - body.len());
            taken.is_err()
        };
        let body = ResponseBody::full(body.clone());
        let mut body = RequestBody::of_source(body, SOON, front.env.clone());
        body.pay(account.id);
        let closed = index.gate.write().await;
        let mut request: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(carry_out(&front, &account, what, body));
        for _ in 0..20 {
            let state = poll!(request.as_mut());
            assert!(state.is_pending(), "{what}: {state:?}");
            tokio::task::yield_now().await;
        }
        let waiting = counts();
        drop(request);
        tokio::time::sleep(SOON).await;
        let left = counts();
        drop(closed);
        tokio::time::sleep(SOON).await;
        found.push((what, waiting, left, counts()));
    }
    assert_eq!(found, all.map(|what| (what, true, true, false)));
}

#[tokio::test]
async fn issued_delegation_key_has_a_line_in_the_audit_log() {
    let Fixture { mut front, account, .. } = front().await;
    let kept = Kept::new();
    front.audit_log = kept.log();
    let path = format!("/{}?restype=service&comp=userdelegationkey", account.name);
    let (head, ()) = http::Request::post(path).body(()).unwrap().into_parts();
    let peer =
        Peer { address: "192.0.2.1:9".parse().unwrap(), secure: true, protocols: Protocols::All };
    let wanted = KeyInfo::default();
    for (operation, expected) in [
        (
            AccountOperation::GetUserDelegationKey {
                wanted,
                version: "2026-02-06".into(),
                holder: None,
            },
            Some(("key", "GetUserDelegationKey")),
        ),
        (AccountOperation::GetServiceProperties, None),
    ] {
        let operation = Operation::from(operation);
        let mut context =
            RequestContext { operation: operation.name(), ..RequestContext::nothing() };
        let arrival =
            Arrival { dialect: front.config.dialects.of(&head, Protocols::All), head: &head, peer };
        let start = RequestStart { arrival, id: "id", begun: Duration::ZERO };
        front.note_change(&operation, &mut context, start);
        drop(context);
        let lines = kept.changes();
        let fields = |line: &serde_json::Value| {
            ["of", "operation", "account"].map(|name| line[name].as_str().unwrap().to_owned())
        };
        let logged: Vec<_> = lines.iter().map(fields).collect();
        let expected = expected.map(|(of, name)| [of, name, "account"].map(str::to_owned));
        assert_eq!(logged, Vec::from_iter(expected));
    }
}
