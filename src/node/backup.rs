//! Backups: a copy of a store in a directory of its own, of a node that serves or of one that is stopped, and the way back.
//! ADR 0022 says why the copy is consistent; `docs/backup.md` says how to use it.
//!
//! 1. The directory is marked as incomplete; from here on it is no backup until it is whole.
//! 2. Nothing that the index names is freed or removed any more (`Source::hold`).
//! 3. The coordinator's rows are read, all of one revision.
//! 4. Open logs are sealed, then open data extents: their writers go on in new ones.
//! 5. Every sealed extent is copied that is not there already, each frame verified.
//! 6. The coordinator's rows are written; the copy is opened and must find every extent that its partitions name.
//! 7. `backup.json` is written, durably: only now it is a backup.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use crate::capacity;
use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CapacityNode;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::EmbeddedCoordinator;
use crate::coordinator::Op;
use crate::coordinator::counter;
use crate::coordinator::embedded::FILE_NAME;
use crate::env::Env;
use crate::env::Tasks;
use crate::index;
use crate::index::Fleet;
use crate::index::HeldExtents;
use crate::index::InFlight;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::ReadGuard;
use crate::index::open_offline;
use crate::types::ExtentId;

use super::disks;
use super::error::NodeError;
use super::files;
use super::files::Readers;
use super::storage::Storage;
use super::storage::open_disk;

/// Says that a directory is a whole backup.
pub const BACKUP_FILE: &str = "backup.json";
/// Says that a directory is to become one.
pub const INCOMPLETE_FILE: &str = "backup.incomplete";
/// The version of both files.
const VERSION: u32 = 1;
/// Rows of the coordinator written at a time.
const ROWS: usize = 64;

/// What the files in a backup say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of this layout.
    pub version: u32,
    /// The store it is of.
    pub store: String,
    /// When it began: everything acknowledged before is in it.
    pub began: String,
    /// Extents in it.
    pub extents: usize,
    /// Bytes of them that this backup copied; the others were there.
    pub copied_bytes: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Extents looked at.
    pub extents: usize,
    /// Of so many.
    pub extents_total: usize,
    /// Bytes copied.
    pub copied_bytes: u64,
}

