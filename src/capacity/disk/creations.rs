//! Creations that were not acknowledged: a disk may have files of extents that are not in the
//! node's map.

use crate::capacity::Error;
use crate::capacity::disk::store::{Store, folder_of};
use crate::types::ExtentId;

impl Store {
    /// Ends a creation: the extent is in the node's map, or it has no file.
    pub(crate) fn creation_done(&self, id: ExtentId) {
        self.creations().remove(&id);
    }

    /// Removes the file of an extent whose creation was not acknowledged, if there is one.
    ///
    /// # Errors
    /// A restart may find a file of the extent: [`Error::Poisoned`], or [`Error::Ended`] while its
    /// creation is in progress or after it panicked.
    pub(crate) async fn remove_unacknowledged(&self, id: ExtentId) -> Result<(), Error> {
        let found = self.creations().get(&id).cloned();
        match found {
            None => return Ok(()),
            Some(Some(extent)) => self.remove(&extent).await?,
            Some(None) => {
                self.health.check()?;
                return Err(Error::Ended { doing: "create" });
            }
        }
        self.creation_done(id);
        Ok(())
    }

    /// Makes the absence of an extent's file durable. An earlier process may have removed the file
    /// and been killed before it synced the folder. After a power failure the file would be back.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: the sync that failed may be that of a removal.
    pub(crate) async fn sync_absence(&self, id: ExtentId) -> Result<(), Error> {
        self.health.check()?;
        let folder = folder_of(id);
        // Removals since the start have synced the folder.
        if self.folders().contains(&folder) { Ok(()) } else { self.sync_folder(&folder).await }
    }
}
