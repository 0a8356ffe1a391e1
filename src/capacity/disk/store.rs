//! One disk's journal, extents and catalog: what the operations in the neighbouring files share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::capacity::CapacityConfig;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::disk::catalog::{Catalog, Change};
use crate::capacity::disk::open_files::OpenFiles;
use crate::capacity::disk::space::SpaceWatch;
use crate::capacity::extent::header::{DATA_AT, Header, Slot};
use crate::capacity::extent::memory::Extent;
use crate::capacity::health::Health;
use crate::capacity::journal::writer::Journal;
use crate::capacity::metrics::CapacityMetrics;
use crate::capacity::units::page_up;
use crate::env::{Disk, DiskError, Env};
use crate::types::Epoch;
use crate::types::ExtentId;

/// One disk.
#[derive(Debug)]
pub(crate) struct Store {
    /// Its number among the node's.
    pub(crate) number: usize,
    /// Its number in the store, the same in whatever order the disks are given.
    pub(crate) id: usize,
    /// Whether it takes no new extents because it is being emptied.
    pub(crate) draining: AtomicBool,
    /// The store all disks of the node belong to.
    pub(crate) store_id: u128,
    /// The files.
    pub(crate) disk: Arc<dyn Disk>,
    /// Clock, randomness, tasks.
    pub(crate) env: Env,
    /// Settings.
    pub(crate) config: CapacityConfig,
    /// Shared by all disks of the node.
    pub(crate) metrics: CapacityMetrics,
    /// Whether it takes writes.
    pub(crate) health: Arc<Health>,
    /// Its journal.
    pub(crate) journal: Journal,
    /// The rebuildable list of sealed extents and dead ranges.
    pub(crate) catalog: Arc<dyn Catalog>,
    /// Free space.
    pub(crate) space: SpaceWatch,
    /// Fires when the node stops.
    pub(crate) stopping: CancellationToken,
    /// Held by the one checkpoint that may run.
    pub(crate) checkpointing: tokio::sync::Mutex<()>,
    /// Sealed extents of which something was freed since a compaction looked at them.
    pub(crate) sparse: Mutex<BTreeMap<ExtentId, Arc<Extent>>>,
    /// Extents whose bytes may be in the journal or the page cache only.
    pub(crate) dirty: Mutex<BTreeMap<ExtentId, Arc<Extent>>>,
    /// Those with an open file.
    pub(super) open_files: OpenFiles,
    /// Folders synced since the start: their names are durable, and what is not in them.
    folders: Mutex<BTreeSet<String>>,
    /// Extents whose creation nobody has been told of. `None`: it is being made, or that failed; a
    /// file may be there. `Some`: it is made, but nobody waits for it.
    half_made: Mutex<BTreeMap<ExtentId, Option<Arc<Extent>>>>,
    /// Held over a folder's sync: of overlapping ones only one may be told of a failure.
    syncing_folders: tokio::sync::Mutex<()>,
}

/// What a store is made of.
pub(crate) struct Parts {
    pub(crate) number: usize,
    pub(crate) id: usize,
    pub(crate) store_id: u128,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) env: Env,
    pub(crate) config: CapacityConfig,
    pub(crate) metrics: CapacityMetrics,
    pub(crate) health: Arc<Health>,
    pub(crate) journal: Journal,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) space: SpaceWatch,
    pub(crate) stop: CancellationToken,
}

/// The folder of an extent's file.
pub(crate) fn folder_of(extent: ExtentId) -> String {
    format!("extents/{:02x}", extent.get() & 0xff)
}

/// The path of an extent's file.
pub(crate) fn path_of(extent: ExtentId) -> String {
    format!("{}/{:016x}.x", folder_of(extent), extent.get())
}

/// The extent of a path, if it is one.
pub(crate) fn extent_of(path: &str) -> Option<ExtentId> {
    let name = path.rsplit('/').next()?.strip_suffix(".x")?;
    if name.len() != 16 {
        return None;
    }
    u64::from_str_radix(name, 16).ok().map(ExtentId::new)
}

