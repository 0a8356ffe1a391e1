//! Sealing and fencing.

use std::sync::Arc;

use crate::capacity::Error;
use crate::capacity::ExtentState;
use crate::capacity::disk::catalog::Change;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::header::{encode_padding, padding_at, padding_len};
use crate::capacity::extent::map::Body;
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::units::offset_up;
use crate::env::DiskError;
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentOffset;

/// The padding list as the slot of a sealed extent describes it. The default is no list.
#[derive(Default)]
struct PaddingList {
    count: u32,
    crc: Crc32c,
}

impl Store {
    /// Raises the extent's epoch, so that lower ones are refused.
    pub(crate) async fn fence(&self, extent: &Arc<Extent>, epoch: Epoch) -> Result<(), Error> {
        self.health.check()?;
        let _changing = extent.changing.lock().await;
        if check_epoch(extent, epoch)? == epoch {
            return Ok(());
        }
        self.write_slot(extent, true, |slot| slot.epoch = epoch).await?;
        let slot = extent.state().slot;
        if slot.sealed {
            self.note(vec![sealed_change(extent)]).await;
        }
        Ok(())
    }

    /// Seals the extent and returns its length. The frames are made durable before the slot: after
    /// a crash between the two, the extent is open and the restart seals it.
    pub(crate) async fn seal(
        &self,
        extent: &Arc<Extent>,
        epoch: Epoch,
    ) -> Result<ExtentOffset, Error> {
        let changing = Arc::clone(&extent.changing).lock_owned().await;
        let held = check_epoch(extent, epoch)?;
        {
            let state = extent.state();
            match state.phase() {
                ExtentState::Sealed => return Ok(state.end),
                ExtentState::Closed => return Err(Error::Sealed { extent: extent.id }),
                ExtentState::Open => {}
            }
        }
        let end = self.write_tail(extent, &changing).await?;
        self.seal_here(extent, end, epoch.max(held)).await?;
        drop(changing);
        Ok(end)
    }

    /// Seals a copy at the length on which all copies of the extent agree. What is beyond it is cut
    /// off: it was not answered to the writer. The length is recorded elsewhere. So a crash half
    /// way may leave an open copy of which a part is gone: it is sealed at that length later.
    pub(crate) async fn seal_at(
        &self,
        extent: &Arc<Extent>,
        epoch: Epoch,
        len: ExtentOffset,
    ) -> Result<(), Error> {
        self.health.check()?;
        // A compaction holds the change lock of a sealed extent for long. Its end is final.
        if sealed_end(extent, epoch)? == Some(len) {
            return Ok(());
        }
        let changing = Arc::clone(&extent.changing).lock_owned().await;
        let held = check_epoch(extent, epoch)?;
        let (sealed, expected) = {
            let state = extent.state();
            (state.slot.sealed, state.end)
        };
        if sealed && expected == len {
            return Ok(());
        }
        if sealed || expected < len {
            return Err(Error::WrongOffset { extent: extent.id, expected });
        }
        self.write_tail(extent, &changing).await?;
        extent.state().cut(len);
        extent.set_window(None);
        self.seal_here(extent, len, epoch.max(held)).await
    }

    /// Seals the extent at its end, all of which is in the file. The caller holds the change lock.
    async fn seal_here(
        &self,
        extent: &Arc<Extent>,
        end: ExtentOffset,
        epoch: Epoch,
    ) -> Result<(), Error> {
        let padding = self.write_padding(extent, end).await?;
        self.sync_to(extent, end).await?;
        // Before the slot, whose sync also makes the new file length durable. After the seal the
        // extent is in the catalog, so no later start would examine its file.
        self.trim(extent, end, padding.count).await;
        self.write_slot(extent, true, |slot| {
            slot.sealed = true;
            slot.incomplete = false;
            slot.len = end;
            slot.epoch = epoch;
            slot.padding = padding.count;
            slot.padding_crc = padding.crc;
        })
        .await?;
        // The other slot gets the seal too, so that damage to one slot does not make the extent
        // open again.
        self.write_slot(extent, false, |_| {}).await?;
        self.note_open(extent).await;
        let mut changes = vec![sealed_change(extent)];
        changes.extend(self.padding_changes(extent));
        self.note(changes).await;
        self.punch_all(extent).await;
        self.mark_sparse(extent);
        let all_dead = end > ExtentOffset::START && extent.state().dead.total() >= end.get();
        if all_dead && self.config.removes_dead() {
            self.remove_now(extent).await?;
        }
        Ok(())
    }

