//! The capacity node: the disks of one machine behind one interface.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::capacity::AppendRequest;
use crate::capacity::Appended;
use crate::capacity::Audited;
use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::Damages;
use crate::capacity::Error;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::LogFrame;
use crate::capacity::OpenError;
use crate::capacity::ScrubReport;
use crate::capacity::disk::open::open_all;
use crate::capacity::disk::opening::Opening;
use crate::capacity::disk::scrub::{self, Schedule, Which};
use crate::capacity::disk::store::Store;
use crate::capacity::extent::frame::frames_of;
use crate::capacity::extent::header::NewExtent;
use crate::capacity::extent::memory::{Frees, Status};
use crate::capacity::extent::ranges::{numbers, offsets};
use crate::capacity::home::Home;
use crate::capacity::metrics::CapacityMetrics;
use crate::capacity::placement::Placement;
use crate::capacity::removed::Removed;
use crate::capacity::twins;
use crate::env::{Disk, Env};
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// A capacity node over the disks of one machine. If it is dropped without [`Self::shutdown`], it
/// stops as in a crash.
#[derive(Debug)]
pub struct CapacityNode {
    pub(super) stores: RwLock<Vec<Arc<Store>>>,
    pub(super) extents: RwLock<BTreeMap<ExtentId, Home>>,
    pub(super) placement: Mutex<Placement>,
    /// Whether a disk of the store is out of service. An extent that the node does not find may lie
    /// on it.
    pub(super) lacks_disk: bool,
    /// The numbers of the disks that are out of service; empty until [`Self::set_out_of_service`].
    out_of_service: RwLock<Vec<usize>>,
    /// Extents that may have a second file, left by a failed creation or a move: those found at a
    /// start without one of the disks, and those whose second file could not be removed.
    pub(super) doubtful: BTreeSet<ExtentId>,
    pub(super) env: Env,
    pub(super) config: CapacityConfig,
    pub(super) stop: CancellationToken,
    /// Held while an extent of another node is copied to this node: two copies could write the same
    /// file.
    pub(super) copying: tokio::sync::Mutex<()>,
    /// Held while a call of a member creates a copy: two calls could create two files of it.
    pub(super) creating: tokio::sync::Mutex<()>,
    /// Extents that were removed, for members that create copies again.
    pub(super) removed: Removed,
    /// What was found damaged.
    pub(super) damages: Damages,
    journals: Mutex<Vec<JoinHandle<()>>>,
    loops: Mutex<Vec<JoinHandle<()>>>,
}

impl CapacityNode {
    /// Opens the disks, recovers them, and starts the node's tasks. Empty disks are added to the
    /// store.
    ///
    /// # Errors
    /// [`OpenError`]: no data was lost, and no task of the node runs.
    pub async fn open(
        disks: Vec<Arc<dyn Disk>>,
        env: Env,
        config: CapacityConfig,
        metrics: CapacityMetrics,
    ) -> Result<Arc<Self>, OpenError> {
        let (damages, stop) = (Damages::default(), CancellationToken::new());
        let opening = Opening {
            env: env.clone(),
            config: config.clone(),
            metrics: metrics.clone(),
            damages: damages.clone(),
            stop: stop.clone(),
        };
        let opened = open_all(disks, &opening).await?;
        let mut stores = Vec::new();
        let mut extents = BTreeMap::new();
        let mut doubtful = BTreeSet::new();
        let mut lacks_disk = config.without;
        for disk in opened {
            let disk = match disk {
                Ok(disk) => disk,
                Err(error) => {
                    tracing::error!(
                        %error,
                        "a disk cannot be recovered and is out of service; repair it, then restart"
                    );
                    metrics.failed_disks.inc();
                    lacks_disk = true;
                    continue;
                }
            };
            for extent in disk.extents {
                let id = extent.id;
                let home = Home { store: Arc::clone(&disk.store), extent };
                match extents.entry(id) {
                    Entry::Vacant(entry) => {
                        entry.insert(home);
                    }
                    Entry::Occupied(mut entry) => {
                        if !twins::drop_twin(entry.get_mut(), home).await {
                            doubtful.insert(id);
                        }
                    }
                }
            }
            stores.push(disk.store);
        }
        doubtful.extend(extents.keys().filter(|_| lacks_disk));
        let node = Arc::new(Self {
            placement: Mutex::new(Placement::new(stores.len())),
            stores: RwLock::new(stores),
            extents: RwLock::new(extents),
            lacks_disk,
            out_of_service: RwLock::default(),
            doubtful,
            env,
            config,
            stop,
            copying: tokio::sync::Mutex::default(),
            creating: tokio::sync::Mutex::default(),
            removed: Removed::default(),
            damages,
            journals: Mutex::default(),
            loops: Mutex::default(),
        });
        node.start();
        Ok(node)
    }

