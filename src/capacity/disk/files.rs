//! The files of extents: opened when they are needed, closed when too many are open, read.

#![deny(clippy::indexing_slicing)]

use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::api::Error;
use crate::capacity::disk::store::{Store, path_of};
use crate::capacity::extent::header::Slot;
use crate::capacity::extent::map::Body;
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::units::{PAGE, index};
use crate::env::{DiskError, DiskFile};

/// Files looked at for one that can be closed: those being written to cannot.
const TRIES: usize = 16;

/// A file that was just opened, and the slot that was read from it.
struct OpenedFile {
    slot: Slot,
    body: Body,
}

impl Store {
    /// An extent's file and its map, opened if need be; only so many stay open.
    pub(crate) async fn body(&self, extent: &Arc<Extent>) -> Result<Body, Error> {
        loop {
            let rewrites = {
                let state = extent.state();
                if state.status == Status::Removed {
                    return Err(extent.missing());
                }
                if let Some(body) = state.body() {
                    return Ok(body);
                }
                state.rewrites
            };
            let file = self.open_file(extent).await?;
            if !put_in_place(extent, rewrites, &file) {
                continue;
            }
            self.note_open(extent).await;
            return Ok(file.body);
        }
    }

    async fn open_file(&self, extent: &Arc<Extent>) -> Result<OpenedFile, Error> {
        let failed = |error: DiskError| unreadable(extent, &error);
        let file = self.disk.open(&path_of(extent.id)).await.map_err(failed)?;
        let held = extent.state().slot;
        if !held.sealed {
            // Its page may be about to be written, and has no map.
            return Ok(OpenedFile { slot: held, body: Body::plain(file) });
        }
        let page = file.read_at(0, index(PAGE)).await.map_err(failed)?;
        let slot = Slot::parse(&page).ok_or_else(|| extent.corrupt(0))?;
        let body = Body::load(file, &slot).await.map_err(failed)?;
        Ok(OpenedFile { slot, body: body.ok_or_else(|| extent.corrupt(0))? })
    }

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

    /// Up to `len` stored bytes at logical `offset`, from the tail or the file; fewer at the end of
    /// what is stored together.
    pub(crate) async fn fetch(
        &self,
        extent: &Arc<Extent>,
        offset: u64,
        len: u64,
    ) -> Result<Bytes, Error> {
        let len = {
            let state = extent.state();
            if offset >= state.written {
                return state.tail.copy(offset, len).ok_or_else(|| extent.corrupt(offset));
            }
            len.min(state.written - offset)
        };
        let body = self.body(extent).await?;
        body.read(offset, len).await.map_err(|e| unreadable(extent, &e))
    }
}

/// Puts an opened file in place, unless another was meanwhile.
fn put_in_place(extent: &Extent, rewrites: u64, file: &OpenedFile) -> bool {
    let OpenedFile { slot, body } = file;
    let mut state = extent.state();
    // A file that was removed meanwhile must not stay open: it would keep its space.
    let removed = state.status == Status::Removed;
    if removed || state.rewrites != rewrites || state.file.is_some() {
        return false;
    }
    if slot.sequence > state.slot.sequence {
        state.slot = Slot { epoch: slot.epoch.max(state.slot.epoch), ..*slot };
    }
    state.file = Some(Arc::clone(&body.file));
    state.map.clone_from(&body.map);
    // What a compaction left out was freed, though the catalog may have forgotten it.
    if let Some(map) = body.map.as_ref().filter(|_| state.frees.may_lack_any()) {
        for gap in map.ranges().gaps(state.end) {
            state.dead.insert(gap);
        }
    }
    true
}

/// The answer when a read fails.
pub(crate) fn unreadable(extent: &Extent, error: &DiskError) -> Error {
    match error {
        DiskError::NotFound { .. } => extent.missing(),
        DiskError::Full
        | DiskError::TooManyFiles { .. }
        | DiskError::Io { .. }
        | DiskError::Locked { .. } => {
            Error::Unreadable { extent: extent.id, reason: error.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::ExtentKind;
    use crate::env::disk_sim::SimDisk;
    use crate::types::Epoch;
    use crate::types::ExtentId;

    #[tokio::test(start_paused = true)]
    async fn file_opened_while_its_extent_was_removed_is_let_go_of() {
        let disk = SimDisk::new(1, 1 << 20).disk();
        let slot = Slot::new(1, Epoch::new(1));
        let extent = Extent::new(ExtentId::new(1), ExtentKind::Data, slot);
        let file = OpenedFile { slot, body: Body::plain(disk.create("one").await.unwrap()) };
        extent.state().status = Status::Removed;
        assert!(!put_in_place(&extent, 0, &file));
        assert!(extent.state().file.is_none());
        extent.state().status = Status::Here;
        assert!(put_in_place(&extent, 0, &file));
    }
}
