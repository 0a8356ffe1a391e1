mod accounts;
mod changes;
mod connections;
mod console;
mod partitions;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use prometheus_client::metrics::counter::Counter;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::admin::AccountStore;
use crate::admin::AccountStoreParts;
use crate::admin::Control;
use crate::admin::DiskControl;
use crate::admin::DiskRefusal;
use crate::admin::DiskView;
use crate::admin::Endpoints;
use crate::admin::Token;
use crate::audit_log::AuditLog;
use crate::audit_log::testing::Kept;
use crate::auth::AccountKeys;
use crate::coordinator::Coordinator;
use crate::coordinator::IdAllocator;
use crate::coordinator::Op;
use crate::coordinator::SimulatedStore;
use crate::coordinator::counter;
use crate::env::clock::SimClock;
use crate::env::net::PipeConnect;
use crate::env::net::PipeListen;
use crate::env::rand::SeededRand;
use crate::env::tasks::Tasks;
use crate::frontend::Accounts;
use crate::frontend::Secrets;
use crate::frontend::accounts::Account;
use crate::frontend::faults::Faults;
use crate::frontend::trace::Trace;
use crate::index::Containers;
use crate::index::CreateAccount;
use crate::index::Error;
use crate::index::InFlight;
use crate::index::IndexHost;
use crate::index::LocalRequests;
use crate::index::PartitionDescriptor;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Router;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::objects::fake::Partition;
use crate::telemetry::Registry;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ClusterNumber;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;

const TOKEN: &str = "a-token-of-thirty-two-characters-or-more";

/// One partition in memory.
#[derive(Debug)]
struct Index {
    partition: Mutex<Partition>,
    /// Writes so far.
    writes: AtomicUsize,
}

#[async_trait]
impl IndexHost for Index {
    async fn read(&self, _: Target, read: Read) -> Result<ReadReply, Error> {
        self.partition.lock().unwrap().read(&read)
    }

    async fn write_shared(&self, _: Target, write: Arc<Write>) -> Result<WriteReply, Error> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.partition.lock().unwrap().write(&write)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

/// One configured account, and a store for more.
async fn accounts(env: &Env) -> AccountStore {
    accounts_on(env).await.0
}

/// The same with its index.
async fn accounts_on(env: &Env) -> (AccountStore, Arc<Index>) {
    let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(env));
    let descriptor = PartitionDescriptor {
        id: PartitionId::new(1),
        keys: KeyRange::all().into(),
        epoch: Epoch::new(1),
        log: Vec::new(),
        host: HostId::new(0),
    };
    let key = PartitionDescriptor::coordinator_key(descriptor.id);
    coordinator.txn(&[], &[Op::Put(key, descriptor.encode())]).await.unwrap();
    let partition = Mutex::new(Partition::new(KeyRange::all()));
    let host = Arc::new(Index { partition, writes: AtomicUsize::new(0) });
    let router =
        Router::new(Arc::clone(&host) as _, Arc::clone(&coordinator), env.clone()).await.unwrap();
    let name = AccountName::new("configured").unwrap();
    let create = CreateAccount { name: name.clone(), id: AccountId::new(99), anonymous: false };
    let record = router.tell(create).await.unwrap();
    let keys = AccountKeys::new(&["AAAAAAAAAAAAAAAAAAAAAAAAAAA="]).unwrap();
    let secrets = Secrets::known(&env.rand);
    let account = Account::new(name, keys, record, &secrets).unwrap();
    let known = Accounts::new(vec![account], secrets);
    let ids = IdAllocator::new(coordinator, ClusterNumber::ALONE, counter::ACCOUNT_IDS);
    let ids = Arc::new(ids);
    let endpoints = Endpoints { blob: "127.0.0.1:10000".parse().unwrap(), http: true, https: true };
    let issuers = ["https://i", "https://j"].map(str::to_owned).into_iter();
    let (inflight, clock) = (InFlight::default(), Arc::clone(&env.clock));
    let requests = LocalRequests::shared(inflight.clone(), Arc::clone(&clock));
    let containers = Containers { router: Arc::new(router), inflight, requests, clock };
    let (accounts, tasks) = (known, env.tasks.clone());
    let store =
        AccountStore::new(AccountStoreParts { accounts, containers, ids, endpoints, tasks });
    (store.with_issuers(issuers), host)
}

