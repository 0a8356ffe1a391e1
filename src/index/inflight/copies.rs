//! Running copies by reference, which an audit must know.
//!
//! An audit walks all rows and frees bytes that no row names. A copy may look up a location in a
//! source that the walk has not reached, and commit it to a destination that the walk has passed.
//! If the source is then deleted, the walk finds the location in no row. So a copy is noted before
//! its look-up, and before its commit it reports the extents that it found. The audit frees nothing
//! in an extent that was named by a copy which ran at any time between the begin and the end of the
//! audit.
//!
//! Why that is enough. Let S be the row that a copy looked up and D the row that it commits. Both
//! name location L. Suppose the audit frees L.
//! - The copy ended before the audit began. Then D was committed. (If the outcome was unknown, the
//!   commit that the walk has each partition make first decides it.) So the walk found D, or the
//!   rows that replaced D, which this same argument covers.
//! - The copy ran at some time during the audit, and its look-up was answered before the decision.
//!   Then its extents are in the watch of the audit, unless the copy has not reported them yet. The
//!   audit waits for that once after its walk ([`InFlight::is_copy_looking_up`]).
//! - The copy looks up after the walk ended. Then S names L after the walk. If S named L during the
//!   walk, the walk found it. Otherwise S got L since the audit began. If S got it by a write, L
//!   lies in an extent that was open or being written when the audit listed the extents, so the
//!   audit excludes it. If S got it by a copy, L is in the watch, by induction over the order of
//!   commits.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use crate::index::InFlight;
use crate::types::ExtentId;

impl InFlight {
    /// Notes a copy before its look-up. The note is dropped after the commit was answered. Until
    /// then no audit frees bytes that the copy names.
    #[must_use]
    pub fn copy(&self) -> CopyNote {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = state.next_copy;
        state.next_copy += 1;
        state.copies.insert(id, None);
        CopyNote { inflight: self.clone(), id }
    }

    /// Begins the watch of an audit, before the audit lists extents, and returns its number. The
    /// extents that copies name are kept until [`Self::end_watch`].
    pub(super) fn begin_watch(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = state.next_copy;
        state.next_copy += 1;
        let named = state.copies.values().flatten().flatten().copied().collect();
        state.watches.insert(id, named);
        id
    }

    /// Ends a watch.
    pub(super) fn end_watch(&self, watch: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).watches.remove(&watch);
    }

    /// The number of the next copy. It separates the copies noted before now from later ones.
    pub(super) fn next_copy(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).next_copy
    }

    /// All copies with lower numbers have ended.
    pub(super) fn copies_ended(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.copies.first_key_value().map_or(state.next_copy, |(number, _)| *number)
    }

    /// Whether a copy noted before `mark` has not yet reported its look-up.
    pub(super) fn is_copy_looking_up(&self, mark: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.copies.range(..mark).any(|(_, met)| met.is_none())
    }

    /// Whether a copy has named bytes of this extent since the watch began. True if there is no
    /// such watch.
    pub(super) fn is_copied_since(&self, watch: u64, extent: ExtentId) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.watches.get(&watch).is_none_or(|named| named.contains(&extent))
    }
}

/// A running copy.
#[derive(Debug)]
pub struct CopyNote {
    inflight: InFlight,
    id: u64,
}

impl CopyNote {
    /// Reports the extents that the look-up found, as soon as it is answered and before the commit.
    /// A note has one look-up.
    pub fn met(&self, extents: impl IntoIterator<Item = ExtentId>) {
        let extents: BTreeSet<ExtentId> = extents.into_iter().collect();
        let mut state = self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner);
        for named in state.watches.values_mut() {
            named.extend(extents.iter().copied());
        }
        state.copies.insert(self.id, Some(extents));
    }
}

impl Drop for CopyNote {
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
    fn copy_that_has_not_reported_is_waited_for_and_later_ones_are_not() {
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
