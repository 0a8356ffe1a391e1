//! The live ranges of extents under audit, within a bound of memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ops::RangeInclusive;

use crate::reclaim::cursor::Place;
use crate::types::ExtentId;

/// Live logical ranges by extent, from one place to another. When they grow too many, what lies
/// highest is left to a later walk: extents, and the rest of an extent that is too much alone.
#[derive(Debug)]
pub(super) struct Live {
    extents: BTreeMap<ExtentId, Vec<Range<u64>>>,
    from: Place,
    /// What lies from here on is left to a later walk.
    until: Option<Place>,
    held: usize,
    held_max: usize,
}

/// What a walk has found.
#[derive(Debug)]
pub(super) struct Found {
    /// Sorted, disjoint ranges of the extents that were kept to the end. What lies before the
    /// first place and from `next` on counts as live.
    pub(super) extents: BTreeMap<ExtentId, Vec<Range<u64>>>,
    /// Where the next walk goes on; none when this one took in all extents.
    pub(super) next: Option<Place>,
}

impl Live {
    /// Nothing live yet in `extents`, of which at most `held_max` are taken; at most `held_max`
    /// ranges. Of the extent of `from` nothing before it is looked at.
    pub(super) fn new(
        extents: impl IntoIterator<Item = ExtentId>,
        from: Place,
        held_max: usize,
    ) -> Self {
        let held_max = held_max.max(2);
        let mut rest = extents.into_iter();
        let taken = rest.by_ref().take(held_max).map(|extent| (extent, Vec::new())).collect();
        let until = rest.next().map(Place::start_of);
        Self { extents: taken, from, until, held: 0, held_max }
    }

    /// The extents that are looked at lie in this range.
    pub(super) fn extents(&self) -> RangeInclusive<ExtentId> {
        let last = self.extents.last_key_value().map_or(self.from.extent, |(last, _)| *last);
        self.from.extent..=last
    }

    /// Notes live bytes; ignored for what is not looked at.
    pub(super) fn add(&mut self, extent: ExtentId, range: Range<u64>) {
        let range = self.looked_at(extent, range);
        if range.is_empty() {
            return;
        }
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

    /// What the walk found.
    pub(super) fn finish(mut self) -> Found {
        if self.from.offset > 0
            && let Some(ranges) = self.extents.get_mut(&self.from.extent)
        {
            ranges.push(0..self.from.offset);
        }
        if let Some(until) = self.until
            && let Some(ranges) = self.extents.get_mut(&until.extent)
        {
            ranges.push(until.offset..u64::MAX);
        }
        self.extents.values_mut().for_each(merge);
        Found { extents: self.extents, next: self.until }
    }

    fn looked_at(&self, extent: ExtentId, range: Range<u64>) -> Range<u64> {
        let start = if extent == self.from.extent { self.from.offset } else { 0 };
        let end = match self.until {
            Some(until) if until.extent == extent => until.offset,
            Some(_) | None => u64::MAX,
        };
        range.start.max(start)..range.end.min(end)
    }

    /// Keeps half of what may be held, so that this is not done again at every range.
    fn shrink(&mut self) {
        self.extents.values_mut().for_each(merge);
        self.held = self.extents.values().map(Vec::len).sum();
        let keep = self.held_max / 2;
        while self.held > keep && self.extents.len() > 1 {
            if let Some((extent, ranges)) = self.extents.pop_last() {
                self.held -= ranges.len();
                self.until = Some(Place::start_of(extent));
            }
        }
        // One extent is too much: its first ranges are kept. The next walk goes on behind them.
        if let Some((extent, ranges)) = self.extents.iter_mut().next()
            && let Some(cut) = ranges.get(keep)
        {
            self.until = Some(Place { extent: *extent, offset: cut.start });
            ranges.truncate(keep);
            self.held = keep;
        }
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

    const START: Place = Place { extent: ExtentId::new(0), offset: 0 };

    fn extent(id: u64) -> ExtentId {
        ExtentId::new(id)
    }

    #[test]
    fn ranges_are_sorted_and_joined() {
        let mut live = Live::new([extent(1), extent(2)], START, 100);
        for range in [50..60, 0..30, 10..20, 30..31, 59..70, 90..91, 90..91] {
            live.add(extent(1), range);
        }
        live.add(extent(3), 0..1);
        let found = live.finish();
        assert_eq!(found.extents[&extent(1)], [0..31, 50..70, 90..91]);
        assert_eq!(found.extents[&extent(2)], []);
        assert_eq!((found.extents.len(), found.next), (2, None));
    }

    #[test]
    fn highest_extents_are_left_out_when_there_are_too_many_ranges() {
        let mut live = Live::new((0..10).map(extent), START, 20);
        for n in 0..10 {
            for id in 0..10 {
                live.add(extent(id), n * 10..n * 10 + 5);
            }
        }
        let found = live.finish();
        assert!((1..=2).contains(&found.extents.len()), "{found:?}");
        assert!(found.extents.contains_key(&extent(0)));
        assert!(found.extents.values().all(|ranges| ranges.len() == 10), "{found:?}");
        let taken = u64::try_from(found.extents.len()).unwrap();
        assert_eq!(found.next, Some(Place::start_of(extent(taken))));
    }

    #[test]
    fn more_extents_than_may_be_held_are_left_out() {
        let found = Live::new((0..10).map(extent), START, 4).finish();
        assert_eq!((found.extents.len(), found.next), (4, Some(Place::start_of(extent(4)))));
    }

    /// Ranges of one extent, met in a mixed order.
    fn mixed(live: &mut Live, count: u64) {
        for n in 0..count {
            let at = n * 37 % count * 10;
            live.add(extent(1), at..at + 5);
            assert!(live.held <= live.held_max, "{} ranges are held", live.held);
        }
    }

    #[test]
    fn one_extent_with_too_many_ranges_is_taken_in_parts() {
        let (mut from, mut parts, mut freed) = (Place::start_of(extent(1)), 0, 0);
        loop {
            let mut live = Live::new([extent(1), extent(2)], from, 16);
            mixed(&mut live, 1_000);
            let found = live.finish();
            let ranges = &found.extents[&extent(1)];
            assert!(ranges.len() <= 18, "{} ranges", ranges.len());
            let dead = ranges.windows(2).map(|pair| pair[1].start - pair[0].end);
            freed += dead.sum::<u64>();
            parts += 1;
            let Some(next) = found.next else { break };
            if next.extent == extent(2) {
                break;
            }
            assert!(next > from, "no progress");
            assert_eq!(next.offset % 10, 0, "not where a range begins");
            assert_eq!(ranges.last().unwrap().end, u64::MAX);
            from = next;
        }
        assert!(parts > 1_000 / 16);
        assert_eq!(freed, 999 * 5, "each gap in one of the parts");
    }
}
