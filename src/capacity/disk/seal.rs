//! Sealing and fencing.

use std::sync::Arc;

use crate::capacity::Error;
use crate::capacity::disk::catalog::Change;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::header::{encode_padding, padding_at, padding_len};
use crate::capacity::extent::map::Body;
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::units::page_up;
use crate::env::DiskError;
use crate::types::Crc32c;
use crate::types::Epoch;

/// The padding list of a sealed extent, as its slot names it; by default there is none.
#[derive(Default)]
struct PaddingList {
    count: u32,
    crc: Crc32c,
}

impl Store {
    /// Refuses lower epochs from now on.
    pub(crate) async fn fence(&self, extent: &Arc<Extent>, epoch: Epoch) -> Result<(), Error> {
        self.health.check()?;
        let _turn = extent.turn.lock().await;
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

    /// Ends the extent. Frames first, then the slot that says where they end: a crash between the
    /// two leaves an open extent, which the restart seals.
    pub(crate) async fn seal(&self, extent: &Arc<Extent>, epoch: Epoch) -> Result<u64, Error> {
        let turn = Arc::clone(&extent.turn).lock_owned().await;
        let held = check_epoch(extent, epoch)?;
        {
            let state = extent.state();
            if state.slot.sealed {
                return Ok(state.end);
            }
        }
        let end = self.write_tail(extent, &turn).await?;
        let padding = self.write_padding(extent, end).await?;
        self.sync_to(extent, end).await?;
        // Before the slot, whose sync makes it durable too: the catalog knows the extent as sealed
        // then, and no later start looks at its file.
        self.trim(extent, end, padding.count).await;
        let epoch = epoch.max(held);
        self.write_slot(extent, true, |slot| {
            slot.sealed = true;
            slot.len = end;
            slot.epoch = epoch;
            slot.padding = padding.count;
            slot.padding_crc = padding.crc;
        })
        .await?;
        // Once more into the other slot: damage to one of them must not make the extent look open.
        self.write_slot(extent, false, |_| {}).await?;
        self.note_open(extent).await;
        let mut changes = vec![sealed_change(extent)];
        changes.extend(self.padding_changes(extent));
        self.note(changes).await;
        self.punch_all(extent).await;
        self.mark_sparse(extent);
        let all_dead = end > 0 && extent.state().dead.total() >= end;
        if all_dead {
            self.remove_now(extent).await?;
        }
        drop(turn);
        Ok(end)
    }

    /// Writes the list of padding after the last page. Only accounting: without room for it the
    /// extent is sealed without, and the audit finds the padding dead.
    async fn write_padding(&self, extent: &Arc<Extent>, end: u64) -> Result<PaddingList, Error> {
        let padding = extent.state().padding.clone();
        let Ok(count) = u32::try_from(padding.len()) else { return Ok(PaddingList::default()) };
        if count == 0 {
            return Ok(PaddingList::default());
        }
        let file = self.writable(extent).await?;
        let list = encode_padding(&padding);
        let crc = Crc32c::of(&list);
        match file.write_at(padding_at(end), vec![list]).await {
            Ok(()) => {}
            Err(DiskError::Full) => return Ok(PaddingList::default()),
            Err(error) => return Err(self.poison("padding list", &error)),
        }
        let _one = extent.syncing.lock().await;
        self.health.check()?;
        // Not below `end`, so `sync_to` would not know of it.
        self.metrics.fsyncs.inc();
        file.sync().await.map_err(|e| self.poison("sync", &e))?;
        let mut state = extent.state();
        state.synced = end;
        Ok(PaddingList { count, crc })
    }

    /// Gives the space reserved beyond the end back. If that fails the space is wasted, nothing
    /// else.
    async fn trim(&self, extent: &Arc<Extent>, end: u64, padding: u32) {
        let Ok(Body { file, .. }) = self.body(extent).await else { return };
        // Before the cut: a seal that ends after it, but before its slot, leaves the extent open,
        // and the next append must reserve its space once more.
        {
            let mut state = extent.state();
            state.allocated = state.allocated.min(page_up(end));
        }
        if let Err(error) = file.set_len(padding_at(end) + padding_len(padding)).await {
            tracing::warn!(
                extent = %extent.id, %error,
                "the space behind a sealed extent was not given back to the file system"
            );
        }
    }

    /// What the catalog was not yet told of an extent's padding.
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

/// The extent's epoch, if `epoch` is not below it and the extent is there.
fn check_epoch(extent: &Extent, epoch: Epoch) -> Result<Epoch, Error> {
    let state = extent.state();
    if state.status == Status::Removed {
        return Err(extent.missing());
    }
    if epoch < state.slot.epoch {
        return Err(Error::Fenced { extent: extent.id, epoch: state.slot.epoch });
    }
    Ok(state.slot.epoch)
}

/// What the catalog keeps of a sealed extent.
pub(crate) fn sealed_change(extent: &Extent) -> Change {
    let slot = extent.state().slot;
    Change::Sealed { extent: extent.id, kind: extent.kind, epoch: slot.epoch, len: slot.len }
}

/// The same with all that is dead in it.
pub(crate) fn sealed_changes(extent: &Extent) -> Vec<Change> {
    let sealed = sealed_change(extent);
    let dead = |range| Change::Dead { extent: extent.id, range, swallowed: Vec::new() };
    let state = extent.state();
    std::iter::once(sealed).chain(state.dead.iter().map(dead)).collect()
}