fn token() -> String {
    format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n")
}

struct Served {
    state: AdminState,
    connect: PipeConnect,
    env: Env,
}

fn serve() -> Served {
    serve_with_log(AuditLog::default())
}

fn serve_with_log(log: AuditLog) -> Served {
    let tasks = Tasks::new();
    let env = Env { clock: Arc::new(SimClock::new()), rand: Arc::new(SeededRand::new(1)), tasks };
    let (listener, connect) = PipeListen::new();
    let state = AdminState::new(Token::new(TOKEN)).with_audit_log(log);
    let server = AdminServer::new(Box::new(listener), state.clone(), env.clone());
    server.start(env.tasks.stopping());
    Served { state, connect, env }
}

/// What a line of the audit log is about: the kind of thing, the command, and which.
fn about(line: &serde_json::Value) -> (String, String, String) {
    let field = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    (field("of"), field("operation"), field("resource"))
}

impl Served {
    /// As once every role runs.
    async fn ready(&self) -> Control {
        let mut registry = Registry::default();
        let control = Control {
            accounts: accounts(&self.env).await,
            trace: Trace::default(),
            faults: Faults::new(self.env.clone(), &mut registry),
            partitions: Arc::new(OnceLock::from(partitions::rig(&self.env).await.store)),
        };
        self.state.control.set(control.clone()).unwrap();
        control
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "", "").await
    }

    async fn command(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let (status, text) = self.ask(method, path, &token(), body).await;
        (status, serde_json::from_str(&text).unwrap())
    }

    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let (status, _, body) = self.answer(method, path, headers, body).await;
        (status, body)
    }

    /// The status, the head and the body of an answer.
    async fn answer(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String, String) {
        let mut stream = self.connect.connect().await.unwrap();
        let len = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, format!("{head}\r\n"), body.to_owned())
    }
}

#[tokio::test]
async fn readyz_follows_the_phase_and_healthz_does_not() {
    let served = serve();
    let phases = [(Phase::Starting, 503), (Phase::Ready, 200), (Phase::Draining, 503)];
    for (phase, status) in phases {
        served.state.readiness.set(phase);
        assert_eq!(served.get("/readyz").await, (status, format!("{}\n", phase.word())));
        assert_eq!(served.get("/healthz").await.0, 200);
    }
    served.env.tasks.shutdown().await;
}

/// A fake of disks with these status lines.
#[derive(Debug)]
struct Troubled(&'static [&'static str]);

#[async_trait]
impl DiskControl for Troubled {
    async fn list(&self) -> Result<Vec<DiskView>, DiskRefusal> {
        Ok(Vec::new())
    }

    async fn drain(&self, disk: &str) -> Result<DiskView, DiskRefusal> {
        Err(DiskRefusal::NoSuchDisk(disk.to_owned()))
    }

    async fn remove(&self, disk: &str) -> Result<(), DiskRefusal> {
        Err(DiskRefusal::NoSuchDisk(disk.to_owned()))
    }

    fn troubles(&self) -> Vec<String> {
        self.0.iter().map(|line| (*line).to_owned()).collect()
    }
}

