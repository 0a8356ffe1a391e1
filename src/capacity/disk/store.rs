//! The state of one open disk, which the operations in the other files of this folder use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::capacity::CapacityConfig;
use crate::capacity::Damages;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::disk::catalog::{Catalog, Change};
use crate::capacity::disk::open_files::OpenFiles;
use crate::capacity::disk::space::SpaceWatch;
use crate::capacity::extent::header::{DATA_AT, NewExtent, Slot, file_offset};
use crate::capacity::extent::memory::Extent;
use crate::capacity::health::Health;
use crate::capacity::journal::writer::Journal;
use crate::capacity::metrics::CapacityMetrics;
use crate::capacity::units::offset_up;
use crate::env::{Disk, DiskError, Env};
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// One disk.
#[derive(Debug)]
pub(crate) struct Store {
    /// Its place in the list of disks that the node was opened with.
    pub(crate) place: usize,
    /// Its number in the store. It does not depend on the order in which the disks are given.
    pub(crate) number: usize,
    /// Whether it takes no new extents because it is being emptied.
    pub(crate) draining: AtomicBool,
    /// The store all disks of the node belong to.
    pub(crate) store_id: u128,
    /// Its files.
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
    /// Gets what the scrub and readers find damaged.
    pub(crate) damages: Damages,
    /// Fires when the node stops.
    pub(crate) stopping: CancellationToken,
    /// Held by the one checkpoint that may run.
    pub(crate) checkpointing: tokio::sync::Mutex<()>,
    /// Sealed extents with frees since the compaction last examined them.
    pub(crate) sparse: Mutex<BTreeMap<ExtentId, Arc<Extent>>>,
    /// Extents with bytes that may be only in the journal or the page cache.
    pub(crate) dirty: Mutex<BTreeMap<ExtentId, Arc<Extent>>>,
    /// Extents with an open file.
    pub(super) open_files: OpenFiles,
    /// Folders synced since the start. The presence and absence of names in them was durable then.
    folders: Mutex<BTreeSet<String>>,
    /// Extents whose creation was not acknowledged. `None`: the creation is in progress or failed,
    /// and a file may exist. `Some`: the extent was created, but is not in the node's map.
    creations: Mutex<BTreeMap<ExtentId, Option<Arc<Extent>>>>,
    /// Held during the sync of a folder. Of two overlapping syncs, only one may get the error.
    syncing_folders: tokio::sync::Mutex<()>,
}

/// The parameters of [`Store::new`].
pub(crate) struct StoreSetup {
    pub(crate) place: usize,
    pub(crate) number: usize,
    pub(crate) store_id: u128,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) env: Env,
    pub(crate) config: CapacityConfig,
    pub(crate) metrics: CapacityMetrics,
    pub(crate) health: Arc<Health>,
    pub(crate) journal: Journal,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) space: SpaceWatch,
    pub(crate) damages: Damages,
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

/// The extent of a path; `None` if it is not the path of an extent's file.
pub(crate) fn extent_of(path: &str) -> Option<ExtentId> {
    let name = path.rsplit('/').next()?.strip_suffix(".x")?;
    if name.len() != 16 {
        return None;
    }
    u64::from_str_radix(name, 16).ok().map(ExtentId::new)
}

impl Store {
    /// An open disk after its recovery.
    pub(crate) fn new(setup: StoreSetup) -> Self {
        Self {
            place: setup.place,
            number: setup.number,
            draining: AtomicBool::new(false),
            store_id: setup.store_id,
            disk: setup.disk,
            env: setup.env,
            config: setup.config,
            metrics: setup.metrics,
            health: setup.health,
            journal: setup.journal,
            catalog: setup.catalog,
            space: setup.space,
            damages: setup.damages,
            stopping: setup.stop,
            checkpointing: tokio::sync::Mutex::default(),
            sparse: Mutex::default(),
            dirty: Mutex::default(),
            open_files: OpenFiles::default(),
            folders: Mutex::default(),
            creations: Mutex::default(),
            syncing_folders: tokio::sync::Mutex::default(),
        }
    }

    /// Poisons the disk after a failed operation. [`DiskError::Full`] on reserved space is such a
    /// failure.
    pub(crate) fn poison(&self, doing: &'static str, error: &DiskError) -> Error {
        let answer = self.health.poison(doing, error);
        self.journal.wake();
        answer
    }

    /// Poisons the disk after a panic of a task that writes depend on. Writes that wait for the
    /// journal get an error.
    pub(crate) fn stop(&self, task: &'static str, why: &str) {
        self.health.stop(task, why);
        self.journal.end();
        self.journal.wake();
    }

    /// Durable appends whose frames take fewer bytes than this go through the journal.
    pub(crate) fn journal_append_max(&self) -> u64 {
        self.config.journal_append_max.min(self.journal.capacity() / 8)
    }

    /// Notes that a creation begins, before its task starts. Until the task ends, a removal of the
    /// extent fails.
    pub(crate) fn begin_creation(&self, id: ExtentId) {
        self.creations().insert(id, None);
    }

    async fn may_create(&self, kind: ExtentKind) -> Result<(), Error> {
        self.health.check()?;
        self.admit(kind, DATA_AT).await
    }

    /// Creates an extent's file, after [`Self::begin_creation`]. It is durable when this returns.
    /// The header is durable before the name, so a file that survives a crash has its header.
    pub(crate) async fn create(&self, new: NewExtent) -> Result<Arc<Extent>, Error> {
        let NewExtent { extent: id, kind, .. } = new;
        if let Err(error) = self.may_create(kind).await {
            self.creation_done(id);
            return Err(error);
        }
        let page = new.page(self.store_id);
        let file = match self.disk.create(&path_of(id)).await {
            Ok(file) => file,
            Err(DiskError::Full) => {
                self.creation_done(id);
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
                // The sync of another creation may have made the name durable.
                self.sync_folder(&folder_of(id)).await?;
                self.creation_done(id);
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
        self.creations().insert(id, Some(Arc::clone(&extent)));
        Ok(extent)
    }

    pub(super) fn creations(&self) -> MutexGuard<'_, BTreeMap<ExtentId, Option<Arc<Extent>>>> {
        self.creations.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Reserves space up to logical `end`, so that journaled bytes can always be written to the
    /// file.
    pub(crate) async fn reserve(
        &self,
        extent: &Arc<Extent>,
        end: ExtentOffset,
    ) -> Result<(), Error> {
        let allocated = extent.state().allocated;
        if end <= allocated {
            return Ok(());
        }
        let file = self.writable(extent).await?;
        let least = offset_up(end) - allocated;
        let step = self.config.allocate_step(extent.kind, allocated.get()).max(least);
        let mut last = Error::Full;
        for len in [step, least] {
            if let Err(error) = self.admit(extent.kind, len).await {
                last = error;
                continue;
            }
            match file.allocate(file_offset(allocated).get(), len).await {
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

    /// Notes that the extent must be synced before the journal releases its records.
    pub(crate) fn mark_dirty(&self, extent: &Arc<Extent>) {
        self.dirty
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(extent.id)
            .or_insert_with(|| Arc::clone(extent));
    }

    /// Notes that a compaction of the extent may free space.
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
                "a change of the catalog was lost; the next start or audit finds it again"
            );
        }
    }
}
