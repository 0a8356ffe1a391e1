//! Removing extents. Whoever removes one forgets its id, so a restart must find nothing of it. A
//! file of it may be left
//!
//! - by a creation that failed, or that goes on although its caller is gone,
//! - by a removal of an earlier process that was killed before it synced the folder,
//! - on a second disk that is out of service, or whose file could not be removed at the start.

use std::sync::atomic::Ordering;

use crate::capacity::api::Error;
use crate::capacity::home::Home;
use crate::capacity::node::CapacityNode;
use crate::capacity::store::{Store, folder_of};
use crate::types::ExtentId;

impl CapacityNode {
    /// Removes an extent; see [`crate::capacity::Capacity::remove`].
    pub(super) async fn remove_extent(&self, extent: ExtentId) -> Result<(), Error> {
        let mut was_here = false;
        while let Some(home) = self.home_unless_gone(extent)? {
            was_here = true;
            let Home { store, extent } = home.clone();
            self.owned("remove", async move { store.remove(&extent).await }).await?;
            self.forget_removed(&home);
            if !self.was_moved(&home) {
                break;
            }
        }
        for store in self.stores() {
            let removing = async move {
                store.remove_half_made(extent).await?;
                // It was on another disk. A poisoned one that is not being drained had no file of
                // it since the start, or the extent is doubtful. It cannot be asked before the next
                // start.
                if was_here && store.health.poisoned() && !store.draining.load(Ordering::Acquire) {
                    return Ok(());
                }
                store.sync_absence(extent).await
            };
            self.owned("remove", removing).await?;
        }
        if self.doubtful.contains(&extent) { Err(Error::OutOfService { extent }) } else { Ok(()) }
    }

    /// The extent's place; `None` when it is known to be gone.
    pub(super) fn home_unless_gone(&self, extent: ExtentId) -> Result<Option<Home>, Error> {
        match self.home(extent) {
            Ok(home) => Ok(Some(home)),
            Err(Error::NoSuchExtent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the extent may be on a disk that is out of service, and what was found here at the
    /// start is only the file that a failed creation left.
    pub(super) fn is_leftover(&self, home: &Home) -> bool {
        self.out && self.doubtful.contains(&home.extent.id) && home.extent.state().end == 0
    }
}

impl Store {
    /// The node knows an extent that was created, or there is nothing of it.
    pub(crate) fn made(&self, id: ExtentId) {
        self.half_made().remove(&id);
    }

    /// Removes what there is of an extent that the node does not know.
    ///
    /// # Errors
    /// A restart may find a file of it: [`Error::Poisoned`], or [`Error::Ended`] while its creation
    /// goes on, or after a panic.
    pub(crate) async fn remove_half_made(&self, id: ExtentId) -> Result<(), Error> {
        let found = self.half_made().get(&id).cloned();
        match found {
            None => return Ok(()),
            Some(Some(extent)) => self.remove(&extent).await?,
            Some(None) => {
                self.health.check()?;
                return Err(Error::Ended { doing: "create" });
            }
        }
        self.made(id);
        Ok(())
    }

    /// Makes it durable that an extent is not here. Whoever removed its file before this start may
    /// have been killed before the sync of the folder: after a power failure it would be back.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: the sync of a removal may be what failed.
    pub(super) async fn sync_absence(&self, id: ExtentId) -> Result<(), Error> {
        self.health.check()?;
        let folder = folder_of(id);
        // Removals since the start end with a sync.
        if self.folders().contains(&folder) { Ok(()) } else { self.sync_folder(&folder).await }
    }
}
