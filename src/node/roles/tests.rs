//! A node whose first disk is full, as clients and its operator see it.

mod copies;
mod readers;
mod simulated;
mod uploaders;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use crate::admin::AdminServer;
use crate::admin::AdminState;
use crate::admin::Token;
use crate::audit_log::AuditLog;
use crate::auth::AccountKeys;
use crate::auth::DEVELOPMENT_KEY;
use crate::auth::Terms;
use crate::auth::mint_account;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::coordinator::Coordinator;
use crate::coordinator::EmbeddedCoordinator;
use crate::coordinator::Op;
use crate::coordinator::embedded::FILE_NAME;
use crate::coordinator::embedded::Room;
use crate::coordinator::embedded::Space;
use crate::env::Clock;
use crate::env::OsClock;
use crate::env::net::PipeConnect;
use crate::env::net::PipeListen;
use crate::frontend::dialect::Dialects;
use crate::node::config::DEVELOPMENT_NAME;
use crate::node::config::master_key_beside;
use crate::node::disks::Given;
use crate::node::keys::master_key;
use crate::node::listeners::Bound;
use crate::node::storage::CoordinatorPlace;
use crate::node::storage::Owner;
use crate::node::storage::Start;
use crate::node::storage::open_disk;
use crate::node::testing;

use super::*;

/// A header of uploads.
const BLOCK_BLOB: &str = "x-ms-blob-type: BlockBlob\r\n";
/// Of the admin listener.
const TOKEN: &str = "an admin token of these tests, longer than it need be";

/// The coordinator's file on a disk with so much room.
#[derive(Debug)]
struct Small {
    path: PathBuf,
    env: Env,
    room: Arc<Room>,
}

#[async_trait]
impl CoordinatorPlace for Small {
    fn path(&self) -> &Path {
        &self.path
    }

    fn is_made(&self) -> bool {
        self.path.exists()
    }

    async fn open(&self) -> Result<Arc<dyn Coordinator>, NodeError> {
        let opened = EmbeddedCoordinator::open_small(&self.path, &self.env, &self.room).await;
        Ok(Arc::new(opened.unwrap()))
    }
}

/// A node that serves.
struct Node {
    env: Env,
    storage: Storage,
    roles: Roles,
    room: Arc<Room>,
    blob: PipeConnect,
    admin: PipeConnect,
    signature: String,
}

impl Node {
    async fn start(data: &Path) -> Self {
        Self::start_as(testing::config(data), testing::env()).await
    }

    /// A node with one data directory.
    async fn start_as(config: Config, env: Env) -> Self {
        let (data, room) = (config.data.first().unwrap().as_path(), Arc::new(Room::default()));
        let place = Small { path: data.join(FILE_NAME), env: env.clone(), room: Arc::clone(&room) };
        let is_new = !place.is_made();
        let start = Start {
            given: Given { data: &config.data, add: &[], without: &[] },
            disks: vec![open_disk(data, &env).unwrap()],
            env: env.clone(),
            config: CapacityConfig {
                journal_bytes: config.journal_bytes,
                scrub_bytes_per_second: 0,
                ..CapacityConfig::default()
            },
            metrics: CapacityMetrics::default(),
            owner: Owner::Alone,
        };
        let storage = start.open(&place).await.unwrap();
        let (coordinator, now) = (storage.coordinator.as_ref(), env.clock.now());
        let key = master_key_beside(data).unwrap();
        let ring = master_key::open(&key, coordinator, is_new, now).await.unwrap().ring;
        let secrets = Secrets::new(ring, Arc::clone(&env.rand));
        let (listener, blob) = PipeListen::new();
        let address = "127.0.0.1:10000".parse().unwrap();
        let bound = Bound { listener: Box::new(listener), address };
        let audit_log = AuditLog::default();
        let front = FrontEndSetup {
            blob: bound,
            s3: None,
            dialects: Dialects::default(),
            tls: None,
            secrets: &secrets,
            audit_log: &audit_log,
        };
        let registry = &mut Registry::default();
        let roles = Roles::start(&config, Base::of(&storage, &env), front, registry).await.unwrap();
        let (listener, admin) = PipeListen::new();
        let state = AdminState::new(Token::new(TOKEN));
        state.control.set(roles.control()).unwrap();
        let server = AdminServer::new(Box::new(listener), state, env.clone());
        server.start(env.tasks.stopping());
        Self { env, storage, roles, room, blob, admin, signature: signature() }
    }

