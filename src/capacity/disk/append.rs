//! Appends. A small durable append goes through the journal, any other directly to the extent's
//! file.
//!
//! An acknowledgement of offset x means that every byte below x is durable. Therefore a journaled
//! append is queued only after the direct bytes below it are synced, and a direct append writes the
//! tail below it in the same write.

use std::sync::Arc;

use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit};

use crate::capacity::AppendRequest;
use crate::capacity::Appended;
use crate::capacity::Durability;
use crate::capacity::Error;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::frame::{Placed, Prepared, place};
use crate::capacity::extent::header::{Slot, file_offset};
use crate::capacity::extent::memory::{Extent, State, Status};
use crate::capacity::extent::tail::TailWrite;
use crate::capacity::journal::layout::{RECORD_HEADER, Record};
use crate::capacity::units::{size, zeros};
use crate::env::DiskError;
use crate::env::DiskFile;
use crate::types::Epoch;
use crate::types::ExtentOffset;

/// After this many more synced bytes the slot of an open extent is updated. Recovery has to examine
/// about this much of the extent, and its unsynced bytes.
const PROGRESS_STEP: u64 = 16 * 1024 * 1024;

/// The held change lock of an extent.
type ChangeLock = OwnedMutexGuard<()>;

/// Encoded frames to append.
#[derive(Clone, Debug)]
pub(crate) struct PlacedAppend {
    /// The epoch of the writer.
    pub(crate) epoch: Epoch,
    /// Where the writer believes the extent ends.
    pub(crate) offset: ExtentOffset,
    /// The frames, encoded for that offset.
    pub(crate) placed: Placed,
    /// When to acknowledge the append.
    pub(crate) durability: Durability,
}

impl Store {
    /// Appends; see [`crate::capacity::Capacity::append`].
    pub(crate) async fn append(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        request: AppendRequest,
    ) -> Result<Appended, Error> {
        self.health.check()?;
        let AppendRequest { extent: _, epoch, offset, payloads, durability } = request;
        let prepared: Vec<Prepared> = payloads.into_iter().map(Prepared::new).collect();
        if prepared.is_empty() {
            extent.check_append(epoch, offset)?;
            return Ok(Appended { locations: Vec::new(), end: offset });
        }
        let mut placed = place(prepared, extent.id, epoch, offset);
        let locations = std::mem::take(&mut placed.locations);
        let append = PlacedAppend { epoch, offset, placed, durability };
        let end = self.append_placed(extent, append).await?;
        Ok(Appended { locations, end })
    }

    /// Appends encoded frames. Returns the new end of the extent.
    pub(crate) async fn append_placed(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        append: PlacedAppend,
    ) -> Result<ExtentOffset, Error> {
        // A refused append must not wait. It would take budget from others, and a move or a
        // compaction holds the change lock of a sealed extent for the whole copy.
        extent.check_open(append.epoch)?;
        let payload_bytes = append.placed.payload_bytes;
        // Bytes of the journal record, padding between the frames included.
        let stored = append.placed.end - append.offset;
        let journaled =
            append.durability == Durability::Durable && stored < self.journal_append_max();
        // The budget is taken before the change lock. A checkpoint makes room in the queue, and
        // needs the change lock for that.
        let wanted = if journaled { stored + RECORD_HEADER } else { 0 };
        let budget = self.journal.budget(wanted).await.ok_or_else(|| self.health.error())?;
        let changing = Arc::clone(&extent.changing).lock_owned().await;
        let end = if journaled {
            self.append_journaled(extent, append, changing, budget).await?
        } else {
            drop(budget);
            let (store, extent) = (Arc::clone(self), Arc::clone(extent));
            // In a task of the node: a cancelled caller must not leave half a write behind bytes
            // that are acknowledged.
            let work = async move { store.append_direct(&extent, append, changing).await };
            let task = self.env.tasks.spawn("append", work);
            task.await.map_err(|_| Error::Ended { doing: "append" })??
        };
        self.metrics.appends.inc();
        self.metrics.appended_bytes.inc_by(payload_bytes);
        Ok(end)
    }

