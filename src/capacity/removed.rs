//! Removed extents of which journals may have records. A member that creates a copy again must not
//! find them at a start.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::types::ExtentId;

/// The most removed extents that are remembered.
const REMOVED_MAX: usize = 100_000;

/// Removed extents of which journals may have records.
#[derive(Debug, Default)]
pub(super) struct Removed(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ids: BTreeSet<ExtentId>,
    /// Whether no other extents may be so. After a start it is not known.
    is_complete: bool,
}

impl Removed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a removal.
    pub(super) fn note(&self, extent: ExtentId) {
        let mut state = self.lock();
        state.ids.insert(extent);
        if state.ids.len() > REMOVED_MAX {
            // Any extent may be among them from now on.
            *state = State::default();
        }
    }

    /// Whether journals may have records of an extent that does not exist.
    pub(super) fn may_have(&self, extent: ExtentId) -> bool {
        let state = self.lock();
        !state.is_complete || state.ids.contains(&extent)
    }

    /// The extents that were removed before a checkpoint that begins now.
    pub(super) fn all(&self) -> BTreeSet<ExtentId> {
        self.lock().ids.clone()
    }

    /// Notes that a checkpoint of all disks has removed the records of these from the journals, and
    /// those of all that was removed before the start.
    pub(super) fn forget(&self, gone: &BTreeSet<ExtentId>) {
        let mut state = self.lock();
        state.ids.retain(|extent| !gone.contains(extent));
        state.is_complete = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_checkpoint_only_what_was_removed_since_may_have_records() {
        let [first, second, third] = [1, 2, 3].map(ExtentId::new);
        let removed = Removed::default();
        assert!(removed.may_have(third), "an earlier process may have removed it");
        removed.note(first);
        let before = removed.all();
        removed.note(second);
        removed.forget(&before);
        assert!(!removed.may_have(first) && removed.may_have(second) && !removed.may_have(third));
        for id in 0..=100_000 {
            removed.note(ExtentId::new(id));
        }
        assert!(removed.may_have(ExtentId::new(1 << 40)));
    }
}
