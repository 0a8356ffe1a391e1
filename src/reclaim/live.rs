//! The live ranges of extents under audit, within a bound of memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ops::RangeInclusive;

use crate::reclaim::cursor::Place;
use crate::types::ExtentId;

/// Ranges sorted before other tasks of the thread have their turn: some milliseconds of work.
const SORTED_IN_TURN: usize = 32_768;

/// Live logical ranges by extent, from one place to another. When they grow too many, what lies
/// highest is left to a later walk: extents, and the rest of an extent that is too much alone.
#[derive(Debug)]
pub(super) struct Live {
    extents: BTreeMap<ExtentId, Noted>,
    from: Place,
    /// What lies from here on is left to a later walk.
    until: Option<Place>,
    held: usize,
    held_max: usize,
}

/// Ranges of one extent.
#[derive(Debug, Default)]
struct Noted {
    ranges: Vec<Range<u64>>,
    /// The first so many are sorted and disjoint.
    merged: usize,
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
        let taken = rest.by_ref().take(held_max).map(|extent| (extent, Noted::default())).collect();
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
        if let Some(noted) = self.extents.get_mut(&extent) {
            let before = noted.ranges.len();
            noted.add(range);
            self.held = self.held - before + noted.ranges.len();
        }
    }

    /// Leaves what lies highest to a later walk if more ranges are held than may be. To be called
    /// before many more are added.
    pub(super) async fn keep_bound(&mut self) {
        if self.held > self.held_max {
            self.shrink().await;
        }
    }

    /// What the walk found.
    pub(super) async fn finish(mut self) -> Found {
        if self.from.offset > 0
            && let Some(noted) = self.extents.get_mut(&self.from.extent)
        {
            noted.add(0..self.from.offset);
        }
        if let Some(until) = self.until
            && let Some(noted) = self.extents.get_mut(&until.extent)
        {
            noted.add(until.offset..u64::MAX);
        }
        self.merge().await;
        let extents = self.extents.into_iter().map(|(extent, noted)| (extent, noted.ranges));
        Found { extents: extents.collect(), next: self.until }
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
    async fn shrink(&mut self) {
        self.merge().await;
        let keep = self.held_max / 2;
        while self.held > keep && self.extents.len() > 1 {
            if let Some((extent, noted)) = self.extents.pop_last() {
                self.held -= noted.ranges.len();
                self.until = Some(Place::start_of(extent));
            }
        }
        // One extent is too much: its first ranges are kept. The next walk goes on behind them.
        if let Some((extent, noted)) = self.extents.iter_mut().next()
            && let Some(cut) = noted.ranges.get(keep)
        {
            self.until = Some(Place { extent: *extent, offset: cut.start });
            noted.ranges.truncate(keep);
            noted.merged = keep;
            self.held = keep;
        }
    }

    async fn merge(&mut self) {
        let mut in_turn = 0;
        for noted in self.extents.values_mut() {
            in_turn += 1;
            if noted.merged < noted.ranges.len() {
                in_turn += noted.ranges.len();
                noted.merge();
            }
            if in_turn >= SORTED_IN_TURN {
                in_turn = 0;
                tokio::task::yield_now().await;
            }
        }
        self.held = self.extents.values().map(|noted| noted.ranges.len()).sum();
    }
}

impl Noted {
    fn add(&mut self, range: Range<u64>) {
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
        // A name may be noted many times. What is sorted at once stays in proportion to what the
        // extent can hold.
        if self.ranges.len() - self.merged >= self.merged.max(SORTED_IN_TURN) {
            self.merge();
        }
    }

    /// Sorts the ranges and joins those that touch or overlap.
    fn merge(&mut self) {
        self.ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.drain(..) {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged.shrink_to_fit();
        self.merged = merged.len();
        self.ranges = merged;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    const START: Place = Place { extent: ExtentId::new(0), offset: 0 };

    fn extent(id: u64) -> ExtentId {
        ExtentId::new(id)
    }

    #[tokio::test]
    async fn ranges_are_sorted_and_joined() {
        let mut live = Live::new([extent(1), extent(2)], START, 100);
        for range in [50..60, 0..30, 10..20, 30..31, 59..70, 90..91, 90..91] {
            live.add(extent(1), range);
        }
        live.add(extent(3), 0..1);
        let found = live.finish().await;
        assert_eq!(found.extents[&extent(1)], [0..31, 50..70, 90..91]);
        assert_eq!(found.extents[&extent(2)], []);
        assert_eq!((found.extents.len(), found.next), (2, None));
    }

    #[tokio::test]
    async fn highest_extents_are_left_out_when_there_are_too_many_ranges() {
        let mut live = Live::new((0..10).map(extent), START, 20);
        for n in 0..10 {
            for id in 0..10 {
                live.add(extent(id), n * 10..n * 10 + 5);
                live.keep_bound().await;
            }
        }
        let found = live.finish().await;
        assert!((1..=2).contains(&found.extents.len()), "{found:?}");
        assert!(found.extents.contains_key(&extent(0)));
        assert!(found.extents.values().all(|ranges| ranges.len() == 10), "{found:?}");
        let taken = u64::try_from(found.extents.len()).unwrap();
        assert_eq!(found.next, Some(Place::start_of(extent(taken))));
    }

    #[tokio::test]
    async fn more_extents_than_may_be_held_are_left_out() {
        let found = Live::new((0..10).map(extent), START, 4).finish().await;
        assert_eq!((found.extents.len(), found.next), (4, Some(Place::start_of(extent(4)))));
    }

    /// Ranges of one extent, met in a mixed order.
    async fn mixed(live: &mut Live, count: u64) {
        for n in 0..count {
            let at = n * 37 % count * 10;
            live.add(extent(1), at..at + 5);
            live.keep_bound().await;
            assert!(live.held <= live.held_max, "{} ranges are held", live.held);
        }
    }

    #[tokio::test]
    async fn one_extent_with_too_many_ranges_is_taken_in_parts() {
        let (mut from, mut parts, mut freed) = (Place::start_of(extent(1)), 0, 0);
        loop {
            let mut live = Live::new([extent(1), extent(2)], from, 16);
            mixed(&mut live, 1_000).await;
            let found = live.finish().await;
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

    #[test]
    fn names_noted_again_and_again_are_held_once() {
        let mut live = Live::new([extent(1)], START, usize::MAX);
        for n in 0..1_000_000 {
            let at = n * 7_919 % 1_000 * 10;
            live.add(extent(1), at..at + 5);
            assert!(live.held <= 1_000 + SORTED_IN_TURN, "{} ranges are held", live.held);
        }
    }

    #[tokio::test]
    async fn others_have_their_turn_while_many_ranges_are_sorted() {
        let mut live = Live::new((0..64).map(extent), START, usize::MAX);
        for n in 0..64 * 4_096 {
            live.add(extent(n % 64), n * 10..n * 10 + 5);
        }
        let finished = live.finish();
        tokio::pin!(finished);
        let mut turns = 0;
        let found = loop {
            match futures_util::poll!(&mut finished) {
                Poll::Ready(found) => break found,
                Poll::Pending => turns += 1,
            }
        };
        assert_eq!(turns, 8);
        assert_eq!(found.extents.values().map(Vec::len).sum::<usize>(), 64 * 4_096);
    }
}