    /// Cancel safe: a queued append is completed even if its caller no longer waits.
    async fn append_journaled(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        append: PlacedAppend,
        changing: ChangeLock,
        budget: OwnedSemaphorePermit,
    ) -> Result<ExtentOffset, Error> {
        let PlacedAppend { epoch, offset, placed, .. } = append;
        extent.check_append(epoch, offset)?;
        self.reserve(extent, placed.end).await?;
        let direct = extent.state().direct;
        self.sync_to_owned(extent, direct).await?;
        self.health.check()?;
        self.assert_extends(extent, epoch, offset)?;
        // Before the record can become durable: the checkpoint that releases the record must also
        // sync this extent.
        self.mark_dirty(extent);
        let record = Record {
            extent: extent.id,
            offset: placed.start,
            pieces: placed.pieces.clone(),
            len: placed.bytes,
        };
        let (durable, long) = {
            let mut state = extent.state();
            state.tail.push(&placed);
            note_placed(&mut state, &placed);
            (self.journal.submit(record, budget), state.tail.bytes() > self.config.tail_bytes)
        };
        if long {
            let (store, extent) = (Arc::clone(self), Arc::clone(extent));
            self.env.tasks.spawn("tail", async move {
                // A failure poisons the disk, and every later write returns that error.
                store.write_tail(&extent, &changing).await.unwrap_or_default();
            });
        } else {
            drop(changing);
        }
        let batch = durable.await.map_err(|_| self.health.error())?;
        self.assert_journaled(extent, placed.end, batch)?;
        self.metrics.frames.inc_by(placed.frames);
        Ok(placed.end)
    }

    async fn append_direct(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        append: PlacedAppend,
        changing: ChangeLock,
    ) -> Result<ExtentOffset, Error> {
        extent.check_append(append.epoch, append.offset)?;
        let file = self.ready_to_write(extent, append.placed.end).await?;
        self.assert_extends(extent, append.epoch, append.offset)?;
        let end = self.write_direct(extent, &file, &append.placed).await?;
        drop(changing);
        if append.durability == Durability::Durable {
            self.sync_to(extent, end).await?;
            self.note_progress(extent, PROGRESS_STEP).await?;
        }
        if append.durability == Durability::Durable {
            self.assert_synced(extent, end)?;
        }
        self.metrics.frames.inc_by(append.placed.frames);
        Ok(end)
    }

    /// The extent's file, with space reserved up to `end`.
    pub(super) async fn ready_to_write(
        &self,
        extent: &Arc<Extent>,
        end: ExtentOffset,
    ) -> Result<Arc<dyn DiskFile>, Error> {
        self.reserve(extent, end).await?;
        self.health.check()?;
        self.writable(extent).await
    }

    /// Writes frames at the extent's end to its file, behind its tail. The caller holds the change
    /// lock and has checked the append.
    pub(super) async fn write_direct(
        &self,
        extent: &Arc<Extent>,
        file: &Arc<dyn DiskFile>,
        placed: &Placed,
    ) -> Result<ExtentOffset, Error> {
        let write = after_tail(extent.state().tail.as_write(), placed);
        self.mark_dirty(extent);
        match file.write_at(file_offset(write.at).get(), write.pieces).await {
            Ok(()) => {}
            Err(DiskError::Full) => return Err(Error::Full),
            Err(error) => return Err(self.poison("append", &error)),
        }
        let mut state = extent.state();
        state.tail.clear();
        note_placed(&mut state, placed);
        state.written = placed.end;
        state.direct = placed.end;
        Ok(placed.end)
    }

    /// Makes everything appended so far durable in the extent's file.
    pub(crate) async fn flush(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        epoch: Epoch,
    ) -> Result<(), Error> {
        self.health.check()?;
        let changing = Arc::clone(&extent.changing).lock_owned().await;
        {
            let state = extent.state();
            if state.status == Status::Removed {
                return Err(extent.missing());
            }
            if epoch < state.slot.epoch {
                return Err(Error::Fenced { extent: extent.id, epoch: state.slot.epoch });
            }
        }
        let end = self.write_tail_owned(extent, changing).await?;
        self.sync_to_owned(extent, end).await?;
        self.assert_synced(extent, end)
    }

    /// Runs [`Self::write_tail`] in a task of the node, so that it completes if the caller is
    /// cancelled. Returns the extent's end.
    pub(crate) async fn write_tail_owned(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        changing: ChangeLock,
    ) -> Result<ExtentOffset, Error> {
        {
            let state = extent.state();
            if state.tail.is_empty() {
                return Ok(state.end);
            }
        }
        let (store, extent) = (Arc::clone(self), Arc::clone(extent));
        let work = async move { store.write_tail(&extent, &changing).await };
        self.env.tasks.spawn("tail", work).await.map_err(|_| Error::Ended { doing: "append" })?
    }

