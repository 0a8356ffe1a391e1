//! Checkpoints: the records of the journal are written to the extents' files and synced, then their
//! part of the ring is released.

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

    /// Runs a checkpoint whenever the ring is half full, until the node stops or the disk is
    /// poisoned.
    pub(crate) async fn checkpoint_loop(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                () = self.journal.checkpoint_due() => {}
            }
            if let Err(error) = self.checkpoint().await {
                tracing::error!(
                    disk = self.number, %error,
                    "a checkpoint failed; the disk takes no writes until a restart has verified it"
                );
                if !self.health.poisoned() {
                    // Without checkpoints the ring fills up, and appends would wait forever.
                    self.stop("checkpoint", &error.to_string());
                }
                return;
            }
        }
    }

    /// Runs one checkpoint. The order matters. The point in the journal is taken first, so that
    /// records acknowledged meanwhile stay in the journal. The files are synced before the
    /// superblock releases their records. A checkpoint that fails, panics or is cancelled leaves
    /// its remaining extents to the next one, which would otherwise release records that are in no
    /// file.
    pub(crate) async fn checkpoint(self: &Arc<Self>) -> Result<(), Error> {
        let _one = self.checkpointing.lock().await;
        self.health.check()?;
        let point = self.journal.next_point();
        let mut pending = Pending::take(self);
        while let Some(extent) = pending.first() {
            self.make_durable(&extent).await?;
            pending.done(extent.id);
        }
        self.journal.advance(point).await;
        self.health.check()
    }

    /// Makes all bytes of an extent durable in its file and notes their end in the slot.
    async fn make_durable(self: &Arc<Self>, extent: &Arc<Extent>) -> Result<(), Error> {
        // A compaction of a sealed extent may hold its change lock for long, and writes would wait
        // for the journal.
        if gone_or_sealed(extent) {
            return Ok(());
        }
        loop {
            let end = {
                let changing = Arc::clone(&extent.changing).lock_owned().await;
                if gone_or_sealed(extent) {
                    return Ok(());
                }
                self.write_tail(extent, &changing).await?
            };
            match self.sync_to(extent, end).await {
                Ok(()) => return self.note_progress(extent, 1).await,
                // The extent was removed meanwhile. Continue with the other extents.
                Err(_) if gone_or_sealed(extent) => return self.health.check(),
                // A seal that is in progress has cut the copy below `end`. It holds the change lock
                // until the copy is sealed, or has failed.
                Err(Error::Sealed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the extent's durable length to its slot if it is at least `step` bytes more than the
    /// slot says. Recovery starts its search there. The slot is not synced: if the write is lost,
    /// the search only takes longer.
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

/// The extents that a checkpoint has yet to make durable. A drop returns them to the store.
struct Pending<'a> {
    store: &'a Store,
    extents: BTreeMap<ExtentId, Arc<Extent>>,
}

impl<'a> Pending<'a> {
    fn take(store: &'a Store) -> Self {
        let mut dirty = store.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        Self { store, extents: std::mem::take(&mut *dirty) }
    }

    fn first(&self) -> Option<Arc<Extent>> {
        self.extents.values().next().cloned()
    }

    fn done(&mut self, extent: ExtentId) {
        self.extents.remove(&extent);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let mut dirty = self.store.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.append(&mut self.extents);
    }
}

/// Whether a checkpoint can skip the extent: a seal has made all bytes durable, and a removed
/// extent has none.
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
    use crate::capacity::Damages;
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
        let (damages, stop) = (Damages::default(), CancellationToken::new());
        let opening = Opening { env, config, metrics, damages, stop };
        let disk = SimDisk::new(1, 64 << 20).disk();
        let store = open_all(vec![disk], &opening).await.unwrap().remove(0).unwrap().store;
        let slot = Slot { sealed: true, ..Slot::new(1, Epoch::new(1)) };
        let extent = Arc::new(Extent::new(ExtentId::new(1), ExtentKind::Data, slot));
        store.dirty.lock().unwrap().insert(extent.id, Arc::clone(&extent));
        let _compaction = extent.changing.lock().await;
        let done = tokio::time::timeout(Duration::from_secs(60), store.checkpoint()).await;
        assert!(matches!(done, Ok(Ok(()))), "{done:?}");
        assert!(store.dirty.lock().unwrap().is_empty());
    }
}