#[tokio::test]
async fn readyz_tells_troubles_of_disks_to_who_asks_for_more_and_serves_on() {
    let served = serve();
    served.state.readiness.set(Phase::Ready);
    let ready = (200, "ready\n".to_owned());
    assert_eq!(served.get("/readyz?verbose").await, ready, "no disks yet");
    let troubles = Troubled(&["disk 1: 81 % full", "partition 4: quarantined"]);
    served.state.disks.set(Arc::new(troubles)).unwrap();
    assert_eq!(served.get("/readyz").await, ready);
    assert_eq!(served.get("/readyz?verbosely").await, ready);
    let text = "ready\ndisk 1: 81 % full\npartition 4: quarantined\n";
    for query in ["verbose", "a=b&verbose"] {
        assert_eq!(served.get(&format!("/readyz?{query}")).await, (200, text.to_owned()));
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn readyz_names_a_task_that_stopped_for_good() {
    let served = serve();
    served.state.readiness.set(Phase::Ready);
    let broken = async { panic!("no way on") };
    served.env.tasks.spawn_or_stop("journal", broken, |_| {}).await.unwrap();
    let text = "ready\nstopped: journal panicked: no way on; restart the node\n";
    assert_eq!(served.get("/readyz").await, (503, text.to_owned()));
    assert_eq!(served.get("/healthz").await.0, 200);
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn metrics_show_what_roles_registered() {
    let served = serve();
    assert_eq!(served.get("/metrics").await.0, 503, "before the roles have registered");
    let mut registry = Registry::default();
    let counter = Counter::<u64>::default();
    registry.register("things", "Things counted", counter.clone());
    served.state.registry.set(registry).unwrap();
    counter.inc_by(42);
    let (status, text) = served.get("/metrics").await;
    assert_eq!(status, 200);
    assert!(text.contains("\nthings_total 42\n"), "{text}");
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let served = serve();
    for path in ["/metrics/../secret", "/partitions/", "/console/", "/console/none.mjs", "/page"] {
        assert_eq!(served.get(path).await.0, 404, "{path}");
    }
    for path in ["/", "/partitions", "/console/console.css"] {
        assert_eq!(served.ask("POST", path, "", "").await.0, 405, "{path}");
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn commands_need_the_token() {
    let served = serve();
    served.ready().await;
    for path in ["/admin/faults", "/admin/trace", "/admin", "/admin/nothing"] {
        for shown in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic x\r\n"] {
            let (status, text) = served.ask("GET", path, shown, "").await;
            assert_eq!(status, 401, "{path} {shown}");
            assert!(text.contains("token"), "{text}");
        }
    }
    assert_eq!(served.command("GET", "/admin/faults", "").await.0, 200);
    let (status, refused) = served.command("GET", "/admin/nothing", "").await;
    assert_eq!((status, refused["error"]["code"].as_str()), (404, Some("NoSuchPath")));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn only_known_hosts_are_answered() {
    let served = serve();
    served.ready().await;
    for (hosts, expected) in [
        ("Host: localhost:1\r\n", 200),
        ("Host: 192.0.2.1:10080\r\n", 200),
        ("Host: evil.example\r\n", 403),
        ("", 400),
        ("Host: localhost\r\nHost: localhost\r\n", 400),
        ("Host: local host\r\n", 400),
    ] {
        for path in ["/healthz", "/partitions", "/admin/faults"] {
            let mut stream = served.connect.connect().await.unwrap();
            let request =
                format!("GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n{}\r\n", token());
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {expected} ")),
                "{hosts:?} {path}: {answer}"
            );
            assert!(answer.contains("x-content-type-options: nosniff\r\n"), "{answer}");
            assert_eq!(answer.contains("--allow-host evil.example"), expected == 403, "{answer}");
        }
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn commands_wait_for_the_roles() {
    let served = serve();
    let (status, refused) = served.command("GET", "/admin/faults", "").await;
    assert_eq!((status, refused["error"]["code"].as_str()), (503, Some("Starting")));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn fault_rules_are_set_listed_and_cleared() {
    let served = serve();
    let control = served.ready().await;
    let rule = r#"{"kind":"busy","operations":["PutBlob"],"rate":0.5,"seed":3}"#;
    let (status, set) = served.command("POST", "/admin/faults", rule).await;
    assert_eq!((status, set["id"].as_u64()), (201, Some(1)));
    assert_eq!(control.faults.list().len(), 1);
    let (_, list) = served.command("GET", "/admin/faults", "").await;
    assert_eq!(list[0]["rule"]["seed"], 3);
    for (body, expected) in [(r#"{"kind":"busy","rate":2}"#, "rate"), (r#"{"kind":"off"}"#, "off")]
    {
        let (status, refused) = served.command("POST", "/admin/faults", body).await;
        assert_eq!(status, 400, "{body}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(expected), "{refused}");
    }
    assert_eq!(served.command("DELETE", "/admin/faults/9", "").await.0, 404);
    assert_eq!(served.command("DELETE", "/admin/faults", "").await.1["cleared"], 1);
    assert!(control.faults.list().is_empty());
    served.env.tasks.shutdown().await;
}