    /// Writes the tail to the file with one write. Returns the extent's end.
    pub(crate) async fn write_tail(
        &self,
        extent: &Arc<Extent>,
        _changing: &ChangeLock,
    ) -> Result<ExtentOffset, Error> {
        self.health.check()?;
        let (write, end) = {
            let state = extent.state();
            (state.tail.as_write(), state.end)
        };
        let Some(TailWrite { at, pieces }) = write else { return Ok(end) };
        let file = self.writable(extent).await?;
        let written = file.write_at(file_offset(at).get(), pieces).await;
        written.map_err(|e| self.poison("tail", &e))?;
        let mut state = extent.state();
        state.tail.clear();
        state.written = end;
        Ok(end)
    }

    /// Runs [`Self::sync_to`] in a task of the node: a failed sync must poison the disk even if the
    /// caller is cancelled.
    async fn sync_to_owned(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        upto: ExtentOffset,
    ) -> Result<(), Error> {
        if extent.state().synced >= upto {
            return Ok(());
        }
        let (store, extent) = (Arc::clone(self), Arc::clone(extent));
        let work = async move {
            store.sync_to(&extent, upto).await?;
            store.note_progress(&extent, PROGRESS_STEP).await
        };
        self.env.tasks.spawn("sync", work).await.map_err(|_| Error::Ended { doing: "sync" })?
    }

    /// Waits until all bytes in the file below `upto` are durable. Concurrent callers share a sync.
    pub(crate) async fn sync_to(
        &self,
        extent: &Arc<Extent>,
        upto: ExtentOffset,
    ) -> Result<(), Error> {
        if extent.state().synced >= upto {
            return Ok(());
        }
        let _one = extent.syncing.lock().await;
        self.sync_file(extent, upto).await
    }

    /// Syncs the file; the caller holds `syncing`.
    async fn sync_file(&self, extent: &Arc<Extent>, upto: ExtentOffset) -> Result<(), Error> {
        let written = {
            let state = extent.state();
            if state.synced >= upto {
                return Ok(());
            }
            if !state.keeps(upto) {
                return Err(Error::Sealed { extent: extent.id });
            }
            state.written
        };
        self.health.check()?;
        let file = self.writable(extent).await?;
        if written < upto {
            return Err(self.broken("I1", "a sync of bytes that were not written"));
        }
        self.metrics.fsyncs.inc();
        file.sync().await.map_err(|e| self.poison("sync", &e))?;
        let mut state = extent.state();
        state.synced = state.synced.max(written);
        state.slot_unsynced = false;
        Ok(())
    }

    /// Writes the extent's next slot. Before that the current slot is made durable, since a crash
    /// could otherwise tear both.
    pub(crate) async fn write_slot(
        &self,
        extent: &Arc<Extent>,
        durable: bool,
        change: impl FnOnce(&mut Slot) + Send,
    ) -> Result<(), Error> {
        let _one = extent.syncing.lock().await;
        self.health.check()?;
        let file = self.writable(extent).await?;
        let (mut slot, unsynced) = {
            let state = extent.state();
            (state.slot, state.slot_unsynced)
        };
        if unsynced {
            self.metrics.fsyncs.inc();
            file.sync().await.map_err(|e| self.poison("sync", &e))?;
        }
        change(&mut slot);
        slot.sequence += 1;
        self.assert_seal_covers(extent, &slot)?;
        if durable {
            self.metrics.fsyncs.inc();
            let written = file.write_sync(slot.offset().get(), vec![slot.encode()]).await;
            written.map_err(|e| self.poison("slot", &e))?;
        } else {
            let written = file.write_at(slot.offset().get(), vec![slot.encode()]).await;
            written.map_err(|e| self.poison("slot", &e))?;
        }
        let mut state = extent.state();
        state.slot = slot;
        state.slot_unsynced = !durable;
        Ok(())
    }
}

fn note_placed(state: &mut State, placed: &Placed) {
    for range in &placed.padding {
        state.dead.insert(range.clone());
        state.padding.push(range.clone());
    }
    state.end = placed.end;
}

/// One write for the tail and the frames that follow it.
fn after_tail(tail: Option<TailWrite>, placed: &Placed) -> TailWrite {
    let Some(TailWrite { at, mut pieces }) = tail else {
        return TailWrite { at: placed.start, pieces: placed.pieces.clone() };
    };
    let tail_len: u64 = pieces.iter().map(|piece| size(piece.len())).sum();
    let gap = placed.start - (at + tail_len);
    if gap > 0 {
        pieces.push(zeros(gap));
    }
    pieces.extend(placed.pieces.iter().cloned());
    TailWrite { at, pieces }
}
