//! Files of extents that are open: bounded, since there may be many more extents, each partition's log one of them.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

use crate::capacity::Error;
use crate::capacity::extent::Extent;
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
    fn pop_beyond(&self, max: usize) -> Option<Arc<Extent>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() > max { open.pop_front() } else { None }
    }
}

impl Store {
    /// Counts an extent among those with an open file, and closes the one that is open longest if there are too many.
    pub(crate) async fn note_open(&self, extent: &Arc<Extent>) -> Result<(), Error> {
        if !std::mem::replace(&mut extent.state().listed, true) {
            self.open_files.push(Arc::clone(extent));
        }
        for _ in 0..TRIES {
            let Some(oldest) = self.open_files.pop_beyond(self.config.open_files_max) else {
                return Ok(());
            };
            if !self.close(&oldest).await? {
                self.open_files.push(oldest);
            }
        }
        Ok(())
    }

    /// Closes an extent's file, if nobody is writing to it and all that was written is durable: a sync by another opening of
    /// the file might not be told that it is not.
    async fn close(&self, extent: &Arc<Extent>) -> Result<bool, Error> {
        let Ok(_turn) = extent.turn.try_lock() else { return Ok(false) };
        let Ok(_one) = extent.syncing.try_lock() else { return Ok(false) };
        let unsynced = {
            let state = extent.state();
            if !state.slot.sealed && state.synced < state.written {
                return Ok(false);
            }
            state.file.clone().filter(|_| !state.slot.sealed && state.slot_unsynced)
        };
        if let Some(file) = unsynced {
            self.health.check()?;
            self.metrics.fsyncs.inc();
            file.sync().await.map_err(|e| self.poison("sync", &e))?;
        }
        let mut state = extent.state();
        state.slot_unsynced &= state.slot.sealed;
        state.file = None;
        state.map = None;
        state.listed = false;
        Ok(true)
    }

    /// The file of an extent that is written to; one that cannot be opened is as one that cannot be written.
    pub(crate) async fn writable(&self, extent: &Arc<Extent>) -> Result<Arc<dyn DiskFile>, Error> {
        match self.body(extent).await {
            Ok(body) => Ok(body.file),
            Err(Error::Unreadable { reason, .. }) => {
                tracing::error!(extent = %extent.id, reason, "not opened for writing");
                let (path, kind) = (path_of(extent.id), ErrorKind::Other);
                Err(self.poison("open", &DiskError::Io { action: "open", path, kind }))
            }
            Err(error) => Err(error),
        }
    }
}