    /// Raises the extent's epoch and makes everything that was appended durable. Returns where the
    /// copy ends. A sealed copy keeps its epoch: it takes no appends anyway.
    pub(crate) async fn fence_copy(
        &self,
        extent: &Arc<Extent>,
        epoch: Epoch,
    ) -> Result<ExtentOffset, Error> {
        if let Some(end) = sealed_end(extent, epoch)? {
            return Ok(end);
        }
        self.health.check()?;
        let changing = Arc::clone(&extent.changing).lock_owned().await;
        let held = check_epoch(extent, epoch)?;
        if let Some(end) = sealed_end(extent, epoch)? {
            return Ok(end);
        }
        let end = self.write_tail(extent, &changing).await?;
        self.sync_to(extent, end).await?;
        if epoch > held {
            self.write_slot(extent, true, |slot| slot.epoch = epoch).await?;
        }
        Ok(end)
    }

    /// Writes the list of padding after the last page. The list only serves accounting: on a full
    /// disk the extent is sealed without it, and the audit marks the padding as dead.
    async fn write_padding(
        &self,
        extent: &Arc<Extent>,
        end: ExtentOffset,
    ) -> Result<PaddingList, Error> {
        let padding = extent.state().padding.clone();
        let Ok(count) = u32::try_from(padding.len()) else { return Ok(PaddingList::default()) };
        if count == 0 {
            return Ok(PaddingList::default());
        }
        let file = self.writable(extent).await?;
        let list = encode_padding(&padding);
        let crc = Crc32c::of(&list);
        match file.write_at(padding_at(end).get(), vec![list]).await {
            Ok(()) => {}
            Err(DiskError::Full) => return Ok(PaddingList::default()),
            Err(error) => return Err(self.poison("padding list", &error)),
        }
        let _one = extent.syncing.lock().await;
        self.health.check()?;
        // The list lies beyond `end`, so `sync_to` does not cover it.
        self.metrics.fsyncs.inc();
        file.sync().await.map_err(|e| self.poison("sync", &e))?;
        let mut state = extent.state();
        state.synced = end;
        Ok(PaddingList { count, crc })
    }

    /// Gives the space that is reserved beyond the end back. A failure is only logged: the space is
    /// wasted.
    async fn trim(&self, extent: &Arc<Extent>, end: ExtentOffset, padding: u32) {
        let Ok(Body { file, .. }) = self.body(extent).await else { return };
        // Before the file is shortened: if the seal then fails before its slot is written, the
        // extent stays open, and the next append must reserve its space again.
        {
            let mut state = extent.state();
            state.allocated = state.allocated.min(offset_up(end));
        }
        if let Err(error) = file.set_len((padding_at(end) + padding_len(padding)).get()).await {
            tracing::warn!(
                extent = %extent.id, %error,
                "space reserved beyond the end of a sealed extent was not given back; it stays \
                 in use"
            );
        }
    }

    /// The changes for padding that are not yet noted in the catalog.
    pub(crate) fn padding_changes(&self, extent: &Arc<Extent>) -> Vec<Change> {
        let mut state = extent.state();
        let from = state.padding_noted;
        state.padding_noted = state.padding.len();
        let new = state.padding.get(from..).unwrap_or_default();
        let dead = &state.dead;
        let covering = new.iter().filter_map(|padding| dead.at(padding.start));
        covering
            .map(|range| Change::Dead { extent: extent.id, range, swallowed: Vec::new() })
            .collect()
    }
}

/// Where a sealed extent ends; `None` if it is not sealed.
fn sealed_end(extent: &Extent, epoch: Epoch) -> Result<Option<ExtentOffset>, Error> {
    check_epoch(extent, epoch)?;
    let state = extent.state();
    Ok(state.slot.sealed.then_some(state.end))
}

/// The extent's epoch, if `epoch` is not below it and the extent was not removed.
pub(super) fn check_epoch(extent: &Extent, epoch: Epoch) -> Result<Epoch, Error> {
    let state = extent.state();
    if state.status == Status::Removed {
        return Err(extent.missing());
    }
    if epoch < state.slot.epoch {
        return Err(Error::Fenced { extent: extent.id, epoch: state.slot.epoch });
    }
    Ok(state.slot.epoch)
}

/// The catalog entry of a sealed extent.
pub(crate) fn sealed_change(extent: &Extent) -> Change {
    let slot = extent.state().slot;
    Change::Sealed { extent: extent.id, kind: extent.kind, epoch: slot.epoch, len: slot.len }
}

/// The catalog entries of a sealed extent and of its dead ranges.
pub(crate) fn sealed_changes(extent: &Extent) -> Vec<Change> {
    let sealed = sealed_change(extent);
    let dead = |range| Change::Dead { extent: extent.id, range, swallowed: Vec::new() };
    let state = extent.state();
    std::iter::once(sealed).chain(state.dead.iter().map(dead)).collect()
}
