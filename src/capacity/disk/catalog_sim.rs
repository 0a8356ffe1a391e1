//! The catalog of a simulation: kept in memory over simulated restarts. It loses changes as a
//! write-behind database may.
//!
//! Changes become durable in order and late. As with sled, [`Catalog::flush`], or a change that
//! marks bytes as dead, makes all earlier changes durable. A crash loses some of the newest changes
//! that were not durable. Sometimes it leaves an empty catalog, as after damage, or an old state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::capacity::disk::catalog::Catalog;
use crate::capacity::disk::catalog::Change;
use crate::capacity::disk::catalog::Contents;
use crate::capacity::disk::catalog::SealedEntry;
use crate::env::Rand;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// A catalog that survives simulated crashes; clones share it.
#[derive(Clone, Debug, Default)]
pub struct SimulatedCatalog(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// All changes, oldest first.
    changes: Vec<Change>,
    /// How many of them are durable.
    durable: usize,
}

impl SimulatedCatalog {
    /// Simulates a kill or a power failure.
    pub fn crash(&self, rand: &dyn Rand) {
        let mut state = self.lock();
        let len = state.changes.len();
        let kept = match rand.below(10) {
            // Damaged.
            0 => 0,
            // An old state.
            1 => below(rand, len),
            _ => state.durable + below(rand, len - state.durable),
        };
        state.changes.truncate(kept);
        state.durable = kept;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In `0..=most`.
fn below(rand: &dyn Rand, most: usize) -> usize {
    usize::try_from(rand.below(most as u64 + 1)).unwrap_or(most)
}

impl PartialEq for SimulatedCatalog {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SimulatedCatalog {}

impl Catalog for SimulatedCatalog {
    fn may_block(&self) -> bool {
        false
    }

    fn apply(&self, changes: &[Change]) {
        let mut state = self.lock();
        state.changes.extend_from_slice(changes);
        if changes.iter().any(|change| matches!(change, Change::Dead { .. })) {
            state.durable = state.changes.len();
        }
    }

    fn load(&self) -> Contents {
        let mut contents = Contents::default();
        // Keyed by the start, as in the database: a range replaces another with the same start.
        let mut dead: BTreeMap<ExtentId, BTreeMap<ExtentOffset, ExtentOffset>> = BTreeMap::new();
        for change in &self.lock().changes {
            match change {
                Change::Sealed { extent, kind, epoch, len } => {
                    let entry = SealedEntry { kind: *kind, epoch: *epoch, len: *len };
                    contents.sealed.insert(*extent, entry);
                }
                Change::Dead { extent, range, swallowed } => {
                    let ranges = dead.entry(*extent).or_default();
                    ranges.retain(|start, _| !swallowed.contains(start));
                    ranges.insert(range.start, range.end);
                }
                Change::Removed { extent } => {
                    contents.sealed.remove(extent);
                    dead.remove(extent);
                }
            }
        }
        let ranges = |ranges: BTreeMap<ExtentOffset, ExtentOffset>| {
            ranges.into_iter().map(|(from, to)| from..to)
        };
        contents.dead =
            dead.into_iter().map(|(extent, found)| (extent, ranges(found).collect())).collect();
        contents
    }

    fn flush(&self) {
        let mut state = self.lock();
        state.durable = state.changes.len();
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::capacity::ExtentKind;
    use crate::capacity::extent::ranges::{numbers, offsets};
    use crate::env::SeededRand;
    use crate::types::Epoch;

    fn sealed(number: u64) -> Change {
        let (extent, epoch) = (ExtentId::new(number), Epoch::new(1));
        Change::Sealed { extent, kind: ExtentKind::Data, epoch, len: ExtentOffset::new(4096) }
    }

    #[test]
    fn a_crash_keeps_the_oldest_changes_and_mostly_all_that_were_flushed() {
        let mut lost = [0, 0];
        for seed in 0..100 {
            let rand = SeededRand::new(seed);
            let catalog = SimulatedCatalog::default();
            (0..10).for_each(|number| catalog.apply(&[sealed(number)]));
            catalog.flush();
            (10..20).for_each(|number| catalog.apply(&[sealed(number)]));
            catalog.crash(&rand);
            let kept = catalog.load().sealed;
            assert!(kept.keys().copied().eq((0..kept.len() as u64).map(ExtentId::new)), "{kept:?}");
            lost[0] += usize::from(kept.len() < 10);
            lost[1] += usize::from(kept.len() < 20);
        }
        assert!((1..=30).contains(&lost[0]), "{lost:?}");
        assert!(lost[1] > 50, "{lost:?}");
    }

    #[test]
    fn what_is_dead_is_durable_at_once_and_what_is_removed_is_forgotten() {
        let catalog = SimulatedCatalog::default();
        let extent = ExtentId::new(1);
        catalog.apply(&[
            sealed(1),
            Change::Dead { extent, range: offsets(&(0..4096)), swallowed: Vec::new() },
        ]);
        assert_eq!(catalog.lock().durable, 2);
        assert!(catalog.load().dead[&extent].contains(&offsets(&(0..4096))));
        catalog.apply(&[Change::Removed { extent }]);
        assert_eq!(catalog.load(), Contents::default());
    }

    #[test]
    fn a_dead_range_replaces_those_that_start_where_it_starts_or_that_it_swallows() {
        let catalog = SimulatedCatalog::default();
        let extent = ExtentId::new(1);
        let note = |range: Range<u64>, swallowed: &[u64]| {
            let swallowed = swallowed.iter().copied().map(ExtentOffset::new).collect();
            catalog.apply(&[Change::Dead { extent, range: offsets(&range), swallowed }]);
            catalog.load().dead[&extent].iter().map(|range| numbers(&range)).collect::<Vec<_>>()
        };
        note(0..10, &[]);
        note(20..30, &[]);
        assert_eq!(note(40..50, &[]), [0..10, 20..30, 40..50]);
        assert_eq!(note(0..30, &[20]), [0..30, 40..50]);
        assert_eq!(note(0..10, &[]), [0..10, 40..50]);
    }
}
