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
//!   extents are in
//!   [`CopyWatch`], unless it has not told them yet; for that the audit waits once after its walk
//!   ([`CopyWatch::is_looking_up`]).
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

    /// Notes an audit before it lists extents.
    #[must_use]
    pub fn watch_copies(&self) -> CopyWatch {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = state.next_copy;
        state.next_copy += 1;
        let named = state.copies.values().flatten().flatten().copied().collect();
        state.watches.insert(id, named);
        CopyWatch { inflight: self.clone(), id }
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

/// An audit's view of the copies since it began.
#[derive(Debug)]
pub struct CopyWatch {
    inflight: InFlight,
    id: u64,
}

impl CopyWatch {
    /// A mark between the copies noted before now and those after.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner).next_copy
    }

    /// Whether a copy noted before `mark` has yet to tell what it met.
    #[must_use]
    pub fn is_looking_up(&self, mark: u64) -> bool {
        let state = self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.copies.range(..mark).any(|(_, met)| met.is_none())
    }

    /// Whether a copy since the audit began names bytes of this extent.
    #[must_use]
    pub fn is_named(&self, extent: ExtentId) -> bool {
        let state = self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.watches.get(&self.id).is_some_and(|named| named.contains(&extent))
    }
}

impl Drop for CopyWatch {
    fn drop(&mut self) {
        self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner).watches.remove(&self.id);
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
        let watch = inflight.watch_copies();
        drop(before);
        assert!(watch.is_named(ONE), "it ended after the audit began");
        assert!(!watch.is_named(TWO));
        let during = inflight.copy();
        during.met([TWO]);
        drop(during);
        assert!(watch.is_named(TWO), "it began and ended within the audit");
        assert!(!inflight.watch_copies().is_named(TWO), "the next audit meets its row");
    }

    #[test]
    fn copy_that_has_not_told_is_waited_for_and_later_ones_are_not() {
        let inflight = InFlight::default();
        let watch = inflight.watch_copies();
        let early = inflight.copy();
        let mark = watch.mark();
        let _late = inflight.copy();
        assert!(watch.is_looking_up(mark));
        early.met([ONE]);
        assert!(!watch.is_looking_up(mark));
        assert!(watch.is_named(ONE));
    }

    #[test]
    fn copy_given_up_before_its_look_up_was_answered_holds_nobody() {
        let inflight = InFlight::default();
        let watch = inflight.watch_copies();
        let copy = inflight.copy();
        let mark = watch.mark();
        drop(copy);
        assert!(!watch.is_looking_up(mark));
    }
}
