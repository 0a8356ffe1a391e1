//! The capacity node: all disks behind one interface.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::ops::Range;
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
use crate::capacity::Error;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::LogFrame;
use crate::capacity::OpenError;
use crate::capacity::ScrubReport;
use crate::capacity::disk::open::open_all;
use crate::capacity::disk::opening::Opening;
use crate::capacity::disk::scrub;
use crate::capacity::disk::scrub::{Schedule, Which};
use crate::capacity::disk::store::Store;
use crate::capacity::extent::frame::frames_of;
use crate::capacity::extent::memory::{Frees, Status};
use crate::capacity::home::{Home, NewExtent};
use crate::capacity::metrics::CapacityMetrics;
use crate::capacity::placement::Placement;
use crate::capacity::twins;
use crate::env::{Disk, Env};
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// A capacity node over the disks of one machine. Dropped without [`Self::shutdown`] it stops as in
/// a crash.
#[derive(Debug)]
pub struct CapacityNode {
    pub(super) stores: RwLock<Vec<Arc<Store>>>,
    pub(super) extents: RwLock<BTreeMap<ExtentId, Home>>,
    pub(super) placement: Mutex<Placement>,
    /// Whether a disk of the store is out of service, so that an extent that is not here may be
    /// there.
    pub(super) out: bool,
    /// The numbers of the disks that are out of service, once somebody who knows them has told.
    out_of_service: RwLock<Vec<usize>>,
    /// Found at the start while a disk is out of service: what a failed creation or a move left of
    /// these may lie there too.
    pub(super) doubtful: BTreeSet<ExtentId>,
    pub(super) env: Env,
    pub(super) config: CapacityConfig,
    pub(super) stop: CancellationToken,
    /// Held by the one copy of another node's extent that is being made: two could write one file.
    pub(super) copying: tokio::sync::Mutex<()>,
    journals: Mutex<Vec<JoinHandle<()>>>,
    loops: Mutex<Vec<JoinHandle<()>>>,
}