    /// Sets the numbers of the store's disks that are out of service until the next start. The node
    /// does not use them; it only shows them in its metrics.
    pub fn set_out_of_service(&self, numbers: Vec<usize>) {
        *self.out_of_service.write().unwrap_or_else(PoisonError::into_inner) = numbers;
    }

    /// The extents that are not sealed.
    #[must_use]
    pub fn unsealed(&self) -> Vec<ExtentInfo> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        let is_unsealed = |home: &&Home| home.extent.state().phase() != ExtentState::Sealed;
        let unsealed = extents.values().filter(is_unsealed);
        unsealed.map(|home| home.extent.info(home.store.place)).collect()
    }

    /// Bytes that new extents may take, as last measured.
    #[must_use]
    pub fn room(&self) -> u64 {
        let takes = |store: &&Arc<Store>| {
            !store.draining.load(Ordering::Acquire) && !store.health.poisoned()
        };
        self.stores().iter().filter(takes).map(|store| store.space.available()).sum()
    }

    /// The numbers of the disks that are out of service.
    pub(super) fn out_of_service(&self) -> Vec<usize> {
        self.out_of_service.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn start(self: &Arc<Self>) {
        let mut journals = Vec::new();
        let mut loops = Vec::new();
        for store in &self.stores() {
            let journal = Arc::clone(store);
            let work = async move { journal.journal_loop().await };
            // A panicked journal or checkpoint loses the records it was writing. The disk could
            // acknowledge lost bytes if it took further writes.
            let poison = |task| {
                let store = Arc::clone(store);
                move |why: &str| store.stop(task, why)
            };
            journals.push(self.env.tasks.spawn_or_stop("journal", work, poison("journal")));
            let work = Arc::clone(store).checkpoint_loop();
            loops.push(self.env.tasks.spawn_or_stop("checkpoint", work, poison("checkpoint")));
            if self.config.compact_bytes_per_second > 0 {
                let store = Arc::clone(store);
                let compact = move || Arc::clone(&store).compact_loop();
                loops.push(self.env.supervise("compact", self.stop.clone(), compact));
            }
        }
        if self.config.scrub_bytes_per_second > 0 {
            let node = Arc::downgrade(self);
            let scrub = move || scrub_rounds(node.clone());
            loops.push(self.env.supervise("scrub", self.stop.clone(), scrub));
        }
        *self.journals.lock().unwrap_or_else(PoisonError::into_inner) = journals;
        *self.loops.lock().unwrap_or_else(PoisonError::into_inner) = loops;
    }

    /// Makes all appended bytes durable in the extents' files and stops. Later appends fail.
    pub async fn shutdown(&self) {
        let stores = self.stores();
        for store in &stores {
            store.journal.close();
        }
        // Queued records are written first, while checkpoints can still make room for them.
        join(&self.journals).await;
        for store in &stores {
            if let Err(error) = store.checkpoint().await {
                tracing::warn!(
                    disk = store.number, %error,
                    "the last checkpoint failed; the next start replays the journal"
                );
            }
        }
        self.stop.cancel();
        join(&self.loops).await;
        for store in &stores {
            let catalog = Arc::clone(&store.catalog);
            if catalog.may_block() {
                let flushed = self.env.tasks.spawn_blocking("catalog", move || catalog.flush());
                flushed.await.unwrap_or_default();
            }
        }
    }

    /// Overwrites all records that the journals hold, after a checkpoint. Records that are written
    /// meanwhile stay. Returns false if a disk is out of service or takes no writes: its journal
    /// was not erased.
    ///
    /// # Errors
    /// The error of a checkpoint: try again.
    pub async fn erase_journals(&self) -> Result<bool, Error> {
        let (mut all, mut failed) = (!self.lacks_disk, Ok(()));
        for store in &self.stores() {
            let done = store.checkpoint().await;
            if done.is_ok() {
                store.journal.erase().await;
            }
            match store.health.poisoned() {
                true => all = false,
                false => failed = failed.and(done),
            }
        }
        failed.map(|()| all)
    }

    pub(super) fn home(&self, extent: ExtentId) -> Result<Home, Error> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        let home = extents.get(&extent).filter(|home| !self.is_leftover(home));
        home.cloned().ok_or_else(|| self.absent(extent))
    }

    /// The error for an extent that was not found.
    fn absent(&self, extent: ExtentId) -> Error {
        if !self.lacks_disk {
            return Error::NoSuchExtent { extent };
        }
        Error::OutOfService { extent }
    }

    /// Runs a change in a task of the node. The change completes, and its failure takes effect,
    /// even if the caller is cancelled.
    pub(super) async fn owned<T, F>(&self, name: &'static str, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let task = self.env.tasks.spawn(name, work);
        task.await.unwrap_or(Err(Error::Ended { doing: name }))
    }

    /// Removes an extent from the node's map if its status is removed. If the extent was moved, the
    /// map already names the new file and is not changed.
    pub(super) fn forget_removed(&self, home: &Home) {
        if home.extent.state().status == Status::Removed {
            let mut extents = self.extents.write().unwrap_or_else(PoisonError::into_inner);
            if let Entry::Occupied(entry) = extents.entry(home.extent.id)
                && Arc::ptr_eq(&entry.get().extent, &home.extent)
            {
                entry.remove();
            }
        }
    }

    /// Whether to repeat a call that did not find the extent, because a drain has moved it.
    pub(super) fn should_retry<T>(&self, home: &Home, done: &Result<T, Error>) -> bool {
        matches!(done, Err(Error::NoSuchExtent { .. })) && self.was_moved(home)
    }
}

