//! What there is on a disk of an extent that the node does not know.

use crate::capacity::Error;
use crate::capacity::disk::store::{Store, folder_of};
use crate::types::ExtentId;

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
    pub(crate) async fn sync_absence(&self, id: ExtentId) -> Result<(), Error> {
        self.health.check()?;
        let folder = folder_of(id);
        // Removals since the start end with a sync.
        if self.folders().contains(&folder) { Ok(()) } else { self.sync_folder(&folder).await }
    }
}
