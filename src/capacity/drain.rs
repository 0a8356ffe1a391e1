//! Draining a disk: its extents are copied to the node's other disks while they are read and freed.
//! An extent keeps its id, so no row changes. Only the map from ids to disks changes.
//!
//! First the disk takes no new extents. Then open logs and data extents are sealed; their writers
//! roll to new extents on other disks. Then each sealed extent is copied: every live frame is
//! verified, and the copy is made durable under the extent's name. From then on the copy is read,
//! and the old file is removed. A crash before the removal leaves two files that end at the same
//! offset; the next start keeps the one with the higher epoch.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::OpenExtents;
use crate::capacity::disk::format::FORMAT_FILE;
use crate::capacity::disk::scrub::pause;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::home::Home;
use crate::capacity::journal::create::JOURNAL;
use crate::capacity::node::CapacityNode;
use crate::capacity::placement::Placement;

/// The number of checks for tasks that still use a detached disk, and the pause between two checks:
/// 5 s together.
const LET_GO_TRIES: usize = 500;
const LET_GO_PAUSE: Duration = Duration::from_millis(10);

/// One of a node's disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskInfo {
    /// Its place in the list of disks the node was opened with.
    pub disk: usize,
    /// Its number in the store, which stays the same in any order.
    pub number: usize,
    /// Extents on it.
    pub extents: usize,
    /// Logical bytes of its extents that are neither freed nor padding.
    pub live_bytes: u64,
    /// Bytes of its file system.
    pub total_bytes: u64,
    /// Bytes available in its file system, as last measured.
    pub available_bytes: u64,
    /// Whether it is being drained. A draining disk takes no new extents.
    pub draining: bool,
    /// Whether it takes no writes because a write or sync failed.
    pub poisoned: bool,
}

/// The progress of a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Extents moved to other disks by this call.
    pub moved: usize,
    /// Extents that are still on the disk.
    pub left: usize,
    /// Why the first of these could not be moved, if moving it was tried.
    pub error: Option<String>,
}

impl CapacityNode {
    /// The disks in service.
    #[must_use]
    pub fn disks(&self) -> Vec<DiskInfo> {
        let homes = self.homes();
        let info = |store: &Arc<Store>| {
            let here = homes.iter().filter(|home| home.store.place == store.place);
            let (extents, live_bytes) = here.fold((0, 0), |(extents, bytes), home| {
                (extents + 1, bytes + home.extent.state().live())
            });
            let space = store.space.seen();
            DiskInfo {
                disk: store.place,
                number: store.number,
                extents,
                live_bytes,
                total_bytes: space.total,
                available_bytes: store.space.available(),
                draining: store.draining.load(Ordering::Acquire),
                poisoned: store.health.poisoned(),
            }
        };
        self.stores().iter().map(info).collect()
    }

    /// Sets whether a disk is draining. Returns false if the disk does not exist.
    pub fn set_draining(&self, disk: usize, draining: bool) -> bool {
        let Some(store) = self.store(disk) else { return false };
        store.draining.store(draining, Ordering::Release);
        true
    }

    /// Moves all extents off a draining disk that can be moved now. Call it again until nothing is
    /// left: open runs cannot be moved yet, and a writer may just have created an extent.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when the disk takes no writes: the next start verifies it.
    pub async fn drain(self: &Arc<Self>, disk: usize) -> Result<Drained, Error> {
        let mut drained = Drained::default();
        let Some(from) = self.store(disk) else { return Ok(drained) };
        from.health.check()?;
        for home in self.homes().into_iter().filter(|home| home.store.place == disk) {
            if self.stop.is_cancelled() {
                break;
            }
            match self.move_one(&home).await {
                Ok(true) => drained.moved += 1,
                Ok(false) => {}
                Err(error) => {
                    from.health.check()?;
                    let text = format!("extent {}: {error}", home.extent.id);
                    drained.error.get_or_insert(text);
                }
            }
        }
        drained.left = self.homes().iter().filter(|home| home.store.place == disk).count();
        if drained.left == 0 {
            // The journal must not need any extent of the disk once the disk is gone.
            from.checkpoint().await?;
        }
        Ok(drained)
    }