impl CapacityNode {
    /// Opens the disks, recovers them, and starts the node's tasks. Empty disks are made part of
    /// the store.
    ///
    /// # Errors
    /// [`OpenError`]: nothing was lost, nothing runs.
    pub async fn open(
        disks: Vec<Arc<dyn Disk>>,
        env: Env,
        config: CapacityConfig,
        metrics: CapacityMetrics,
    ) -> Result<Arc<Self>, OpenError> {
        let stop = CancellationToken::new();
        let opening = Opening {
            env: env.clone(),
            config: config.clone(),
            metrics: metrics.clone(),
            stop: stop.clone(),
        };
        let opened = open_all(disks, &opening).await?;
        let mut stores = Vec::new();
        let mut extents = BTreeMap::new();
        let mut doubtful = BTreeSet::new();
        let mut out = config.without;
        for disk in opened {
            let disk = match disk {
                Ok(disk) => disk,
                Err(error) => {
                    tracing::error!(
                        %error,
                        "a disk cannot be recovered; the node goes on without it"
                    );
                    metrics.failed_disks.inc();
                    out = true;
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
        doubtful.extend(extents.keys().filter(|_| out));
        let node = Arc::new(Self {
            placement: Mutex::new(Placement::new(stores.len())),
            stores: RwLock::new(stores),
            extents: RwLock::new(extents),
            out,
            out_of_service: RwLock::default(),
            doubtful,
            env,
            config,
            stop,
            copying: tokio::sync::Mutex::default(),
            journals: Mutex::default(),
            loops: Mutex::default(),
        });
        node.start();
        Ok(node)
    }

    /// Tells which disks of the store are out of service until the next start, by their numbers:
    /// they have no place here, but are shown.
    pub fn set_out_of_service(&self, numbers: Vec<usize>) {
        *self.out_of_service.write().unwrap_or_else(PoisonError::into_inner) = numbers;
    }

    /// The numbers of the disks that are out of service, as told.
    pub(super) fn out_of_service(&self) -> Vec<usize> {
        self.out_of_service.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn start(self: &Arc<Self>) {
        let mut journals = Vec::new();
        let mut loops = Vec::new();
        for store in &self.stores() {
            let journal = Arc::clone(store);
            let work = async move { journal.journal_loop().await };
            // What a panicked journal or checkpoint had in hand is lost: going on could acknowledge
            // bytes that are gone.
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

    /// Makes everything durable in the extents' files and stops. Appends that come later fail.
    pub async fn shutdown(&self) {
        let stores = self.stores();
        for store in &stores {
            store.journal.close();
        }
        // First what is queued, while checkpoints can still make room for it.
        join(&self.journals).await;
        for store in &stores {
            if let Err(error) = store.checkpoint().await {
                tracing::warn!(
                    disk = store.id, %error,
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

    /// Leaves nothing in the journals but what is written from now on. Returns whether it could:
    /// not on a disk that is out of service or takes no writes.
    ///
    /// # Errors
    /// The error of a checkpoint: it may be tried again.
    pub async fn erase_journals(&self) -> Result<bool, Error> {
        let (mut all, mut failed) = (!self.out, Ok(()));
        for store in &self.stores() {
            let settled = store.checkpoint().await;
            if settled.is_ok() {
                store.journal.erase().await;
            }
            match store.health.poisoned() {
                true => all = false,
                false => failed = failed.and(settled),
            }
        }
        failed.map(|()| all)
    }

    pub(super) fn home(&self, extent: ExtentId) -> Result<Home, Error> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        let home = extents.get(&extent).filter(|home| !self.is_leftover(home));
        home.cloned().ok_or_else(|| self.absent(extent))
    }

    /// The answer for an extent that is not here.
    fn absent(&self, extent: ExtentId) -> Error {
        if !self.out {
            return Error::NoSuchExtent { extent };
        }
        Error::OutOfService { extent }
    }

    /// Runs a change in a task of the node, so that it goes on, and its failure counts, if the
    /// caller goes away.
    pub(super) async fn owned<T, F>(&self, name: &'static str, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let task = self.env.tasks.spawn(name, work);
        task.await.unwrap_or(Err(Error::Ended { doing: name }))
    }

    /// Forgets an extent that was removed, unless what was removed is only what a move left behind.
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

    /// Whether a call that found nothing is to be made again where the extent is now.
    fn look_again<T>(&self, home: &Home, done: &Result<T, Error>) -> bool {
        matches!(done, Err(Error::NoSuchExtent { .. })) && self.was_moved(home)
    }

    async fn create_on(
        &self,
        store: &Arc<Store>,
        NewExtent { extent, kind, epoch }: NewExtent,
    ) -> Result<Home, Error> {
        let worker = Arc::clone(store);
        store.begin(extent);
        let work = async move { worker.create(extent, kind, epoch).await };
        let task = self.env.tasks.spawn("create", work);
        let extent = task.await.unwrap_or(Err(Error::Ended { doing: "create" }))?;
        Ok(Home { store: Arc::clone(store), extent })
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
            tracing::error!("a task of the capacity node panicked");
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
        // A round may take longer than the node runs: it begins anywhere.
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
        let stores = self.stores();
        let order = {
            let mut placement = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
            placement.order(kind, &stores)
        };
        // No disk to try means that all are poisoned.
        let mut last = if order.is_empty() { Error::Poisoned { disk: 0 } } else { Error::Full };
        for number in order {
            let Some(store) = stores.get(number) else { continue };
            match self.create_on(store, NewExtent { extent, kind, epoch }).await {
                Ok(home) => {
                    let mut extents = self.extents.write().unwrap_or_else(PoisonError::into_inner);
                    // Not on a disk that was let go of meanwhile.
                    if self.stores().iter().any(|here| Arc::ptr_eq(here, store)) {
                        extents.insert(extent, home);
                        store.made(extent);
                        return Ok(());
                    }
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn append(&self, request: AppendRequest) -> Result<Appended, Error> {
        let home = self.home(request.extent)?;
        home.store.append(&home.extent, request).await
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        loop {
            let home = self.home(extent)?;
            let done = home.store.flush(&home.extent, epoch).await;
            if !self.look_again(&home, &done) {
                return done;
            }
        }
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<Bytes>, Error> {
        loop {
            let home = self.home(location.extent)?;
            let done = home.store.read(&home.extent, location, range.clone()).await;
            if !self.look_again(&home, &done) {
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
            let done = home.store.next_frame(&home.extent, offset.get()).await;
            if !self.look_again(&home, &done) {
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
            if !self.look_again(&home, &done) {
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
            if !self.look_again(&home, &end) {
                return end.map(ExtentOffset::new);
            }
        }
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        let mut by_extent: BTreeMap<ExtentId, Vec<Range<u64>>> = BTreeMap::new();
        for location in locations {
            by_extent.entry(location.extent).or_default().push(frames_of(location));
        }
        let mut done = Ok(());
        while let Some((id, ranges)) = by_extent.pop_first() {
            let home = match self.home_unless_gone(id) {
                Ok(Some(home)) => home,
                // A free that is tried again.
                Ok(None) => continue,
                Err(error) => {
                    done = done.and(Err(error));
                    continue;
                }
            };
            let Home { store, extent } = home.clone();
            let again = ranges.clone();
            let free = async move { store.free(&extent, &ranges).await };
            // One poisoned disk does not keep the others from giving space back.
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
            let live = live.to_vec();
            let retain = async move { store.retain(&extent, &live, audited).await };
            let done = self.owned("retain", retain).await;
            self.forget_removed(&home);
            if !self.was_moved(&home) {
                return done;
            }
        }
    }

    fn frames_of(&self, location: &Location) -> Range<u64> {
        frames_of(location)
    }

    async fn extents(&self) -> Vec<ExtentInfo> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.values().map(|home| home.extent.info(home.store.number)).collect()
    }

    fn is_whole(&self) -> bool {
        !self.out
    }

    async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error> {
        let home = self.home(extent)?;
        home.store.scrub(&home.extent, 0).await
    }
}
