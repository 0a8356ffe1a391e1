//! Checkpoints: what the journal holds is written to the extents' files and synced, then the ring
//! is free again.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use crate::capacity::Error;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::{Extent, Status};
use crate::types::ExtentId;

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
                () = self.stopping.cancelled() => return,
                () = self.journal.checkpoint_due() => {}
            }
            if let Err(error) = self.checkpoint().await {
                tracing::error!(
                    disk = self.id, %error,
                    "a checkpoint failed; the disk makes no more of them"
                );
                if !self.health.poisoned() {
                    // Without checkpoints the ring fills, and appends would wait for ever.
                    self.stop("checkpoint", &error.to_string());
                }
                return;
            }
        }
    }

    /// One checkpoint. The order matters: the cut is taken first, so that a record acknowledged
    /// meanwhile stays in the journal; the files are synced before the superblock forgets their
    /// records. One that fails, panics or is dropped leaves to the next what it did not settle:
    /// otherwise that one would forget records that are in no file.
    pub(crate) async fn checkpoint(self: &Arc<Self>) -> Result<(), Error> {
        let _one = self.checkpointing.lock().await;
        self.health.check()?;
        let cut = self.journal.cut();
        let mut unsettled = Unsettled::take(self);
        while let Some(extent) = unsettled.first() {
            self.settle(&extent).await?;
            unsettled.settled(extent.id);
        }
        self.journal.advance(cut).await;
        self.health.check()
    }

    /// Makes all of an extent durable in its file and notes how far that is.
    async fn settle(self: &Arc<Self>, extent: &Arc<Extent>) -> Result<(), Error> {
        // A sealed one may be under compaction, which has the turn for long, and writes wait for
        // the journal.
        if gone_or_sealed(extent) {
            return Ok(());
        }
        let end = {
            let turn = Arc::clone(&extent.turn).lock_owned().await;
            if gone_or_sealed(extent) {
                return Ok(());
            }
            self.write_tail(extent, &turn).await?
        };
        match self.sync_to(extent, end).await {
            Ok(()) => self.note_progress(extent, 1).await,
            // Removed meanwhile: nothing to keep, and the others must still be settled.
            Err(_) if gone_or_sealed(extent) => self.health.check(),
            Err(error) => Err(error),
        }
    }

    /// Notes in the extent's slot how far it is durable, if that is at least `step` bytes further
    /// than the slot says: a recovery starts to look there. Costs no sync: a lost note only means a
    /// longer look.
    pub(crate) async fn note_progress(&self, extent: &Arc<Extent>, step: u64) -> Result<(), Error> {
        let synced = {
            let state = extent.state();
            let gone = state.status == Status::Removed || state.slot.sealed;
            if gone || state.synced < state.slot.len + step {
                return Ok(());
            }
            state.synced
        };
        let written = self.write_slot(extent, false, |slot| {
            if !slot.sealed {
                slot.len = slot.len.max(synced);
            }
        });
        match written.await {
            Ok(()) => {}
            Err(_) if gone_or_sealed(extent) => return self.health.check(),
            Err(error) => return Err(error),
        }
        self.note(self.padding_changes(extent)).await;
        Ok(())
    }
}

/// The extents that a checkpoint has still to settle; given back to the store when it is dropped.
struct Unsettled<'a> {
    store: &'a Store,
    extents: BTreeMap<ExtentId, Arc<Extent>>,
}

impl<'a> Unsettled<'a> {
    fn take(store: &'a Store) -> Self {
        let mut dirty = store.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        Self { store, extents: std::mem::take(&mut *dirty) }
    }

    fn first(&self) -> Option<Arc<Extent>> {
        self.extents.values().next().cloned()
    }

    fn settled(&mut self, extent: ExtentId) {
        self.extents.remove(&extent);
    }
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        let mut dirty = self.store.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.append(&mut self.extents);
    }
}

/// Sealing has made everything durable already; a removed extent has nothing to keep.
fn gone_or_sealed(extent: &Extent) -> bool {
    let state = extent.state();
    state.status == Status::Removed || state.slot.sealed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::capacity::CapacityConfig;
    use crate::capacity::CapacityMetrics;
    use crate::capacity::ExtentKind;
    use crate::capacity::disk::open::open_all;
    use crate::capacity::disk::opening::Opening;
    use crate::capacity::extent::header::Slot;
    use crate::env::Env;
    use crate::env::Tasks;
    use crate::env::clock::SimClock;
    use crate::env::disk_sim::SimDisk;
    use crate::env::rand::SeededRand;
    use crate::types::Epoch;

    #[tokio::test(start_paused = true)]
    async fn checkpoint_does_not_wait_for_the_compaction_of_a_sealed_extent() {
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        let (config, metrics) = (CapacityConfig::small(), CapacityMetrics::default());
        let opening = Opening { env, config, metrics, stop: CancellationToken::new() };
        let disk = SimDisk::new(1, 64 << 20).disk();
        let store = open_all(vec![disk], &opening).await.unwrap().remove(0).unwrap().store;
        let slot = Slot { sealed: true, ..Slot::new(1, Epoch::new(1)) };
        let extent = Arc::new(Extent::new(ExtentId::new(1), ExtentKind::Data, slot));
        store.dirty.lock().unwrap().insert(extent.id, Arc::clone(&extent));
        let _compaction = extent.turn.lock().await;
        let done = tokio::time::timeout(Duration::from_secs(60), store.checkpoint()).await;
        assert!(matches!(done, Ok(Ok(()))), "{done:?}");
        assert!(store.dirty.lock().unwrap().is_empty());
    }
}
