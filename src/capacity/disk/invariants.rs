//! Assertions of invariants. If one fails, the disk is poisoned and a log line names the invariant.
//! `docs/invariants.md` lists them.

use crate::capacity::Error;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::header::Slot;
use crate::capacity::extent::memory::Extent;
use crate::capacity::journal::layout::Lsn;
use crate::types::Epoch;
use crate::types::ExtentOffset;

impl Store {
    /// Poisons the disk because an invariant does not hold.
    pub(crate) fn broken(&self, invariant: &'static str, what: &'static str) -> Error {
        let answer = self.health.broken(invariant, what);
        self.journal.wake();
        answer
    }

    /// I2: the extent still takes this append, at its offset and with its epoch. The caller has
    /// checked this before and has held the change lock since, so nothing may have changed.
    pub(super) fn assert_extends(
        &self,
        extent: &Extent,
        epoch: Epoch,
        offset: ExtentOffset,
    ) -> Result<(), Error> {
        let checked = extent.check_append(epoch, offset);
        checked.map_err(|_| self.broken("I2", "an extent changed under the lock of an append"))
    }

    /// I1: bytes below `end` may be acknowledged as durable, because the file was synced up to
    /// there.
    pub(super) fn assert_synced(&self, extent: &Extent, end: ExtentOffset) -> Result<(), Error> {
        let mut state = extent.state();
        if !state.keeps(end) {
            return Err(Error::Sealed { extent: extent.id });
        }
        if state.synced < end {
            return Err(self.broken("I1", "acknowledged before the sync of its bytes"));
        }
        state.acknowledged = state.acknowledged.max(end);
        Ok(())
    }

    /// I1: bytes below `end` may be acknowledged as durable, because the journal batch with the
    /// last of them was written and synced.
    pub(super) fn assert_journaled(
        &self,
        extent: &Extent,
        end: ExtentOffset,
        batch: Lsn,
    ) -> Result<(), Error> {
        if !self.journal.is_durable(batch) {
            return Err(self.broken("I1", "acknowledged before the sync of its journal batch"));
        }
        let mut state = extent.state();
        if !state.keeps(end) {
            return Err(Error::Sealed { extent: extent.id });
        }
        state.acknowledged = state.acknowledged.max(end);
        Ok(())
    }

    /// I4: a sealed extent has all acknowledged bytes.
    pub(super) fn assert_seal_covers(&self, extent: &Extent, slot: &Slot) -> Result<(), Error> {
        if slot.sealed && slot.len < extent.state().acknowledged {
            return Err(self.broken("I4", "a seal before the end of acknowledged bytes"));
        }
        Ok(())
    }

    /// I3: the slot of a sealed extent has the length that is in memory, so all copies end at the
    /// same offset.
    pub(super) fn assert_same_end(&self, extent: &Extent, slot: &Slot) -> Result<(), Error> {
        if slot.len != extent.state().end {
            return Err(self.broken("I3", "a copy would end at another offset than its extent"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
