//! The capacity node: all disks behind one interface.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::capacity::AppendRequest;
use crate::capacity::Appended;
use crate::capacity::Capacity;
use crate::capacity::CapacityConfig;
use crate::capacity::Error;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::LogFrame;
use crate::capacity::OpenError;
use crate::capacity::ScrubReport;
use crate::capacity::extent::Extent;
use crate::capacity::frame::frames_of;
use crate::capacity::metrics::CapacityMetrics;
use crate::capacity::open::{Opening, open_all};
use crate::capacity::placement::Placement;
use crate::capacity::store::Store;
use crate::env::{Disk, Env};
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::Location;

/// A capacity node over the disks of one machine. Dropped without [`Self::shutdown`] it stops as in a crash.
#[derive(Debug)]
pub struct CapacityNode {
    stores: Vec<Arc<Store>>,
    extents: RwLock<BTreeMap<ExtentId, Home>>,
    placement: Mutex<Placement>,
    /// Whether a disk of the store is out of service, so that an extent that is not here may be there.
    out: bool,
    env: Env,
    config: CapacityConfig,
    stop: CancellationToken,
    journals: Mutex<Vec<JoinHandle<()>>>,
    loops: Mutex<Vec<JoinHandle<()>>>,
}

/// An extent and the disk it is on.
#[derive(Clone, Debug)]
struct Home {
    store: Arc<Store>,
    extent: Arc<Extent>,
}

impl CapacityNode {
    /// Opens the disks, recovers them, and starts the node's tasks. Empty disks are made part of the store.
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
        let mut out = config.without;
        for disk in opened {
            let disk = match disk {
                Ok(disk) => disk,
                Err(error) => {
                    tracing::error!(%error, "the node goes on without a disk that cannot be recovered");
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
                    Entry::Occupied(mut entry) => drop_twin(entry.get_mut(), home).await,
                }
            }
            stores.push(disk.store);
        }
        let node = Arc::new(Self {
            placement: Mutex::new(Placement::new(stores.len())),
            stores,
            extents: RwLock::new(extents),
            out,
            env,
            config,
            stop,
            journals: Mutex::default(),
            loops: Mutex::default(),
        });
        node.start();
        Ok(node)
    }

    fn start(self: &Arc<Self>) {
        let mut journals = Vec::new();
        let mut loops = Vec::new();
        for store in &self.stores {
            let journal = Arc::clone(store);
            let work = async move { journal.journal_loop().await };
            journals.push(self.env.tasks.spawn("journal", work));
            loops.push(self.env.tasks.spawn("checkpoint", Arc::clone(store).checkpoint_loop()));
            if self.config.compact_bytes_per_second > 0 {
                loops.push(self.env.tasks.spawn("compact", Arc::clone(store).compact_loop()));
            }
        }
        if self.config.scrub_bytes_per_second > 0 {
            loops.push(self.env.tasks.spawn("scrub", scrub_loop(Arc::downgrade(self))));
        }
        *self.journals.lock().unwrap_or_else(PoisonError::into_inner) = journals;
        *self.loops.lock().unwrap_or_else(PoisonError::into_inner) = loops;
    }

    /// Makes everything durable in the extents' files and stops. Appends that come later fail.
    pub async fn shutdown(&self) {
        for store in &self.stores {
            store.journal.close();
        }
        // First what is queued, while checkpoints can still make room for it.
        join(&self.journals).await;
        for store in &self.stores {
            if let Err(error) = store.checkpoint().await {
                tracing::warn!(disk = store.number, %error, "no last checkpoint: the start replays");
            }
        }
        self.stop.cancel();
        join(&self.loops).await;
        for store in &self.stores {
            let catalog = Arc::clone(&store.catalog);
            if catalog.may_block() {
                let flushed = self.env.tasks.spawn_blocking("catalog", move || catalog.flush());
                flushed.await.unwrap_or_default();
            }
        }
    }

    fn home(&self, extent: ExtentId) -> Result<Home, Error> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.get(&extent).cloned().ok_or_else(|| self.absent(extent))
    }

    /// The answer for an extent that is not here.
    fn absent(&self, extent: ExtentId) -> Error {
        if !self.out {
            return Error::NoSuchExtent { extent };
        }
        let reason = "it is not here and may lie on the disk that is out of service";
        Error::Unreadable { extent, reason: reason.to_owned() }
    }

    /// The extent's place; `None` when it is known to be gone.
    fn home_unless_gone(&self, extent: ExtentId) -> Result<Option<Home>, Error> {
        match self.home(extent) {
            Ok(home) => Ok(Some(home)),
            Err(Error::NoSuchExtent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a change in a task of the node, so that it goes on, and its failure counts, if the caller goes away.
    async fn owned<T, F>(&self, name: &'static str, home: &Home, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let task = self.env.tasks.spawn(name, work);
        task.await.unwrap_or_else(|_| Err(home.store.health.error()))
    }

    fn forget_removed(&self, home: &Home) {
        if home.extent.state().status == crate::capacity::extent::Status::Removed {
            let mut extents = self.extents.write().unwrap_or_else(PoisonError::into_inner);
            extents.remove(&home.extent.id);
        }
    }

    async fn create_on(
        &self,
        store: &Arc<Store>,
        new: (ExtentId, ExtentKind, Epoch),
    ) -> Result<Home, Error> {
        let (extent, kind, epoch) = new;
        let worker = Arc::clone(store);
        let work = async move { worker.create(extent, kind, epoch).await };
        let task = self.env.tasks.spawn("create", work);
        let extent = task.await.unwrap_or_else(|_| Err(store.health.error()))?;
        Ok(Home { store: Arc::clone(store), extent })
    }
}

impl Drop for CapacityNode {
    fn drop(&mut self) {
        self.stop.cancel();
        for store in &self.stores {
            store.journal.close();
        }
    }
}

async fn join(tasks: &Mutex<Vec<JoinHandle<()>>>) {
    let tasks = std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner));
    for task in tasks {
        if task.await.is_err() {
            tracing::error!("a task of the capacity node had panicked");
        }
    }
}