/// Why there is no backup; the text says what to do.
#[derive(Debug, Error)]
pub enum BackupError {
    /// Something else is there.
    #[error("{0} is neither empty nor a backup: name an empty directory, or the last backup")]
    NotEmpty(PathBuf),
    /// A backup of something else.
    #[error("{path} is a backup of another store ({found}): name another directory")]
    OtherStore {
        /// The directory.
        path: PathBuf,
        /// The other store.
        found: String,
    },
    /// It was never finished.
    #[error("{0} is no complete backup: `{BACKUP_FILE}` is missing; run `blockyard backup` again")]
    Incomplete(PathBuf),
    /// Another version.
    #[error("{path} is a backup of version {found}, which this program does not know")]
    Version {
        /// The directory.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// An extent of the store cannot be copied.
    #[error("extent {extent} cannot be copied: {error}; `blockyard check` shows damage")]
    Extent {
        /// The extent.
        extent: ExtentId,
        /// Why.
        error: capacity::Error,
    },
    /// The copy lacks something; a bug, or somebody changed the directory meanwhile.
    #[error("the copy is not whole: {0}; nothing was lost, run it again")]
    NotWhole(String),
    /// A file.
    #[error("{path}: {error}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The disks of the copy.
    #[error("{0}")]
    Open(Box<NodeError>),
    /// The disks of the store, or of the copy.
    #[error("{0}")]
    Capacity(#[from] capacity::Error),
    /// The coordinator of one of them.
    #[error("the coordinator's rows cannot be copied: {0}")]
    Coordinator(#[from] coordinator::Error),
}

impl From<NodeError> for BackupError {
    fn from(error: NodeError) -> Self {
        Self::Open(Box::new(error))
    }
}

/// What is copied.
#[derive(Clone, Debug)]
pub struct Source {
    capacity: Arc<CapacityNode>,
    coordinator: Arc<dyn Coordinator>,
    /// Of a node that serves.
    serving: Option<(Arc<Fleet>, InFlight)>,
}

/// As long as it lives, what the index names stays.
struct Held(#[expect(dead_code, reason = "held")] Option<(Option<HeldExtents>, ReadGuard)>);

impl Source {
    /// A node that serves.
    #[must_use]
    pub fn serving(storage: &Storage, fleet: Arc<Fleet>, inflight: InFlight) -> Self {
        Self { serving: Some((fleet, inflight)), ..Self::stopped(storage) }
    }

    /// A store that nothing else has open.
    #[must_use]
    pub fn stopped(storage: &Storage) -> Self {
        let (capacity, coordinator) =
            (Arc::clone(&storage.capacity), Arc::clone(&storage.coordinator));
        Self { capacity, coordinator, serving: None }
    }

    /// The store's id, as in its `format` files.
    fn store(&self) -> String {
        self.capacity.store_id().map(|id| format!("{id:032x}")).unwrap_or_default()
    }

    fn hold(&self, env: &Env) -> Held {
        Held(self.serving.as_ref().map(|(fleet, inflight)| {
            let guard = inflight.read(env.clock.monotonic());
            guard.describe("a backup".to_owned());
            (fleet.hold_extents(), guard)
        }))
    }
}

/// Makes `to` a backup of `from`, or brings it up to date.
///
/// # Errors
/// [`BackupError`]: `to` is no backup, and can be made one by another try.
pub async fn backup(
    from: &Source,
    to: &Path,
    env: &Env,
    progress: &(dyn Fn(Step) + Send + Sync),
) -> Result<Manifest, BackupError> {
    let manifest = Manifest {
        version: VERSION,
        store: from.store(),
        began: env.clock.now().to_iso(),
        extents: 0,
        copied_bytes: 0,
    };
    begin(to, &manifest)?;
    let small = CapacityConfig { journal_bytes: JOURNAL_BYTES, ..quiet() };
    let done = copy(from, to, env, (small, progress)).await?;
    let manifest =
        Manifest { extents: done.extents_total, copied_bytes: done.copied_bytes, ..manifest };
    write(&to.join(BACKUP_FILE), &manifest)?;
    remove(&to.join(INCOMPLETE_FILE))?;
    Ok(manifest)
}

/// Makes `to`, an empty or new directory, a store of one disk again.
///
/// # Errors
/// [`BackupError`]: `to` is to be removed before another try.
pub async fn restore(
    backup: &Path,
    to: &Path,
    env: &Env,
    progress: &(dyn Fn(Step) + Send + Sync),
) -> Result<Manifest, BackupError> {
    let found = read(&backup.join(BACKUP_FILE))?;
    let manifest = found.ok_or_else(|| BackupError::Incomplete(backup.to_owned()))?;
    if !is_empty(to)? {
        return Err(BackupError::NotEmpty(to.to_owned()));
    }
    write(&to.join(INCOMPLETE_FILE), &manifest)?;
    let storage = Storage::open_for_check(&[backup.to_owned()], env).await?;
    let from = Source::stopped(&storage);
    let copied = copy(&from, to, env, (quiet(), progress)).await;
    storage.capacity.shutdown().await;
    copied?;
    remove(&to.join(INCOMPLETE_FILE))?;
    Ok(manifest)
}

/// The journal of a backup: nothing is written to it but at its making.
const JOURNAL_BYTES: u64 = 256 << 10;

/// Without work in the background.
fn quiet() -> CapacityConfig {
    CapacityConfig {
        scrub_bytes_per_second: 0,
        compact_bytes_per_second: 0,
        ..CapacityConfig::default()
    }
}

async fn copy(
    from: &Source,
    to: &Path,
    env: &Env,
    (config, progress): (CapacityConfig, &(dyn Fn(Step) + Send + Sync)),
) -> Result<Step, BackupError> {
    let own = Env { tasks: Tasks::new().reporting_to(&env.tasks), ..env.clone() };
    // The headers of extents name their store.
    let config = CapacityConfig { store: from.capacity.store_id(), ..config };
    let disk = open_disk(to, &own)?;
    let opened = CapacityNode::open(vec![disk], own.clone(), config, CapacityMetrics::default());
    let target = opened.await.map_err(NodeError::from)?;
    let done = copy_all(from, (to, &target), &own, progress).await;
    target.shutdown().await;
    own.tasks.shutdown().await;
    done
}

async fn copy_all(
    from: &Source,
    (to, target): (&Path, &Arc<CapacityNode>),
    env: &Env,
    progress: &(dyn Fn(Step) + Send + Sync),
) -> Result<Step, BackupError> {
    let _held = from.hold(env);
    let rows = from.coordinator.range(b"").await?;
    // In this order: what a sealed log names lies in a data extent that was there when it was sealed.
    from.capacity.seal_all(ExtentKind::Log).await?;
    from.capacity.seal_all(ExtentKind::Data).await?;
    let all = from.capacity.extents().await;
    let sealed: Vec<ExtentId> = all
        .iter()
        .filter(|info| info.state == ExtentState::Sealed)
        .map(|info| info.extent)
        .collect();
    let mut step = Step { extents_total: sealed.len(), ..Step::default() };
    for extent in &sealed {
        progress(step);
        let copied = from.capacity.copy_into(*extent, target).await;
        let copied = copied.map_err(|error| BackupError::Extent { extent: *extent, error })?;
        step.copied_bytes += copied.unwrap_or(0);
        step.extents += 1;
    }
    progress(step);
    let kept: BTreeSet<ExtentId> = sealed.into_iter().collect();
    for info in target.extents().await {
        if !kept.contains(&info.extent) {
            target.remove(info.extent).await?;
        }
    }
    // Ids that were issued since are in the logs already: the later counters are the right ones.
    let counters = from.coordinator.range(b"counter/").await?;
    let rows = rows.entries.into_iter().map(|(key, entry)| (key, entry.value));
    let counters = counters.entries.into_iter().map(|(key, entry)| (key, entry.value));
    let known: Vec<(Bytes, Bytes)> = rows.chain(counters).collect();
    write_rows(target, (to, env), known).await?;
    Ok(step)
}

/// Writes the coordinator's file under another name, holds the copy against it, and gives it its name.
async fn write_rows(
    target: &Arc<CapacityNode>,
    (to, env): (&Path, &Env),
    rows: Vec<(Bytes, Bytes)>,
) -> Result<(), BackupError> {
    let path = to.join(format!("{FILE_NAME}.incomplete"));
    remove(&path)?;
    let own = Env { tasks: Tasks::new().reporting_to(&env.tasks), ..env.clone() };
    let coordinator = EmbeddedCoordinator::open(&path, &own).await?;
    let mut puts = Vec::new();
    for (key, value) in rows {
        if key == disks::KEY {
            // Its disks are others.
            continue;
        }
        let value = match PartitionDescriptor::decode(&value) {
            Some(descriptor) if key == PartitionDescriptor::coordinator_key(descriptor.id) => {
                above_its_log(target, descriptor).await.encode()
            }
            Some(_) | None => value,
        };
        puts.push(Op::Put(key, value));
    }
    for some in puts.chunks(ROWS) {
        coordinator.txn(&[], some).await?;
    }
    let whole = is_whole(target, &coordinator).await;
    drop(coordinator);
    own.tasks.shutdown().await;
    whole.map_err(BackupError::NotWhole)?;
    rename(&path, &to.join(FILE_NAME))
}

/// The descriptor at an epoch that no later owner has closed its log to.
async fn above_its_log(
    target: &Arc<CapacityNode>,
    mut descriptor: PartitionDescriptor,
) -> PartitionDescriptor {
    let known = target.extents().await;
    let of_log = known.iter().filter(|info| descriptor.log.contains(&info.extent));
    let highest = of_log.map(|info| info.epoch).max();
    descriptor.epoch = descriptor.epoch.max(highest.unwrap_or(descriptor.epoch));
    descriptor
}

/// Why the copy lacks an extent that the index names.
async fn is_whole(
    target: &Arc<CapacityNode>,
    coordinator: &EmbeddedCoordinator,
) -> Result<(), String> {
    let map = PartitionMap::load(coordinator).await.map_err(|error| error.to_string())?;
    let known: BTreeSet<ExtentId> =
        target.extents().await.into_iter().map(|info| info.extent).collect();
    for descriptor in map.partitions() {
        let capacity = Arc::clone(target) as Arc<dyn Capacity>;
        let rows = open_offline(capacity, descriptor).await;
        let of = |error: index::Error| format!("partition {}: {error}", descriptor.id);
        let rows = rows.map_err(of)?;
        if let Some(missing) = rows.extents().iter().find(|extent| !known.contains(extent)) {
            return Err(format!("partition {} names extent {missing}", descriptor.id));
        }
    }
    Ok(())
}

/// Makes `to` a directory that is to become a backup.
fn begin(to: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let (whole, incomplete) = (to.join(BACKUP_FILE), to.join(INCOMPLETE_FILE));
    let before = match read(&whole)? {
        Some(before) => Some(before),
        None => read(&incomplete)?,
    };
    match before {
        Some(before) if before.store != manifest.store => {
            return Err(BackupError::OtherStore { path: to.to_owned(), found: before.store });
        }
        None if !is_empty(to)? => return Err(BackupError::NotEmpty(to.to_owned())),
        Some(_) | None => {}
    }
    // First this one: with neither of them it would be taken for something else.
    write(&incomplete, manifest)?;
    remove(&whole)?;
    // What it had does not go with the extents that come.
    remove(&to.join(FILE_NAME))
}

fn is_empty(folder: &Path) -> Result<bool, BackupError> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
            Ok(true)
        }
        Err(error) => Err(failed(folder, error)),
    }
}

fn read(path: &Path) -> Result<Option<Manifest>, BackupError> {
    let Some(text) = files::read(path).map_err(|error| failed(path, error))? else {
        return Ok(None);
    };
    let damaged = |error: serde_json::Error| failed(path, std::io::Error::other(error));
    let manifest: Manifest = serde_json::from_str(&text).map_err(damaged)?;
    if manifest.version != VERSION {
        let (path, found) = (path.to_owned(), manifest.version);
        return Err(BackupError::Version { path, found });
    }
    Ok(Some(manifest))
}

fn write(path: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let text = serde_json::to_string_pretty(manifest).unwrap_or_default() + "\n";
    files::write(path, &text, Readers::Owner).map_err(|error| failed(path, error))
}

#[expect(clippy::disallowed_methods, reason = "marks of a backup, no data")]
fn remove(path: &Path) -> Result<(), BackupError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => sync_folder_of(path),
    }
}

#[expect(clippy::disallowed_methods, reason = "a name of the coordinator's file")]
fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    std::fs::rename(from, to).map_err(|error| failed(to, error))?;
    sync_folder_of(to)
}

fn sync_folder_of(path: &Path) -> Result<(), BackupError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| failed(folder, error))
}

fn failed(path: &Path, error: std::io::Error) -> BackupError {
    BackupError::File { path: path.to_owned(), error }
}
