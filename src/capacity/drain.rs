//! Draining a disk: its extents are copied to the node's other disks while they are read and freed. An extent keeps its
//! id, so no row changes; a map from ids to disks is all that does.
//!
//! 1. The disk takes no new extents. 2. Open logs and data extents are sealed: their writers go on with new ones
//! elsewhere. 3. Each sealed extent is copied, every live frame verified, and made durable under its name; only then
//! the old file is removed, and that made durable; only then the copy is used. A crash before the removal leaves two
//! equal files, of which the next start drops one; after it, only the copy.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::extent::{Extent, Status};
use crate::capacity::node::{CapacityNode, Home};
use crate::capacity::scrub::pause;
use crate::capacity::seal::sealed_change;
use crate::capacity::store::{Store, folder_of, path_of};
use crate::types::ExtentId;

use std::sync::Arc;

/// One of a node's disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskInfo {
    /// Its place in the list of disks the node was opened with.
    pub disk: usize,
    /// Its number in the store, which stays the same in any order.
    pub number: usize,
    /// Extents on it.
    pub extents: usize,
    /// Logical bytes of them that are not freed.
    pub live_bytes: u64,
    /// Bytes of its file system.
    pub total_bytes: u64,
    /// Of these, bytes available, as last seen.
    pub available_bytes: u64,
    /// Whether it is being drained, so that it takes no new extents.
    pub draining: bool,
    /// Whether it takes no writes because one failed.
    pub poisoned: bool,
}

/// How far a drain is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Extents moved to other disks by this call.
    pub moved: usize,
    /// Extents that are still there.
    pub left: usize,
    /// Why the first of them could not be moved, if that was tried.
    pub error: Option<String>,
}

impl CapacityNode {
    /// The disks in service.
    #[must_use]
    pub fn disks(&self) -> Vec<DiskInfo> {
        let homes = self.homes();
        let info = |store: &Arc<Store>| {
            let here = homes.iter().filter(|home| home.store.number == store.number);
            let (extents, live_bytes) = here.fold((0, 0), |(extents, bytes), home| {
                (extents + 1, bytes + home.extent.state().live())
            });
            let space = store.space.seen();
            DiskInfo {
                disk: store.number,
                number: store.id,
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

    /// Has a disk take no new extents, or again. False when there is no such disk.
    pub fn set_draining(&self, disk: usize, draining: bool) -> bool {
        let Some(store) = self.store(disk) else { return false };
        store.draining.store(draining, Ordering::Release);
        true
    }

    /// Moves what can be moved now off a disk that is draining. To be called again until nothing is left: open runs are
    /// waited for, and a writer may have been given an extent just before.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when the disk takes no writes: the next start verifies it.
    pub async fn drain(&self, disk: usize) -> Result<Drained, Error> {
        let mut drained = Drained::default();
        let Some(from) = self.store(disk) else { return Ok(drained) };
        from.health.check()?;
        for home in self.homes().into_iter().filter(|home| home.store.number == disk) {
            if self.stopping() {
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
        drained.left = self.homes().iter().filter(|home| home.store.number == disk).count();
        if drained.left == 0 {
            // Nothing of it may be needed by the journal when the disk is gone.
            from.checkpoint().await?;
        }
        Ok(drained)
    }

    /// Whether it was moved.
    async fn move_one(&self, home: &Home) -> Result<bool, Error> {
        let Home { store, extent } = home.clone();
        let (sealed, epoch) = {
            let state = extent.state();
            if state.status == Status::Removed {
                return Ok(false);
            }
            (state.slot.sealed, state.slot.epoch)
        };
        if !sealed {
            // Who writes a run does not expect it to be sealed, and is done soon.
            if extent.kind == ExtentKind::Run {
                return Ok(false);
            }
            let sealing = Arc::clone(&extent);
            let on = Arc::clone(&store);
            self.owned("seal", home, async move { on.seal(&sealing, epoch).await }).await?;
            self.forget_removed(home);
            if extent.state().status == Status::Removed {
                return Ok(true);
            }
        }
        let pace = self.config().compact_bytes_per_second;
        for to in self.places_for(extent.kind) {
            let (id, source, old) = (extent.id, Arc::clone(&store), Arc::clone(&extent));
            let target = Arc::clone(&to);
            let work = async move { source.move_to(&old, &target).await };
            match self.owned("move extent", home, work).await {
                Ok(None) => return Ok(false),
                Ok(Some(new)) => {
                    let live = new.state().live();
                    self.rehome(id, Home { store: to, extent: new });
                    pause(self.env(), live, pace).await;
                    return Ok(true);
                }
                // Another disk may have room or be well.
                Err(Error::Full) => {}
                Err(Error::Poisoned { disk }) if disk != store.number => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Full)
    }
}

impl Store {
    /// Moves a sealed extent to another disk; `None` when it was removed meanwhile. When this returns, only the copy is
    /// there; the caller lets it serve.
    async fn move_to(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        to: &Arc<Store>,
    ) -> Result<Option<Arc<Extent>>, Error> {
        // With the turn nothing is freed, fenced or compacted meanwhile: the copy is as the original to the end.
        let _turn = extent.turn.lock().await;
        if extent.state().status == Status::Removed {
            return Ok(None);
        }
        self.health.check()?;
        let Some(new) = self.copy_to(extent, to).await? else { return Ok(None) };
        // Readers who have the old file open read on; those who come now look again.
        if let Err(error) = self.remove_now(extent).await {
            // The disk is poisoned and may keep the file; the copy is whole and durable, so it may serve all the same.
            tracing::error!(extent = %extent.id, %error, "moved, but its old file may still be there");
        }
        Ok(Some(new))
    }

    /// Makes a durable copy of a sealed extent on another disk.
    async fn copy_to(
        &self,
        extent: &Arc<Extent>,
        to: &Arc<Store>,
    ) -> Result<Option<Arc<Extent>>, Error> {
        let (live, dead) = {
            let state = extent.state();
            (state.live(), state.dead.clone())
        };
        to.health.check()?;
        to.space.admit(&*to.disk, &to.env, &to.config, extent.kind, live).await?;
        let (slot, _, _) = self.copy_live_to(extent, to).await?;
        to.sync_folder(&folder_of(extent.id)).await?;
        let new = Extent::new(extent.id, extent.kind, slot);
        new.state().dead = dead;
        let new = Arc::new(new);
        to.metrics.extents.inc();
        to.note(vec![sealed_change(&new)]).await;
        Ok(Some(new))
    }
}

/// Where an extent's file is, for messages.
#[expect(dead_code, reason = "shown by tests that fail")]
fn shown(extent: ExtentId) -> String {
    let _ = PoisonError::new(());
    path_of(extent)
}
