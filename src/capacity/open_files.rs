//! Files of extents that are open: bounded, since there may be many more extents, each partition's
//! log one of them.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

use crate::capacity::Error;
use crate::capacity::extent::{Extent, Status};
use crate::capacity::store::{Store, path_of};
use crate::env::{DiskError, DiskFile};

/// Files looked at for one that can be closed: those being written to cannot.
const TRIES: usize = 16;

/// Extents with an open file, the one that is open longest first.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<VecDeque<Arc<Extent>>>);

impl OpenFiles {
    fn push(&self, extent: Arc<Extent>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(extent);
    }

    /// The one that is open longest, if there are more than `max`.
    fn pop_beyond(&self, max: usize) -> Option<Popped<'_>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let extent = if open.len() > max { open.pop_front() } else { None };
        extent.map(|extent| Popped { files: self, extent, closed: false })
    }
}

/// One that may be closed. It is listed again unless it was: whoever closes it, a reader perhaps,
/// may be gone in the middle.
struct Popped<'a> {
    files: &'a OpenFiles,
    extent: Arc<Extent>,
    closed: bool,
}

impl Drop for Popped<'_> {
    fn drop(&mut self) {
        if !self.closed {
            self.files.push(Arc::clone(&self.extent));
        }
    }
}

impl Store {
    /// Counts an extent among those with an open file, and closes the one that is open longest if
    /// there are too many. A close that fails poisons the disk: writers are told of that, and a
    /// reader is not concerned.
    pub(crate) async fn note_open(&self, extent: &Arc<Extent>) {
        if !std::mem::replace(&mut extent.state().listed, true) {
            self.open_files.push(Arc::clone(extent));
        }
        for _ in 0..TRIES {
            let Some(mut oldest) = self.open_files.pop_beyond(self.config.open_files_max) else {
                return;
            };
            oldest.closed = self.close(&oldest.extent).await;
        }
    }

    /// Closes an extent's file, if nobody is writing to it and all that was written is durable: a
    /// sync by another opening of the file might not be told that it is not. On a poisoned disk
    /// there is no other sync until the next start, which looks at the device.
    async fn close(&self, extent: &Arc<Extent>) -> bool {
        let Ok(_turn) = extent.turn.try_lock() else { return false };
        let Ok(_one) = extent.syncing.try_lock() else { return false };
        let unsynced = {
            let state = extent.state();
            let unsynced = !state.slot.sealed && state.synced < state.written;
            if unsynced && !self.health.poisoned() {
                return false;
            }
            state.file.clone().filter(|_| !state.slot.sealed && state.slot_unsynced)
        };
        if let Some(file) = unsynced.filter(|_| !self.health.poisoned()) {
            self.metrics.fsyncs.inc();
            match file.sync().await {
                Ok(()) => extent.state().slot_unsynced = false,
                Err(error) => drop(self.poison("sync", &error)),
            }
        }
        let mut state = extent.state();
        state.file = None;
        state.map = None;
        state.listed = false;
        true
    }

    /// The file of an extent that is written to; one that cannot be opened is as one that cannot be
    /// written.
    pub(crate) async fn writable(&self, extent: &Arc<Extent>) -> Result<Arc<dyn DiskFile>, Error> {
        let body = self.body(extent).await;
        // Opening it may have closed another, and that may have failed.
        self.health.check()?;
        match body {
            Ok(body) => Ok(body.file),
            Err(Error::Unreadable { reason, .. }) => {
                tracing::error!(
                    extent = %extent.id, reason,
                    "the file of an extent cannot be opened for writing"
                );
                let (path, kind) = (path_of(extent.id), ErrorKind::Other);
                Err(self.poison("open", &DiskError::Io { action: "open", path, kind }))
            }
            // Whoever took it away behind the store's back: what the journal holds of it has
            // nowhere to go.
            Err(Error::NoSuchExtent { .. }) if extent.state().status == Status::Here => {
                let path = path_of(extent.id);
                tracing::error!(extent = %extent.id, path, "the file of an extent is missing");
                Err(self.poison("open", &DiskError::NotFound { path }))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::ExtentKind;
    use crate::capacity::header::Slot;
    use crate::types::Epoch;
    use crate::types::ExtentId;

    #[test]
    fn extent_whose_closing_is_cut_off_is_listed_still() {
        let files = OpenFiles::default();
        let slot = Slot::new(1, Epoch::new(1));
        let extent = Arc::new(Extent::new(ExtentId::new(1), ExtentKind::Log, slot));
        files.push(extent);
        drop(files.pop_beyond(0).unwrap());
        let mut popped = files.pop_beyond(0).unwrap();
        popped.closed = true;
        drop(popped);
        assert!(files.pop_beyond(0).is_none(), "closed");
    }
}
