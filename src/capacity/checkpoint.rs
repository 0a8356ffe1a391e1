//! Checkpoints: what the journal holds is written to the extents' files and synced, then the ring is free again.

use std::sync::{Arc, PoisonError};

use crate::capacity::Error;
use crate::capacity::extent::{Extent, Status};
use crate::capacity::store::Store;

impl Store {
    /// Runs the journal until it is closed or a write fails.
    pub(crate) async fn journal_loop(&self) {
        self.journal.run().await;
    }

    /// Runs checkpoints when the ring fills, until the node stops or the disk is poisoned.
    pub(crate) async fn checkpoint_loop(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.journal.checkpoint_due() => {}
            }
            if self.checkpoint().await.is_err() {
                return;
            }
        }
    }

    /// One checkpoint. The order matters: the cut is taken first, so that a record acknowledged meanwhile stays in the
    /// journal; the files are synced before the superblock forgets their records.
    pub(crate) async fn checkpoint(self: &Arc<Self>) -> Result<(), Error> {
        let _one = self.checkpointing.lock().await;
        self.health.check()?;
        let cut = self.journal.cut();
        let dirty = std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner));
        for extent in dirty.values() {
            self.settle(extent).await?;
        }
        self.journal.advance(cut).await;
        self.health.check()
    }

    /// Makes all of an extent durable in its file and notes how far that is, where a recovery can start to look.
    async fn settle(self: &Arc<Self>, extent: &Arc<Extent>) -> Result<(), Error> {
        let end = {
            let turn = Arc::clone(&extent.turn).lock_owned().await;
            if gone_or_sealed(extent) {
                return Ok(());
            }
            self.write_tail(extent, &turn).await?
        };
        self.sync_to(extent, end).await?;
        let _turn = extent.turn.lock().await;
        if gone_or_sealed(extent) || extent.state().slot.len >= end {
            return Ok(());
        }
        self.write_slot(extent, false, |slot| slot.len = end).await?;
        self.note(self.padding_changes(extent)).await;
        Ok(())
    }
}

/// Sealing has made everything durable already; a removed extent has nothing to keep.
fn gone_or_sealed(extent: &Extent) -> bool {
    let state = extent.state();
    state.status == Status::Removed || state.slot.sealed
}
