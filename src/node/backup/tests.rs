//! Backups of a small store on a real disk, stopped and served, and what is refused.

#![expect(clippy::disallowed_methods, reason = "tests damage and remove files")]

mod giving_up;
mod refusals;
mod stopping;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;

use crate::admin::BackupControl;
use crate::capacity::AppendRequest;
use crate::capacity::Capacity;
use crate::capacity::CapacityMetrics;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::env::Env;
use crate::env::OsClock;
use crate::index;
use crate::index::Write;
use crate::node::assembly::Assembly;
use crate::node::assembly::Base;
use crate::node::assembly::IndexPlan;
use crate::node::check;
use crate::node::config::master_key_beside;
use crate::node::disks::Given;
use crate::node::error::NodeError;
use crate::node::keys::master_key;
use crate::node::storage::Owner;
use crate::node::storage::Storage;
use crate::node::storage::coordinator_copy;
use crate::node::testing::config;
use crate::node::testing::env;
use crate::reclaim::cursor::KEY as AUDIT_CURSOR;
use crate::telemetry::Registry;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::RoutingKey;

use super::attempt::Attempt;
use super::attempt::GIVE_UP_AFTER;
use super::copy::How;
use super::copy::Pace;
use super::destination::Destination;
use super::make::backup_unless_given_up;
use super::mark::Mark;
use super::*;

/// Bytes of each extent that [`Running::content`] makes.
const CONTENT: usize = 300_000;

fn attempt() -> Arc<Attempt> {
    Attempt::new(Arc::new(OsClock::new()))
}

fn silent() -> Progress {
    Arc::new(|_| ())
}

/// A store that is served, without a front end.
struct Running {
    env: Env,
    storage: Storage,
    assembly: Assembly,
}

impl Running {
    async fn start(data: &Path) -> Result<Self, NodeError> {
        let env = env();
        let config = config(data);
        let is_new = Storage::is_new(&config.data);
        let storage =
            Storage::open(&config, &env, CapacityMetrics::default(), Owner::Alone).await?;
        let (key, coordinator) =
            (master_key_beside(data).unwrap(), Arc::clone(&storage.coordinator));
        master_key::open(&key, coordinator.as_ref(), is_new, env.clock.now()).await?;
        let capacity = Arc::clone(&storage.capacity) as Arc<dyn Capacity>;
        let base = Base::alone(env.clone(), capacity, coordinator);
        let (config, hosts) = (index::Config::default(), [env.tasks.clone()]);
        let bounds = [RoutingKey::account(&AccountName::new("mmmm").unwrap())];
        let plan = IndexPlan { config, hosts: &hosts, control: None, boundaries: Some(&bounds) };
        let assembly = Assembly::open(base, plan, &env, &mut Registry::default()).await?;
        Ok(Self { env, storage, assembly })
    }

    async fn account(&self, name: &str) {
        let (name, id) = (AccountName::new(name).unwrap(), AccountId::new(7));
        let create = Write::CreateAccount { name, id, anonymous: false };
        self.assembly.front.router.write(create).await.unwrap();
    }

    /// An extent with content, open.
    async fn content(&self, extent: u64) -> ExtentId {
        let (extent, epoch) = (ExtentId::new(extent), Epoch::new(1));
        self.storage.capacity.create(extent, ExtentKind::Data, epoch).await.unwrap();
        let payloads = vec![vec![vec![0x5a; CONTENT].into()]];
        let durability = Durability::Durable;
        let request =
            AppendRequest { extent, epoch, offset: ExtentOffset::START, payloads, durability };
        self.storage.capacity.append(request).await.unwrap();
        extent
    }

    fn source(&self) -> Source {
        let (index, requests) =
            (Arc::clone(&self.assembly.index.index), Arc::clone(&self.assembly.front.requests.all));
        Source::serving(&self.storage, index, requests)
    }

    async fn stop(self) {
        self.assembly.index.index.shutdown().await;
        self.storage.capacity.shutdown().await;
        drop((self.assembly, self.storage));
        self.env.tasks.shutdown().await;
    }
}

/// A stopped store with two accounts and two extents with content.
async fn made(data: &Path) {
    let running = Running::start(data).await.unwrap();
    running.account("aaaa").await;
    running.account("zzzz").await;
    for extent in [1_000, 1_001] {
        let extent = running.content(extent).await;
        running.storage.capacity.seal(extent, Epoch::new(1)).await.unwrap();
    }
    running.stop().await;
}

async fn of_stopped(data: &Path, to: &Path) -> Result<Summary, BackupError> {
    let env = env();
    let storage = Storage::open_for_backup(&[data.to_owned()], &env).await?;
    let made = backup(&Source::stopped(&storage), to, &env, silent()).await;
    storage.capacity.shutdown().await;
    drop(storage);
    env.tasks.shutdown().await;
    made
}

async fn restored(from: &Path, to: &Path, key: &Path) -> Result<Summary, BackupError> {
    let env = env();
    let made =
        restore(RestoreFrom { backup: from, master_key_file: key }, to, &env, silent()).await;
    env.tasks.shutdown().await;
    made
}