/// From start to the first round of the scrub.
const SCRUB_FIRST_PAUSE: Duration = Duration::from_secs(10);

async fn scrub_loop(node: std::sync::Weak<CapacityNode>) {
    let mut first = true;
    loop {
        let Some(strong) = node.upgrade() else { return };
        let (env, pace, pause) =
            (strong.env.clone(), strong.config.scrub_bytes_per_second, strong.config.scrub_pause);
        // The first round starts soon: a node that is restarted more often than that would never be scrubbed.
        let pause = if first { pause.min(SCRUB_FIRST_PAUSE) } else { pause };
        first = false;
        let stop = strong.stop.clone();
        let ids: Vec<ExtentId> = {
            let extents = strong.extents.read().unwrap_or_else(PoisonError::into_inner);
            extents.keys().copied().collect()
        };
        drop(strong);
        tokio::select! {
                biased;
            () = stop.cancelled() => return,
            () = env.clock.sleep(pause) => {}
        }
        for id in ids {
            let Some(strong) = node.upgrade() else { return };
            let Ok(home) = strong.home(id) else { continue };
            drop(strong);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                scrubbed = home.store.scrub(&home.extent, pace) => {
                    if let Err(error) = scrubbed {
                        tracing::warn!(%error, "scrub skipped an extent");
                    }
                }
            }
        }
    }
}

/// A creation that failed may have left its file behind, and succeeded on another disk then. Only that one was ever
/// appended to or fenced.
async fn drop_twin(kept: &mut Home, other: Home) {
    let end = |home: &Home| home.extent.state().end;
    let used = |home: &Home| {
        let state = home.extent.state();
        (state.end, state.slot.epoch)
    };
    let lost = if used(kept) < used(&other) { std::mem::replace(kept, other) } else { other };
    let (extent, disk) = (lost.extent.id, lost.store.number);
    if end(&lost) > 0 {
        tracing::error!(%extent, disk, "on two disks; leaving the shorter one alone");
        return;
    }
    tracing::warn!(%extent, disk, "removing what a failed creation left");
    if let Err(error) = lost.store.remove(&lost.extent).await {
        tracing::warn!(%extent, disk, %error, "not removed; the next start tries again");
    }
}