impl Drop for CapacityNode {
    fn drop(&mut self) {
        self.stop.cancel();
        for store in &self.stores() {
            store.journal.close();
        }
    }
}

async fn join(tasks: &Mutex<Vec<JoinHandle<()>>>) {
    let tasks = std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner));
    for task in tasks {
        if task.await.is_err() {
            tracing::error!(
                "a task of the capacity node had panicked; the next start recovers its disk"
            );
        }
    }
}

async fn scrub_rounds(node: std::sync::Weak<CapacityNode>) {
    let Some(strong) = node.upgrade() else { return };
    let (clock, stop) = (Arc::clone(&strong.env.clock), strong.stop.clone());
    let (pace, pause) = (strong.config.scrub_bytes_per_second, strong.config.scrub_pause);
    drop(strong);
    let ids = |which| {
        let node = node.upgrade()?;
        let extents = node.extents.read().unwrap_or_else(PoisonError::into_inner);
        let is_due = |home: &Home| match which {
            Which::All => true,
            Which::Settled => home.extent.state().frees == Frees::Settled,
        };
        let due = extents.iter().filter(|(_, home)| is_due(home)).map(|(id, _)| *id);
        let mut due: Vec<ExtentId> = due.collect();
        // A round may take longer than the node runs, so it begins at a random extent.
        let first = node.env.rand.below(due.len() as u64);
        due.rotate_left(usize::try_from(first).unwrap_or(0));
        Some(due)
    };
    let one = |id| {
        let home = node.upgrade().and_then(|node| node.home(id).ok());
        async move {
            let Home { store, extent } = home?;
            Some(store.scrub(&extent, pace).await)
        }
    };
    scrub::rounds(Schedule { clock, stop, pause }, ids, one).await;
}

