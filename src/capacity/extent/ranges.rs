//! A set of disjoint ranges that merges neighbours: the dead bytes of an extent.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::types::ExtentOffset;

/// Disjoint, non-adjacent half-open ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    by_start: BTreeMap<ExtentOffset, ExtentOffset>,
    total: u64,
}

/// The result of an insertion: the range that now contains the inserted one, and the ranges that
/// were merged into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    /// The range in the set.
    pub(crate) range: Range<ExtentOffset>,
    /// Starts of earlier ranges that are no longer in the set.
    pub(crate) swallowed: Vec<ExtentOffset>,
}

impl Ranges {
    /// Bytes in the set.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Adds a range; `None` if it is empty or already in the set.
    pub(crate) fn insert(&mut self, range: Range<ExtentOffset>) -> Option<Merged> {
        if range.is_empty() || self.contains(&range) {
            return None;
        }
        let mut merged = range;
        let mut swallowed = Vec::new();
        while let Some((&start, &end)) = self.by_start.range(..=merged.end).next_back() {
            if end < merged.start {
                break;
            }
            merged.start = merged.start.min(start);
            merged.end = merged.end.max(end);
            self.by_start.remove(&start);
            self.total -= end - start;
            swallowed.push(start);
        }
        self.by_start.insert(merged.start, merged.end);
        self.total += merged.end - merged.start;
        swallowed.retain(|&start| start != merged.start);
        Some(Merged { range: merged, swallowed })
    }

    /// Whether every byte of `range` is in the set.
    pub(crate) fn contains(&self, range: &Range<ExtentOffset>) -> bool {
        range.is_empty() || self.at(range.start).is_some_and(|covering| covering.end >= range.end)
    }

    /// Whether any byte of `range` is in the set.
    pub(crate) fn overlaps(&self, range: &Range<ExtentOffset>) -> bool {
        !range.is_empty()
            && self
                .by_start
                .range(..range.end)
                .next_back()
                .is_some_and(|(_, &end)| end > range.start)
    }

    /// The range that holds `offset`.
    pub(crate) fn at(&self, offset: ExtentOffset) -> Option<Range<ExtentOffset>> {
        let (&start, &end) = self.by_start.range(..=offset).next_back()?;
        (end > offset).then_some(start..end)
    }

    /// Ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<ExtentOffset>> + '_ {
        self.by_start.iter().map(|(&start, &end)| start..end)
    }

    /// The parts below `end` that are not in the set, in order.
    pub(crate) fn gaps(&self, end: ExtentOffset) -> Vec<Range<ExtentOffset>> {
        let mut gaps = Vec::new();
        let mut from = ExtentOffset::START;
        for range in self.iter() {
            if range.start >= end {
                break;
            }
            if range.start > from {
                gaps.push(from..range.start);
            }
            from = range.end;
        }
        if from < end {
            gaps.push(from..end);
        }
        gaps
    }
}

/// A logical range of bare numbers, as callers of the node give it.
pub(crate) fn offsets(range: &Range<u64>) -> Range<ExtentOffset> {
    ExtentOffset::new(range.start)..ExtentOffset::new(range.end)
}

/// The bare numbers of a logical range, as callers of the node take it.
pub(crate) fn numbers(range: &Range<ExtentOffset>) -> Range<u64> {
    range.start.get()..range.end.get()
}

impl FromIterator<Range<ExtentOffset>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<ExtentOffset>>>(ranges: I) -> Self {
        let mut set = Self::default();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity::units::index;

    #[test]
    fn insert_merges_neighbours_and_names_the_swallowed() {
        let mut set: Ranges = [0..10, 20..30].iter().map(offsets).collect();
        let merged = set.insert(offsets(&(10..20))).unwrap();
        assert_eq!(merged.range, offsets(&(0..30)));
        assert_eq!(merged.swallowed, vec![ExtentOffset::new(20)]);
        assert_eq!(set.total(), 30);
        assert_eq!(set.insert(offsets(&(3..9))), None);
    }

    proptest! {
        #[test]
        fn set_agrees_with_a_bitmap(inserts in prop::collection::vec((0u64..60, 0u64..12), 0..30)) {
            let mut set = Ranges::default();
            let mut bits = [false; 80];
            for (start, len) in inserts {
                set.insert(offsets(&(start..start + len)));
                bits[index(start)..index(start + len)].fill(true);
            }
            prop_assert_eq!(set.total(), bits.iter().filter(|b| **b).count() as u64);
            for at in 0..70u64 {
                let three = &bits[index(at)..index(at + 3)];
                let range = offsets(&(at..at + 3));
                prop_assert_eq!(set.at(range.start).is_some(), three[0]);
                prop_assert_eq!(set.overlaps(&range), three.contains(&true));
                prop_assert_eq!(set.contains(&range), !three.contains(&false));
            }
            let alive: u64 = set.gaps(ExtentOffset::new(80)).iter().map(|g| g.end - g.start).sum();
            prop_assert_eq!(alive + set.total(), 80);
        }
    }
}