#[async_trait]
impl Capacity for CapacityNode {
    async fn create(&self, extent: ExtentId, kind: ExtentKind, epoch: Epoch) -> Result<(), Error> {
        if self.home(extent).is_ok() {
            return Err(Error::NoSuchExtent { extent });
        }
        let order = {
            let mut placement = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
            placement.order(kind, &self.stores)
        };
        // No disk to try means that all are poisoned.
        let mut last = if order.is_empty() { Error::Poisoned { disk: 0 } } else { Error::Full };
        for number in order {
            let Some(store) = self.stores.get(number) else { continue };
            match self.create_on(store, (extent, kind, epoch)).await {
                Ok(home) => {
                    let mut extents = self.extents.write().unwrap_or_else(PoisonError::into_inner);
                    extents.insert(extent, home);
                    return Ok(());
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
        let home = self.home(extent)?;
        home.store.flush(&home.extent, epoch).await
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<Bytes>, Error> {
        let home = self.home(location.extent)?;
        home.store.read(&home.extent, location, range).await
    }

    async fn next_frame(&self, extent: ExtentId, offset: u64) -> Result<Option<LogFrame>, Error> {
        let home = self.home(extent)?;
        home.store.next_frame(&home.extent, offset).await
    }

    async fn fence(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        let home = self.home(extent)?;
        let Home { store, extent } = home.clone();
        self.owned("fence", &home, async move { store.fence(&extent, epoch).await }).await
    }

    async fn seal(&self, extent: ExtentId, epoch: Epoch) -> Result<u64, Error> {
        let home = self.home(extent)?;
        let Home { store, extent } = home.clone();
        let end = self.owned("seal", &home, async move { store.seal(&extent, epoch).await }).await;
        self.forget_removed(&home);
        end
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        let mut by_extent: BTreeMap<ExtentId, Vec<Range<u64>>> = BTreeMap::new();
        for location in locations {
            by_extent.entry(location.extent).or_default().push(frames_of(location));
        }
        let mut done = Ok(());
        for (extent, ranges) in by_extent {
            let home = match self.home_unless_gone(extent) {
                Ok(Some(home)) => home,
                // A free that is tried again.
                Ok(None) => continue,
                Err(error) => {
                    done = done.and(Err(error));
                    continue;
                }
            };
            let Home { store, extent } = home.clone();
            let free = async move { store.free(&extent, &ranges).await };
            // One poisoned disk does not keep the others from giving space back.
            done = done.and(self.owned("free", &home, free).await);
            self.forget_removed(&home);
        }
        done
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        let Some(home) = self.home_unless_gone(extent)? else { return Ok(()) };
        let Home { store, extent } = home.clone();
        self.owned("remove", &home, async move { store.remove(&extent).await }).await?;
        self.forget_removed(&home);
        Ok(())
    }

    async fn retain(&self, extent: ExtentId, live: &[Range<u64>]) -> Result<(), Error> {
        let home = self.home(extent)?;
        let Home { store, extent } = home.clone();
        let live = live.to_vec();
        self.owned("retain", &home, async move { store.retain(&extent, &live).await }).await?;
        self.forget_removed(&home);
        Ok(())
    }

    fn frames_of(&self, location: &Location) -> Range<u64> {
        frames_of(location)
    }

    async fn extents(&self) -> Vec<ExtentInfo> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.values().map(|home| home.extent.info(home.store.number)).collect()
    }

    async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error> {
        let home = self.home(extent)?;
        home.store.scrub(&home.extent, 0).await
    }
}
