//! Removal of extents. The caller forgets the id of a removed extent, so no file of it may be found
//! after a restart. A file may have been left
//!
//! - by a creation that failed, or that continues after its caller was cancelled,
//! - by a removal of an earlier process that was killed before it synced the folder,
//! - on a second disk that is out of service, or from which the start could not remove it.

use std::sync::atomic::Ordering;

use crate::capacity::api::Error;
use crate::capacity::home::Home;
use crate::capacity::node::CapacityNode;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

impl CapacityNode {
    /// Removes an extent; see [`crate::capacity::Capacity::remove`].
    pub(super) async fn remove_extent(&self, extent: ExtentId) -> Result<(), Error> {
        let mut was_here = false;
        self.removed.note(extent);
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
                store.remove_unacknowledged(extent).await?;
                // The extent was on another disk. A poisoned disk that is not draining has had no
                // file of it since the start, unless the extent is in `doubtful`. The folder cannot
                // be synced before the next start.
                if was_here && store.health.poisoned() && !store.draining.load(Ordering::Acquire) {
                    return Ok(());
                }
                store.sync_absence(extent).await
            };
            self.owned("remove", removing).await?;
        }
        if self.doubtful.contains(&extent) { Err(Error::OutOfService { extent }) } else { Ok(()) }
    }

    /// The home of an extent; `None` if the extent does not exist.
    pub(super) fn home_unless_gone(&self, extent: ExtentId) -> Result<Option<Home>, Error> {
        match self.home(extent) {
            Ok(home) => Ok(Some(home)),
            Err(Error::NoSuchExtent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether this empty file may have been left by a failed creation while the extent itself is
    /// on a disk that is out of service.
    pub(super) fn is_leftover(&self, home: &Home) -> bool {
        self.lacks_disk
            && self.doubtful.contains(&home.extent.id)
            && home.extent.state().end == ExtentOffset::START
    }
}
