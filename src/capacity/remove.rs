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