    /// Status and text of an answer to a request about the development account.
    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        ask(&self.blob, &signed(method, path, &self.signature), BLOCK_BLOB, body).await
    }

    async fn create_account(&self, name: &str) -> (u16, String) {
        self.command("accounts", &format!(r#"{{"name":"{name}"}}"#)).await
    }

    /// Has a partition begin at a container of the development account.
    async fn split(&self, container: &str) -> (u16, String) {
        let body = format!(r#"{{"at":["{DEVELOPMENT_NAME}/{container}"]}}"#);
        self.command("partitions/split", &body).await
    }

    async fn command(&self, path: &str, body: &str) -> (u16, String) {
        let token = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
        ask(&self.admin, &format!("POST /admin/{path}"), &token, body).await
    }

    /// Waits until a change is carried out.
    async fn goes_on(&self, method: &str, path: &str) {
        let done = async {
            while self.ask(method, path, "").await.0 != 201 {
                OsClock::new().sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), done).await.expect("it goes on");
    }

    async fn stop(self) {
        self.roles.stop().await;
        self.storage.capacity.shutdown().await;
        drop(self.storage);
        self.env.tasks.shutdown().await;
    }
}

/// What lets a request of the development account do anything.
fn signature() -> String {
    signature_for(DEVELOPMENT_NAME)
}

/// The same for an account with the same key.
fn signature_for(account: &str) -> String {
    let terms = Terms {
        permissions: "rwdlac".to_owned(),
        expiry: Some("2999-01-01T00:00:00Z".to_owned()),
        ..Terms::default()
    };
    let keys = AccountKeys::new(&[DEVELOPMENT_KEY]).unwrap();
    mint_account(&keys, account, "sco", &terms)
}

/// The first line of a request about the development account, but for its version.
fn signed(method: &str, path: &str, signature: &str) -> String {
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("{method} /{DEVELOPMENT_NAME}/{path}{sign}{signature}")
}

async fn ask(to: &PipeConnect, line: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = to.connect().await.unwrap();
    let len = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_first_disk_is_507_with_what_to_do_and_writes_go_on_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let node = Node::start(&data).await;
    let large = "x".repeat(100_000);
    assert_eq!(node.ask("PUT", "photos?restype=container", "").await, (201, String::new()));
    assert_eq!(node.ask("PUT", "photos/before", &large).await.0, 201);
    node.stop().await;

    // The log must roll before it takes a row.
    let node = Node::start(&data).await;
    node.room.set(Space::None);
    let changes =
        [("photos/small", "x"), ("photos/large", &large), ("films?restype=container", "")];
    for (path, body) in changes {
        let (status, text) = node.ask("PUT", path, body).await;
        assert_eq!(status, 507, "{path}: {text}");
        assert!(text.contains("InsufficientStorage"), "{text}");
        assert!(text.contains("first data directory"), "what to do: {text}");
    }
    assert_eq!(node.ask("DELETE", "photos/before", "").await.0, 507);
    let (status, text) = node.create_account("fresh").await;
    assert_eq!(status, 507, "{text}");
    assert!(text.contains("first disk") && text.contains(FILE_NAME), "{text}");
    let (status, text) = node.split("photos").await;
    assert_eq!(status, 507, "{text}");
    assert!(text.contains("InsufficientStorage"), "{text}");
    for expected in ["first disk", FILE_NAME, "bytes are free", "free some space"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (status, body) = node.ask("GET", "photos/before", "").await;
    assert_eq!((status, body == large), (200, true), "reads go on");

    node.room.set(Space::Enough);
    node.goes_on("PUT", "photos/small").await;
    for (path, body) in changes {
        assert_eq!(node.ask("PUT", path, body).await.0, 201, "{path}");
    }
    assert_eq!(node.create_account("fresh").await.0, 201);
    let (status, text) = node.split("photos").await;
    assert_eq!(status, 200, "{text}");
    node.stop().await;
}

/// While nothing finds room no blob is put: the log must roll before it takes a row. While some
/// changes find room in what the coordinator's file has, blobs are put.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_full_first_disk_acknowledged_is_there_and_all_else_is_507() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let node = Node::start(&data).await;
    assert_eq!(node.ask("PUT", "photos?restype=container", "").await, (201, String::new()));
    node.stop().await;
    let node = Node::start(&data).await;
    let coordinator = Arc::clone(&node.storage.coordinator);
    node.room.set(Space::None);
    let refused: Vec<String> = (0..20).map(|number| format!("photos/refused{number}")).collect();
    for blob in &refused {
        let (status, text) = node.ask("PUT", blob, "x").await;
        assert_eq!(status, 507, "{blob}: {text}");
    }

    node.room.set(Space::Written);
    node.goes_on("PUT", "photos/first").await;
    let (mut made, mut fillers) = (Vec::new(), Vec::new());
    for number in 0..40 {
        if coordinator.txn(&[], &[filler(number)]).await.is_ok() {
            fillers.push(format!("filler/{number}"));
        }
        let (blob, account) = (format!("photos/{number}"), format!("fresh{number}"));
        match node.ask("PUT", &blob, "x").await {
            (201, _) => made.push(blob),
            (status, text) => assert_eq!(status, 507, "{blob}: {text}"),
        }
        let (status, text) = node.create_account(&account).await;
        assert!(status == 201 || status == 507, "{account}: {status} {text}");
    }
    assert!(!made.is_empty(), "the log has rolled");
    assert!(fillers.len() < 40, "the disk is full");

    node.room.set(Space::Enough);
    node.goes_on("PUT", "photos/last").await;
    for blob in &made {
        assert_eq!(node.ask("GET", blob, "").await, (200, "x".to_owned()), "{blob}");
    }
    for blob in &refused {
        assert_eq!(node.ask("GET", blob, "").await.0, 404, "{blob}");
    }
    for key in &fillers {
        assert!(coordinator.get(key.as_bytes()).await.unwrap().is_some(), "{key}");
    }
    drop(coordinator);
    node.stop().await;
}

fn filler(number: usize) -> Op {
    Op::Put(format!("filler/{number}").into(), vec![0; 3_000].into())
}
