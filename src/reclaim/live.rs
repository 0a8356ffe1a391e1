//! The live ranges of extents under audit, within a bound of memory.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::types::ExtentId;

/// Live logical ranges by extent. When they grow too many, the extents with the highest ids are left to a later walk.
#[derive(Debug)]
pub(super) struct Live {
    extents: BTreeMap<ExtentId, Vec<Range<u64>>>,
    held: usize,
    held_max: usize,
}

impl Live {
    /// Nothing live yet in any of `extents`; at most about `held_max` ranges.
    pub(super) fn new(extents: impl IntoIterator<Item = ExtentId>, held_max: usize) -> Self {
        let extents = extents.into_iter().map(|extent| (extent, Vec::new())).collect();
        Self { extents, held: 0, held_max: held_max.max(2) }
    }

    /// Notes live bytes; ignored for extents that are not looked at.
    pub(super) fn add(&mut self, extent: ExtentId, range: Range<u64>) {
        let Some(ranges) = self.extents.get_mut(&extent) else { return };
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => {
                ranges.push(range);
                self.held += 1;
            }
        }
        if self.held > self.held_max {
            self.shrink();
        }
    }

    /// Sorted, disjoint ranges of the extents that were kept to the end.
    pub(super) fn finish(mut self) -> BTreeMap<ExtentId, Vec<Range<u64>>> {
        self.extents.values_mut().for_each(merge);
        self.extents
    }

    fn shrink(&mut self) {
        self.extents.values_mut().for_each(merge);
        self.held = self.extents.values().map(Vec::len).sum();
        while self.held > self.held_max / 2 && self.extents.len() > 1 {
            if let Some((_, ranges)) = self.extents.pop_last() {
                self.held -= ranges.len();
            }
        }
        // One extent is always finished, whatever it takes; not by merging it again at every range.
        self.held_max = self.held_max.max(self.held.saturating_mul(2));
    }
}

/// Sorts ranges and joins those that touch or overlap.
fn merge(ranges: &mut Vec<Range<u64>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges.drain(..) {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    *ranges = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(id: u64) -> ExtentId {
        ExtentId::new(id)
    }

    #[test]
    fn ranges_are_sorted_and_joined() {
        let mut live = Live::new([extent(1), extent(2)], 100);
        for range in [50..60, 0..30, 10..20, 30..31, 59..70, 90..91, 90..91] {
            live.add(extent(1), range);
        }
        live.add(extent(3), 0..1);
        let found = live.finish();
        assert_eq!(found[&extent(1)], [0..31, 50..70, 90..91]);
        assert_eq!(found[&extent(2)], []);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn highest_extents_are_left_out_when_there_are_too_many_ranges() {
        let mut live = Live::new((0..10).map(extent), 20);
        for n in 0..10 {
            for id in 0..10 {
                live.add(extent(id), n * 10..n * 10 + 5);
            }
        }
        let found = live.finish();
        assert!((1..=2).contains(&found.len()), "{found:?}");
        assert!(found.contains_key(&extent(0)));
        assert!(found.values().all(|ranges| ranges.len() == 10), "{found:?}");
    }

    #[test]
    fn one_extent_is_finished_whatever_it_takes() {
        let mut live = Live::new([extent(1)], 2);
        for n in (0..1_000).rev() {
            live.add(extent(1), n * 10..n * 10 + 5);
        }
        assert_eq!(live.finish()[&extent(1)].len(), 1_000);
    }
}