/// Checks a store and returns how many rows it has: one for each account.
async fn sound(data: &Path, key: &Path) -> u64 {
    let env = env();
    let given = Given { data: &[data.to_owned()], add: &[], without: &[] };
    let report = check::check(given, Some(key), &env, &mut check::Silent).await;
    env.tasks.shutdown().await;
    let report = report.unwrap();
    assert!(report.is_sound(), "{report}");
    report.index.rows
}

/// Files below a folder with their bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// The file of an extent.
fn file_of(data: &Path, extent: u64) -> PathBuf {
    data.join(format!("extents/{:02x}/{extent:016x}.x", extent & 0xff))
}

/// Flips a bit of an extent's content.
fn flip(data: &Path, extent: u64) {
    let file = file_of(data, extent);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[150_000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
}

/// Flips a bit after these bytes, wherever they are in an extent. Done again with the last byte
/// changed so, it repairs that.
fn flip_row(data: &Path, text: &[u8]) {
    let mut flipped = 0;
    for (path, mut bytes) in files(&data.join("extents")) {
        let found = bytes.windows(text.len()).position(|window| window == text);
        if let Some(at) = found {
            bytes[at + text.len() - 1] ^= 1;
            std::fs::write(path, bytes).unwrap();
            flipped += 1;
        }
    }
    assert!(flipped > 0, "a row is somewhere");
}

/// Folders of one test.
struct Folders {
    root: tempfile::TempDir,
    data: PathBuf,
    key: PathBuf,
    backup: PathBuf,
}

impl Folders {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let key = master_key_beside(&data).unwrap();
        let backup = root.path().join("new/backup");
        Self { root, data, key, backup }
    }

    fn other(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_of_a_stopped_store_is_restored_sound_and_served() {
    let at = Folders::new();
    made(&at.data).await;
    let steps = Arc::new(Mutex::new(Vec::new()));
    let env = env();
    let storage = Storage::open_for_backup(std::slice::from_ref(&at.data), &env).await.unwrap();
    let noted = Arc::clone(&steps);
    let progress = Arc::new(move |step| noted.lock().unwrap().push(step));
    let summary = backup(&Source::stopped(&storage), &at.backup, &env, progress).await.unwrap();
    storage.capacity.shutdown().await;
    drop(storage);
    assert!(summary.copied_bytes > 2 * CONTENT as u64, "{summary:?}");
    let last = steps.lock().unwrap().last().copied().unwrap();
    assert_eq!((last.extents, last.extents_total), (summary.extents, summary.extents));

    let to = at.other("restored");
    let again = restored(&at.backup, &to, &at.key).await.unwrap();
    assert_eq!(again.begun, summary.begun);
    assert_eq!(sound(&to, &at.key).await, 2);
    for extent in [1_000, 1_001] {
        let wanted = vec![0x5a; 1_000];
        let bytes = std::fs::read(file_of(&to, extent)).unwrap();
        assert!(bytes.windows(1_000).any(|window| window == wanted), "extent {extent}");
    }
    std::fs::copy(&at.key, master_key_beside(&to).unwrap()).unwrap();
    let running = Running::start(&to).await.unwrap();
    running.account("bbbb").await;
    running.stop().await;
    assert_eq!(sound(&to, &at.key).await, 3);
    assert_eq!(sound(&at.data, &at.key).await, 2, "the store itself is as it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_of_a_served_store_holds_what_was_acknowledged_before() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    running.account("aaaa").await;
    let open = running.content(1_000).await;
    backup(&running.source(), &at.backup, &running.env, silent()).await.unwrap();
    // Writers go on: in new logs, and in new extents.
    let more = AppendRequest {
        extent: open,
        epoch: Epoch::new(1),
        offset: ExtentOffset::new(CONTENT as u64),
        payloads: vec![vec![vec![1].into()]],
        durability: Durability::Durable,
    };
    running.storage.capacity.append(more).await.unwrap_err();
    for name in ["yyyy", "zzzz"] {
        running.account(name).await;
    }
    let first = at.other("first");
    restored(&at.backup, &first, &at.key).await.unwrap();
    assert_eq!(sound(&first, &at.key).await, 1);

    backup(&running.source(), &at.backup, &running.env, silent()).await.unwrap();
    let second = at.other("second");
    restored(&at.backup, &second, &at.key).await.unwrap();
    assert_eq!(sound(&second, &at.key).await, 3);
    running.stop().await;
    std::fs::copy(&at.key, master_key_beside(&second).unwrap()).unwrap();
    let running = Running::start(&second).await.unwrap();
    running.account("bbbb").await;
    running.stop().await;
    assert_eq!(sound(&second, &at.key).await, 4);
}

/// The coordinator's value of how far the audit is.
async fn audit_cursor(data: &Path) -> Option<Bytes> {
    let env = env();
    let coordinator = coordinator_copy(&[data.to_owned()], &env).await.unwrap();
    let found = coordinator.get(AUDIT_CURSOR).await.unwrap();
    drop(coordinator);
    env.tasks.shutdown().await;
    found.map(|found| found.value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_leaves_out_how_far_the_audit_is() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    let put = Op::Put(AUDIT_CURSOR.into(), Bytes::from_static(&[1, 5, 0, 6]));
    running.storage.coordinator.txn(&[], &[put]).await.unwrap();
    running.stop().await;
    of_stopped(&at.data, &at.backup).await.unwrap();
    assert!(audit_cursor(&at.data).await.is_some(), "the store itself is as it was");
    assert_eq!(audit_cursor(&at.backup).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_backup_copies_what_is_missing_and_removes_what_is_gone() {
    let at = Folders::new();
    made(&at.data).await;
    of_stopped(&at.data, &at.backup).await.unwrap();
    let idle = of_stopped(&at.data, &at.backup).await.unwrap();
    assert_eq!(idle.copied_bytes, 0, "nothing has changed");

    let running = Running::start(&at.data).await.unwrap();
    running.content(1_002).await;
    running.storage.capacity.remove(ExtentId::new(1_000)).await.unwrap();
    running.account("bbbb").await;
    running.stop().await;
    let next = of_stopped(&at.data, &at.backup).await.unwrap();
    let copied = next.copied_bytes;
    assert!(copied > CONTENT as u64 && copied < 2 * CONTENT as u64, "{copied}");
    let has = |extent| file_of(&at.backup, extent).exists();
    assert_eq!([1_000, 1_001, 1_002].map(has), [false, true, true]);
    let to = at.other("restored");
    restored(&at.backup, &to, &at.key).await.unwrap();
    assert_eq!(sound(&to, &at.key).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_in_the_index_stops_the_backup_and_the_last_one_stays_good() {
    let at = Folders::new();
    made(&at.data).await;
    of_stopped(&at.data, &at.backup).await.unwrap();
    let running = Running::start(&at.data).await.unwrap();
    running.account("bbbb").await;
    running.stop().await;
    flip_row(&at.data, b"bbbb");
    let error = of_stopped(&at.data, &at.backup).await.unwrap_err().to_string();
    assert!(error.contains("extent"), "{error}");

    restored(&at.backup, &at.other("last"), &at.key).await.unwrap();
    assert_eq!(sound(&at.other("last"), &at.key).await, 2, "the last backup is as it was");
    flip_row(&at.data, b"bbb\x63");
    of_stopped(&at.data, &at.backup).await.unwrap();
    restored(&at.backup, &at.other("yes"), &at.key).await.unwrap();
    assert_eq!(sound(&at.other("yes"), &at.key).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_no_row_names_does_not_stop_a_backup() {
    let at = Folders::new();
    made(&at.data).await;
    flip(&at.data, 1_000);
    of_stopped(&at.data, &at.backup).await.unwrap();
    let to = at.other("restored");
    restored(&at.backup, &to, &at.key).await.unwrap();
    assert_eq!(sound(&to, &at.key).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_is_for_its_user_alone_and_holds_no_key() {
    let at = Folders::new();
    made(&at.data).await;
    crate::env::make_files_private();
    of_stopped(&at.data, &at.backup).await.unwrap();
    for path in files(&at.backup).keys().chain([&at.backup, &at.backup.join("extents")]) {
        let mode = path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
    let key = std::fs::read_to_string(&at.key).unwrap();
    let secret = key.split_whitespace().max_by_key(|word| word.len()).unwrap();
    for (path, bytes) in files(&at.backup) {
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_makes_one_backup_at_a_time_and_tells_what_became_of_it() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    running.content(1_000).await;
    let backups = NodeBackups::new(running.source(), running.env.clone());
    assert_eq!(backups.last(), None);
    let ended = async || loop {
        let view = backups.last().unwrap();
        if view.state != "running" {
            return view;
        }
        running.env.clock.sleep(Duration::from_millis(5)).await;
    };
    let begun = backups.begin(at.backup.clone()).unwrap();
    assert_eq!((begun.number, begun.state.as_str()), (1, "running"));
    assert_eq!(backups.begin(at.other("second")), None);
    let view = ended().await;
    assert_eq!((view.state.as_str(), view.extents), ("complete", view.extents_total));
    let summary: Summary = serde_json::from_value(view.summary.unwrap()).unwrap();
    assert_eq!(summary, marks::complete(&at.backup).unwrap());
    assert!(!at.other("second").exists());

    backups.begin(at.data.clone()).unwrap();
    let view = ended().await;
    assert_eq!((view.number, view.state.as_str(), view.summary), (2, "failed", None));
    assert!(view.error.unwrap().contains("neither empty nor a backup"));
    running.stop().await;
}

#[test]
fn summary_is_the_one_of_the_documentation() {
    let text = include_str!("../../../api-spec/backup.md");
    let (_, rest) = text.split_once("```json\n").unwrap();
    let (golden, _) = rest.split_once("```").unwrap();
    let read: Summary = serde_json::from_str(golden).unwrap();
    assert_eq!(serde_json::to_string_pretty(&read).unwrap() + "\n", golden);
    assert_eq!((read.version, read.restored), (1, None));
}