#[async_trait]
impl Capacity for CapacityNode {
    async fn create(&self, extent: ExtentId, kind: ExtentKind, epoch: Epoch) -> Result<(), Error> {
        if self.home(extent).is_ok() {
            return Err(Error::NoSuchExtent { extent });
        }
        let new = NewExtent { extent, kind, epoch, incomplete: false };
        self.create_extent(new).await.map(drop)
    }

    async fn append(&self, request: AppendRequest) -> Result<Appended, Error> {
        let home = self.home(request.extent)?;
        home.store.append(&home.extent, request).await
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        loop {
            let home = self.home(extent)?;
            let done = home.store.flush(&home.extent, epoch).await;
            if !self.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<Bytes>, Error> {
        loop {
            let home = self.home(location.extent)?;
            let done = home.store.read(&home.extent, location, range.clone()).await;
            if !self.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn next_frame(
        &self,
        extent: ExtentId,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error> {
        loop {
            let home = self.home(extent)?;
            let done = home.store.next_frame(&home.extent, offset).await;
            if !self.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn fence(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        loop {
            let home = self.home(extent)?;
            let Home { store, extent } = home.clone();
            let fence = async move { store.fence(&extent, epoch).await };
            let done = self.owned("fence", fence).await;
            if !self.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn seal(&self, extent: ExtentId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        loop {
            let home = self.home(extent)?;
            let Home { store, extent } = home.clone();
            let seal = async move { store.seal(&extent, epoch).await };
            let end = self.owned("seal", seal).await;
            self.forget_removed(&home);
            if !self.should_retry(&home, &end) {
                return end;
            }
        }
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        let mut by_extent: BTreeMap<ExtentId, Vec<Range<ExtentOffset>>> = BTreeMap::new();
        for location in locations {
            by_extent.entry(location.extent).or_default().push(frames_of(location));
        }
        let mut done = Ok(());
        while let Some((id, ranges)) = by_extent.pop_first() {
            let home = match self.home_unless_gone(id) {
                Ok(Some(home)) => home,
                // The extent no longer exists, so nothing is left to free.
                Ok(None) => continue,
                Err(error) => {
                    done = done.and(Err(error));
                    continue;
                }
            };
            let Home { store, extent } = home.clone();
            let again = ranges.clone();
            let free = async move { store.free(&extent, &ranges).await };
            // An error of one disk does not prevent frees on the others.
            done = done.and(self.owned("free", free).await);
            self.forget_removed(&home);
            if self.was_moved(&home) {
                by_extent.insert(id, again);
            }
        }
        done
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        self.remove_extent(extent).await
    }

    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error> {
        loop {
            let home = self.home(extent)?;
            let Home { store, extent } = home.clone();
            let live: Vec<_> = live.iter().map(offsets).collect();
            let retain = async move { store.retain(&extent, &live, audited).await };
            let done = self.owned("retain", retain).await;
            self.forget_removed(&home);
            if !self.was_moved(&home) {
                return done;
            }
        }
    }

    fn frames_of(&self, location: &Location) -> Range<u64> {
        numbers(&frames_of(location))
    }

    async fn extents(&self) -> Vec<ExtentInfo> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.values().map(|home| home.extent.info(home.store.place)).collect()
    }

    fn is_whole(&self) -> bool {
        !self.lacks_disk
    }

    async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error> {
        let home = self.home(extent)?;
        home.store.scrub(&home.extent, 0).await
    }
}
