//! The files of extents: opening on demand, closing when too many are open, reading.

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
use crate::types::ExtentOffset;

/// How many files are tried when one must be closed. A file that is being written to cannot be
/// closed.
const TRIES: usize = 16;

/// A file that was just opened, and the slot that was read from it.
struct OpenedFile {
    slot: Slot,
    body: Body,
}

impl Store {
    /// An extent's file and its map. Opens the file if it is not open, and then closes others if
    /// too many are open.
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
            // An open extent has no map, and its first page may be written at the same time.
            return Ok(OpenedFile { slot: held, body: Body::plain(file) });
        }
        let page = file.read_at(0, index(PAGE)).await.map_err(failed)?;
        let slot = Slot::parse(&page).ok_or_else(|| extent.corrupt(ExtentOffset::START))?;
        let body = Body::load(file, &slot).await.map_err(failed)?;
        Ok(OpenedFile { slot, body: body.ok_or_else(|| extent.corrupt(ExtentOffset::START))? })
    }

    /// Adds an extent to the list of open files. If there are too many, closes the one that has
    /// been open longest. A failed close poisons the disk, so writers get an error; readers do not.
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

    /// Closes an extent's file if no task is writing to it and all written bytes are durable. A
    /// sync after the file is opened again might not report that earlier writes were lost. On a
    /// poisoned disk the file is closed anyway: there is no further sync before the next start,
    /// which reads the device. Returns whether the file was closed.
    async fn close(&self, extent: &Arc<Extent>) -> bool {
        let Ok(_changing) = extent.changing.try_lock() else { return false };
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

    /// The file of an extent, for writing. If it cannot be opened, the disk is poisoned as after a
    /// failed write.
    pub(crate) async fn writable(&self, extent: &Arc<Extent>) -> Result<Arc<dyn DiskFile>, Error> {
        let body = self.body(extent).await;
        // The call may have closed another file, and that may have poisoned the disk.
        self.health.check()?;
        match body {
            Ok(body) => Ok(body.file),
            Err(Error::Unreadable { reason, .. }) => {
                tracing::error!(
                    extent = %extent.id, reason,
                    "the file of an extent cannot be opened for writing; the disk is poisoned"
                );
                let (path, kind) = (path_of(extent.id), ErrorKind::Other);
                Err(self.poison("open", &DiskError::Io { action: "open", path, kind }))
            }
            // The file was removed by another program. The journal's records of the extent cannot
            // be written anywhere.
            Err(Error::NoSuchExtent { .. }) if extent.state().status == Status::Here => {
                let path = path_of(extent.id);
                tracing::error!(
                    extent = %extent.id, path,
                    "the file of an extent is missing; was it removed?"
                );
                Err(self.poison("open", &DiskError::NotFound { path }))
            }
            Err(error) => Err(error),
        }
    }

    /// Up to `len` stored bytes at logical `offset`, from the tail or the file. Fewer where the
    /// append in the tail, the written part of the file or an entry of its map ends.
    pub(crate) async fn fetch(
        &self,
        extent: &Arc<Extent>,
        offset: ExtentOffset,
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

/// Makes an opened file the extent's file. Returns false if the extent was removed or got another
/// file meanwhile.
fn put_in_place(extent: &Extent, rewrites: u64, file: &OpenedFile) -> bool {
    let OpenedFile { slot, body } = file;
    let mut state = extent.state();
    // A removed file must not stay open: it would keep its space.
    let removed = state.status == Status::Removed;
    if removed || state.rewrites != rewrites || state.file.is_some() {
        return false;
    }
    if slot.sequence > state.slot.sequence {
        state.slot = Slot { epoch: slot.epoch.max(state.slot.epoch), ..*slot };
    }
    state.file = Some(Arc::clone(&body.file));
    state.map.clone_from(&body.map);
    // Frames that a compaction left out had been freed, even if the catalog has lost that.
    if let Some(map) = body.map.as_ref().filter(|_| state.frees.may_lack_any()) {
        for gap in map.ranges().gaps(state.end) {
            state.dead.insert(gap);
        }
    }
    true
}

/// The error of a failed read.
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
    async fn file_opened_while_its_extent_was_removed_is_not_kept() {
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
