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