    /// Moves one extent. Returns whether it was moved.
    async fn move_one(self: &Arc<Self>, home: &Home) -> Result<bool, Error> {
        let Home { store, extent } = home.clone();
        let (sealed, epoch) = {
            let state = extent.state();
            if state.status == Status::Removed {
                return Ok(false);
            }
            (state.slot.sealed, state.slot.epoch)
        };
        if !sealed {
            // The writer of a run seals it soon. It treats a seal by another task as an error. A
            // copy of a cluster is sealed when all nodes that have copies agree.
            let shared = self.config.open_extents == OpenExtents::Close;
            if extent.kind == ExtentKind::Run || shared {
                return Ok(false);
            }
            let sealing = Arc::clone(&extent);
            let on = Arc::clone(&store);
            self.owned("seal", async move { on.seal(&sealing, epoch).await }).await?;
            self.forget_removed(home);
            if extent.state().status == Status::Removed {
                return Ok(true);
            }
        }
        for to in self.places_for(extent.kind) {
            let (source, old, target) = (Arc::clone(&store), Arc::clone(&extent), Arc::clone(&to));
            let node = Arc::clone(self);
            let work = async move { node.move_to(&source, &old, &target).await };
            match self.owned("move extent", work).await {
                Ok(copied) => {
                    let pace = self.config.compact_bytes_per_second;
                    if pace > 0 {
                        pause(&self.env, copied, pace).await;
                    }
                    return Ok(true);
                }
                // The next disk may have space and take writes.
                Err(Error::Full) => {}
                Err(Error::Poisoned { disk }) if disk != store.number => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Full)
    }

    /// Moves a sealed extent to another disk. Returns the bytes copied.
    async fn move_to(
        &self,
        from: &Arc<Store>,
        extent: &Arc<Extent>,
        to: &Arc<Store>,
    ) -> Result<u64, Error> {
        let _changing = extent.changing.lock().await;
        if extent.state().status == Status::Removed {
            return Ok(0);
        }
        from.health.check()?;
        let new = from.copy_whole_to(extent, to).await?;
        let copied = new.state().live();
        self.rehome(Home { store: Arc::clone(to), extent: new });
        // Readers of the old file find it removed and look the extent up again.
        from.remove_now(extent).await?;
        Ok(copied)
    }

    /// Makes the copy on another disk serve the extent.
    pub(super) fn rehome(&self, home: Home) {
        let mut extents = self.extents.write().unwrap_or_else(PoisonError::into_inner);
        extents.insert(home.extent.id, home);
    }

    /// Whether the extent was moved to another disk. The call that used the old file must be
    /// repeated on the new one.
    pub(super) fn was_moved(&self, home: &Home) -> bool {
        let gone = home.extent.state().status == Status::Removed;
        gone && self.home(home.extent.id).is_ok_and(|now| !Arc::ptr_eq(&now.extent, &home.extent))
    }

    /// All extents and where they are, in id order.
    fn homes(&self) -> Vec<Home> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.values().cloned().collect()
    }

    /// Whether extents lie on a disk.
    pub(super) fn holds_extents(&self, disk: usize) -> bool {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.values().any(|home| home.store.place == disk)
    }

    /// Measures the free space of the file systems of all disks.
    pub async fn refresh_space(&self) {
        for store in self.stores() {
            store.space.refresh(&*store.disk, &self.env).await;
        }
    }

    /// The disks in service.
    pub(super) fn stores(&self) -> Vec<Arc<Store>> {
        self.stores.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The disks that may take an extent, best first.
    pub(super) fn places_for(&self, kind: ExtentKind) -> Vec<Arc<Store>> {
        let stores = self.stores();
        let mut placement = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
        let order = placement.order(kind, &stores);
        order.into_iter().filter_map(|at| stores.get(at).cloned()).collect()
    }

    /// Detaches an empty disk: closes its journal, ends its tasks, and removes the files that mark
    /// its directory as part of the store. Returns false while it is not empty or not draining.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when these files could not be removed; the disk is detached anyway.
    pub async fn detach(&self, disk: usize) -> Result<bool, Error> {
        let Some(store) = self.store(disk) else { return Ok(true) };
        if !store.draining.load(Ordering::Acquire) {
            return Ok(false);
        }
        {
            // A creation that completes at the same time checks under this lock whether its disk is
            // still in service.
            let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
            if extents.values().any(|home| home.store.place == disk) {
                return Ok(false);
            }
            let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
            stores.retain(|store| store.place != disk);
            let mut placement = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
            *placement = Placement::new(stores.len());
        }
        store.journal.close();
        store.stopping.cancel();
        for name in [FORMAT_FILE, JOURNAL] {
            store.disk.remove(name).await.map_err(|e| store.poison("remove", &e))?;
        }
        store.disk.sync_dir("").await.map_err(|e| store.poison("folder sync", &e))?;
        // Running tasks keep the directory locked until they end.
        for _ in 0..LET_GO_TRIES {
            if Arc::strong_count(&store) == 1 {
                break;
            }
            self.env.clock.sleep(LET_GO_PAUSE).await;
        }
        Ok(true)
    }

    fn store(&self, disk: usize) -> Option<Arc<Store>> {
        self.stores().into_iter().find(|store| store.place == disk)
    }
}
