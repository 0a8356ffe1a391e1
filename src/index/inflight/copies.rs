//! Copies by reference, as an audit must know them.
//!
//! An audit walks all rows and frees what none names. A copy may look a location up in its source,
//! which the walk has yet to meet, and commit it into its destination, which the walk has passed;
//! when the source is then deleted, the walk meets the location nowhere. So a copy is noted before
//! its look-up, tells which extents it met before its commit, and the audit leaves alone every
//! extent named by a copy that ran at any time between its own beginning and its end.
//!
//! Why that is enough. Let D be the row a copy commits, S the row it looked up, both naming
//! location L, and let the audit free L.
//! - The copy ended before the audit began: D was committed (or, if its outcome was unknown, is
//!   decided by the commit that the walk has each partition make first), so the walk met D, or what
//!   replaced D and is covered by this same argument.
//! - It ran at some time during the audit and its look-up was answered before the decision: its
//!   extents are in the watch of the audit, unless it has not told them yet; for that the audit
//!   waits once after its walk ([`InFlight::is_copy_looking_up`]).
//! - It looks up after the walk ended: then S names L after the walk. Either S named it at the
//!   walk, which met it; or S got it since the audit began: by a write, then L lies in an extent
//!   that was open or being written when the audit listed extents, which excludes it; or by a copy,
//!   then L is in the watch, by induction over the order of commits.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use crate::index::InFlight;
use crate::types::ExtentId;

impl InFlight {
    /// Notes a copy before it looks anything up; until the guard is dropped, after the commit was
    /// answered, no audit frees what it names.
    #[must_use]
    pub fn copy(&self) -> CopyGuard {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = state.next_copy;
        state.next_copy += 1;
        state.copies.insert(id, None);
        CopyGuard { inflight: self.clone(), id }
    }

    /// Notes an audit before it lists extents, and returns the number of its watch. What copies
    /// name is kept until [`Self::end_watch`].
    pub(super) fn begin_watch(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = state.next_copy;
        state.next_copy += 1;
        let named = state.copies.values().flatten().flatten().copied().collect();
        state.watches.insert(id, named);
        id
    }

    /// Forgets what copies named for a watch.
    pub(super) fn end_watch(&self, watch: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).watches.remove(&watch);
    }

    /// The number of the next copy: a mark between the copies noted before now and those after.
    pub(super) fn next_copy(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).next_copy
    }

    /// Whether a copy noted before `mark` has yet to tell what it met.
    pub(super) fn is_copy_looking_up(&self, mark: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.copies.range(..mark).any(|(_, met)| met.is_none())
    }

    /// Whether a copy since the watch began names bytes of this extent; so it may if there is no
    /// such watch.
    pub(super) fn is_copied_since(&self, watch: u64, extent: ExtentId) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.watches.get(&watch).is_none_or(|named| named.contains(&extent))
    }
}

/// A running copy.
#[derive(Debug)]
pub struct CopyGuard {
    inflight: InFlight,
    id: u64,
}

impl CopyGuard {
    /// Tells what the look-up met: at once when it is answered, before the commit. One look-up for
    /// each guard.
    pub fn met(&self, extents: impl IntoIterator<Item = ExtentId>) {
        let extents: BTreeSet<ExtentId> = extents.into_iter().collect();
        let mut state = self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner);
        for named in state.watches.values_mut() {
            named.extend(extents.iter().copied());
        }
        state.copies.insert(self.id, Some(extents));
    }
}

impl Drop for CopyGuard {
    fn drop(&mut self) {
        self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner).copies.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ExtentId = ExtentId::new(1);
    const TWO: ExtentId = ExtentId::new(2);

    #[test]
    fn watch_knows_copies_that_ran_at_any_time_since_it_began() {
        let inflight = InFlight::default();
        let before = inflight.copy();
        before.met([ONE]);
        let watch = inflight.begin_watch();
        drop(before);
        assert!(inflight.is_copied_since(watch, ONE), "it ended after the audit began");
        assert!(!inflight.is_copied_since(watch, TWO));
        let during = inflight.copy();
        during.met([TWO]);
        drop(during);
        assert!(inflight.is_copied_since(watch, TWO), "it began and ended within the audit");
        let next = inflight.begin_watch();
        assert!(!inflight.is_copied_since(next, TWO), "the next audit meets its row");
        inflight.end_watch(next);
        assert!(inflight.is_copied_since(next, TWO), "nothing is known any more");
        assert!(inflight.is_copied_since(watch, TWO));
        assert_eq!(inflight.state.lock().unwrap().watches.len(), 1);
    }

    #[test]
    fn copy_that_has_not_told_is_waited_for_and_later_ones_are_not() {
        let inflight = InFlight::default();
        let watch = inflight.begin_watch();
        let early = inflight.copy();
        let mark = inflight.next_copy();
        let _late = inflight.copy();
        assert!(inflight.is_copy_looking_up(mark));
        early.met([ONE]);
        assert!(!inflight.is_copy_looking_up(mark));
        assert!(inflight.is_copied_since(watch, ONE));
    }

    #[test]
    fn copy_given_up_before_its_look_up_was_answered_holds_nobody() {
        let inflight = InFlight::default();
        let copy = inflight.copy();
        let mark = inflight.next_copy();
        drop(copy);
        assert!(!inflight.is_copy_looking_up(mark));
    }
}