impl Store {
    /// A store over recovered parts.
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            number: parts.number,
            id: parts.id,
            draining: AtomicBool::new(false),
            store_id: parts.store_id,
            disk: parts.disk,
            env: parts.env,
            config: parts.config,
            metrics: parts.metrics,
            health: parts.health,
            journal: parts.journal,
            catalog: parts.catalog,
            space: parts.space,
            stopping: parts.stop,
            checkpointing: tokio::sync::Mutex::default(),
            sparse: Mutex::default(),
            dirty: Mutex::default(),
            open_files: OpenFiles::default(),
            folders: Mutex::default(),
            half_made: Mutex::default(),
            syncing_folders: tokio::sync::Mutex::default(),
        }
    }

    /// Stops writes after a failure; [`DiskError::Full`] where space was reserved is a failure too.
    pub(crate) fn poison(&self, doing: &'static str, error: &DiskError) -> Error {
        let answer = self.health.poison(doing, error);
        self.journal.wake();
        answer
    }

    /// Stops writes after a panic of a task that they need, and ends those that wait for it.
    pub(crate) fn stop(&self, task: &'static str, why: &str) {
        self.health.stop(task, why);
        self.journal.end();
        self.journal.wake();
    }

    /// Payload of a durable append below which it goes through the journal.
    pub(crate) fn journal_append_max(&self) -> u64 {
        self.config.journal_append_max.min(self.journal.capacity() / 8)
    }

    /// Notes that an extent's file may come to be, before the task begins that creates it: who
    /// removes the extent waits for the end of that task.
    pub(crate) fn begin(&self, id: ExtentId) {
        self.half_made().insert(id, None);
    }

    async fn may_create(&self, kind: ExtentKind) -> Result<(), Error> {
        self.health.check()?;
        self.admit(kind, DATA_AT).await
    }

    /// Creates an extent's file, after [`Self::begin`]. Durable: header before name, so a name that
    /// survives has its header.
    pub(crate) async fn create(
        &self,
        id: ExtentId,
        kind: ExtentKind,
        epoch: Epoch,
    ) -> Result<Arc<Extent>, Error> {
        if let Err(error) = self.may_create(kind).await {
            self.made(id);
            return Err(error);
        }
        let header = Header { extent: id, kind, created: epoch, store: self.store_id };
        let page = header.page();
        let file = match self.disk.create(&path_of(id)).await {
            Ok(file) => file,
            Err(DiskError::Full) => {
                self.made(id);
                return Err(Error::Full);
            }
            Err(error) => return Err(self.poison("create", &error)),
        };
        self.metrics.fsyncs.inc();
        match file.write_sync(0, vec![page.clone()]).await {
            Ok(()) => {}
            Err(DiskError::Full) => {
                let removed = self.disk.remove(&path_of(id)).await;
                removed.map_err(|error| self.poison("remove", &error))?;
                // Another creation's sync may have made the name durable.
                self.sync_folder(&folder_of(id)).await?;
                self.made(id);
                return Err(Error::Full);
            }
            Err(error) => return Err(self.poison("header write", &error)),
        }
        self.sync_folder(&folder_of(id)).await?;
        let slot = Slot::parse(&page).expect("a new page has a slot");
        let extent = Arc::new(Extent::new(id, kind, slot));
        extent.state().file = Some(file);
        self.metrics.extents.inc();
        self.note_open(&extent).await;
        self.half_made().insert(id, Some(Arc::clone(&extent)));
        Ok(extent)
    }

    pub(super) fn half_made(&self) -> MutexGuard<'_, BTreeMap<ExtentId, Option<Arc<Extent>>>> {
        self.half_made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the names in a folder durable, and the folder's own name the first time.
    pub(crate) async fn sync_folder(&self, folder: &str) -> Result<(), Error> {
        let known = self.folders().contains(folder);
        let mut names = vec![folder];
        if !known {
            names.extend(["extents", ""]);
        }
        let _one = self.syncing_folders.lock().await;
        for name in names {
            self.health.check()?;
            self.metrics.fsyncs.inc();
            self.disk.sync_dir(name).await.map_err(|e| self.poison("folder sync", &e))?;
        }
        self.folders().insert(folder.to_owned());
        Ok(())
    }

    pub(super) fn folders(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves space up to logical `end`, so that what is acknowledged from the journal can always
    /// be applied.
    pub(crate) async fn reserve(&self, extent: &Arc<Extent>, end: u64) -> Result<(), Error> {
        let allocated = extent.state().allocated;
        if end <= allocated {
            return Ok(());
        }
        let file = self.writable(extent).await?;
        let least = page_up(end) - allocated;
        let step = self.config.allocate_step(extent.kind, allocated).max(least);
        let mut last = Error::Full;
        for len in [step, least] {
            if let Err(error) = self.admit(extent.kind, len).await {
                last = error;
                continue;
            }
            match file.allocate(DATA_AT + allocated, len).await {
                Ok(()) => {
                    extent.state().allocated = allocated + len;
                    return Ok(());
                }
                Err(DiskError::Full) => last = Error::Full,
                Err(error) => return Err(self.poison("allocate", &error)),
            }
        }
        Err(last)
    }

    async fn admit(&self, kind: ExtentKind, len: u64) -> Result<(), Error> {
        self.space.admit(&*self.disk, &self.env, &self.config, kind, len).await
    }

    /// Remembers that the extent needs a sync before the journal can forget its records.
    pub(crate) fn mark_dirty(&self, extent: &Arc<Extent>) {
        self.dirty
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(extent.id)
            .or_insert_with(|| Arc::clone(extent));
    }

    /// Remembers that space may be won by compacting the extent.
    pub(crate) fn mark_sparse(&self, extent: &Arc<Extent>) {
        self.sparse
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(extent.id, Arc::clone(extent));
    }

    /// Notes changes in the catalog, which may take time on a real disk.
    pub(crate) async fn note(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        if !self.catalog.may_block() {
            self.catalog.apply(&changes);
            return;
        }
        let catalog = Arc::clone(&self.catalog);
        let work = self.env.tasks.spawn_blocking("catalog", move || catalog.apply(&changes));
        if work.await.is_err() {
            tracing::warn!(
                "a change of the catalog was lost; the audit will find the bytes that it freed"
            );
        }
    }
}
