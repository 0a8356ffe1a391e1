//! Assertions of the constitution's invariants. One that fails stops all writes to the disk, and a
//! log line names the invariant. `docs/invariants.md` lists them.

use crate::capacity::AppendRequest;
use crate::capacity::Error;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::header::Slot;
use crate::capacity::extent::memory::Extent;

impl Store {
    /// Stops all writes to the disk because an invariant does not hold.
    pub(crate) fn broken(&self, invariant: &'static str, what: &'static str) -> Error {
        let answer = self.health.broken(invariant, what);
        self.journal.wake();
        answer
    }

    /// I2: the extent may still be appended to, at this offset and by this epoch. The caller has
    /// held the extent's turn since it checked the same, so nothing may have changed.
    pub(super) fn assert_extends(
        &self,
        extent: &Extent,
        request: &AppendRequest,
    ) -> Result<(), Error> {
        let checked = extent.check_append(request);
        checked.map_err(|_| self.broken("I2", "an extent changed during the turn of an append"))
    }

    /// I1: an answer may say that everything below `end` is durable: the file was synced that far.
    pub(super) fn assert_synced(&self, extent: &Extent, end: u64) -> Result<(), Error> {
        let mut state = extent.state();
        if state.synced < end {
            return Err(self.broken("I1", "an answer before the sync of its bytes"));
        }
        state.acknowledged = state.acknowledged.max(end);
        Ok(())
    }

    /// I1: an answer may say that everything below `end` is durable: the journal batch with its
    /// last bytes was written and synced.
    pub(super) fn assert_journaled(
        &self,
        extent: &Extent,
        end: u64,
        batch: u64,
    ) -> Result<(), Error> {
        if !self.journal.is_durable(batch) {
            return Err(self.broken("I1", "an answer before the sync of its journal batch"));
        }
        let mut state = extent.state();
        state.acknowledged = state.acknowledged.max(end);
        Ok(())
    }

    /// I4: a sealed extent has every acknowledged byte.
    pub(super) fn assert_seal_covers(&self, extent: &Extent, slot: &Slot) -> Result<(), Error> {
        if slot.sealed && slot.len < extent.state().acknowledged {
            return Err(self.broken("I4", "a seal before the end of acknowledged bytes"));
        }
        Ok(())
    }

    /// I3: the file of a sealed extent has the length that the node knows, so all copies end at
    /// the same offset.
    pub(super) fn assert_same_end(&self, extent: &Extent, slot: &Slot) -> Result<(), Error> {
        if slot.len != extent.state().end {
            return Err(self.broken("I3", "a copy would end elsewhere than its extent"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
