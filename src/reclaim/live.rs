//! The live ranges of extents under audit, within a bound of memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ops::RangeInclusive;

use crate::reclaim::cursor::Place;
use crate::reclaim::error::Error;
use crate::reclaim::invariant::Invariant;
use crate::types::ExtentId;

/// Ranges sorted between two yields to other tasks of the thread: some milliseconds of work.
const SORTED_IN_TURN: usize = 32_768;
/// Ranges checked between two yields.
const CHECKED_IN_TURN: usize = 1 << 20;

/// Live logical ranges by extent, from one place to another. When there are too many, the highest
/// are left to a later walk: whole extents, and the rest of an extent that has too many alone.
#[derive(Debug)]
pub(super) struct Live {
    extents: BTreeMap<ExtentId, Noted>,
    from: Place,
    /// Everything from here on is left to a later walk.
    until: Option<Place>,
    held: usize,
    held_max: usize,
}

/// Ranges of one extent.
#[derive(Debug, Default)]
struct Noted {
    ranges: Vec<Range<u64>>,
    /// How many ranges at the beginning are sorted and disjoint.
    merged: usize,
    /// All bytes that were added lie in this range. Kept apart from `ranges`, to check them.
    bounds: Option<Range<u64>>,
}

/// The result of a walk.
#[derive(Debug)]
pub(super) struct Found {
    /// Sorted, disjoint ranges of the extents that were kept to the end. Bytes before the first
    /// place and from `next` on count as live.
    pub(super) extents: BTreeMap<ExtentId, Vec<Range<u64>>>,
    /// Where the next walk continues; `None` when this one covered all extents.
    pub(super) next: Option<Place>,
}

impl Live {
    /// Nothing live yet in the first `held_max` of `extents`, with room for `held_max` ranges.
    /// Bytes of the first extent before `from` are ignored.
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

    /// The range that the audited extents lie in.
    pub(super) fn extents(&self) -> RangeInclusive<ExtentId> {
        let last = self.extents.last_key_value().map_or(self.from.extent, |(last, _)| *last);
        self.from.extent..=last
    }

    /// Adds live bytes. Bytes outside of the extents that this walk audits are ignored.
    pub(super) fn add(&mut self, extent: ExtentId, range: Range<u64>) {
        let range = self.clipped(extent, range);
        if range.is_empty() {
            return;
        }
        if let Some(noted) = self.extents.get_mut(&extent) {
            let before = noted.ranges.len();
            noted.add(range);
            self.held = self.held - before + noted.ranges.len();
        }
    }

    /// Leaves the highest ranges to a later walk if there are more than `held_max`. Call it before
    /// many more are added.
    pub(super) async fn keep_bound(&mut self) {
        if self.held > self.held_max {
            self.shrink().await;
        }
    }

    /// The result of the walk.
    ///
    /// # Errors
    /// [`Error::Invariant`]: bytes that a row names would be freed.
    pub(super) async fn finish(mut self) -> Result<Found, Error> {
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
        self.check().await?;
        let extents = self.extents.into_iter().map(|(extent, noted)| (extent, noted.ranges));
        Ok(Found { extents: extents.collect(), next: self.until })
    }

    /// Asserts I10: what lies between the ranges of an extent is named by no row.
    async fn check(&self) -> Result<(), Error> {
        let mut in_turn = 0;
        for (extent, noted) in &self.extents {
            Invariant::NothingReferencedIsFreed.assert(noted.is_sound(), || {
                format!("the live ranges of extent {extent} lack bytes that a row names")
            })?;
            in_turn += noted.ranges.len();
            if in_turn >= CHECKED_IN_TURN {
                in_turn = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    fn clipped(&self, extent: ExtentId, range: Range<u64>) -> Range<u64> {
        let start = if extent == self.from.extent { self.from.offset } else { 0 };
        let end = match self.until {
            Some(until) if until.extent == extent => until.offset,
            Some(_) | None => u64::MAX,
        };
        range.start.max(start)..range.end.min(end)
    }

    /// Keeps half of `held_max`, so that this is not repeated at every range.
    async fn shrink(&mut self) {
        self.merge().await;
        let keep = self.held_max / 2;
        while self.held > keep && self.extents.len() > 1 {
            if let Some((extent, noted)) = self.extents.pop_last() {
                self.held -= noted.ranges.len();
                self.until = Some(Place::start_of(extent));
            }
        }
        // One extent has too many alone: its first ranges are kept. The next walk continues behind
        // them.
        if let Some((extent, noted)) = self.extents.iter_mut().next()
            && let Some(first_left) = noted.ranges.get(keep)
        {
            self.until = Some(Place { extent: *extent, offset: first_left.start });
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
        let bounds = self.bounds.get_or_insert_with(|| range.clone());
        *bounds = bounds.start.min(range.start)..bounds.end.max(range.end);
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
        // A location may be added many times. Ranges are merged from time to time, so that their
        // number stays in proportion to the number of frames of the extent.
        if self.ranges.len() - self.merged >= self.merged.max(SORTED_IN_TURN) {
            self.merge();
        }
    }

    /// Whether the ranges are sorted and disjoint, and hold the lowest and the highest byte that
    /// was added. Call it after [`Self::merge`].
    fn is_sound(&self) -> bool {
        let is_sorted = self.ranges.is_sorted_by(|before, after| before.end < after.start);
        let found = self.ranges.first().zip(self.ranges.last());
        let found = found.map(|(first, last)| first.start..last.end);
        let has_all = self.bounds.as_ref().is_none_or(|bounds| {
            found.is_some_and(|found| found.start <= bounds.start && bounds.end <= found.end)
        });
        is_sorted && has_all
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
        let found = live.finish().await.unwrap();
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
        let found = live.finish().await.unwrap();
        assert!((1..=2).contains(&found.extents.len()), "{found:?}");
        assert!(found.extents.contains_key(&extent(0)));
        assert!(found.extents.values().all(|ranges| ranges.len() == 10), "{found:?}");
        let taken = u64::try_from(found.extents.len()).unwrap();
        assert_eq!(found.next, Some(Place::start_of(extent(taken))));
    }

    #[tokio::test]
    async fn more_extents_than_may_be_held_are_left_out() {
        let found = Live::new((0..10).map(extent), START, 4).finish().await.unwrap();
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
            let found = live.finish().await.unwrap();
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

    /// A walk over extent 1 whose ranges a bug changes before it ends.
    async fn finished_after(bug: impl FnOnce(&mut Vec<Range<u64>>)) -> Result<Found, Error> {
        let mut live = Live::new([extent(1)], START, 100);
        for start in [20, 0, 40] {
            live.add(extent(1), start..start + 10);
        }
        live.merge().await;
        bug(&mut live.extents.get_mut(&extent(1)).unwrap().ranges);
        live.finish().await
    }

    #[tokio::test]
    async fn ranges_that_lack_a_named_byte_are_refused_by_i10() {
        assert!(finished_after(|_| ()).await.is_ok());
        let bugs: [fn(&mut Vec<Range<u64>>); 5] = [
            |ranges| ranges.clear(),
            |ranges| ranges.drain(..1).for_each(|_| ()),
            |ranges| ranges.truncate(2),
            |ranges| ranges[2].end -= 1,
            |ranges| ranges.swap(0, 1),
        ];
        for (number, bug) in bugs.into_iter().enumerate() {
            let refused = finished_after(bug).await.unwrap_err().to_string();
            assert!(refused.starts_with("invariant I10 does not hold: "), "{number}: {refused}");
        }
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
                Poll::Ready(found) => break found.unwrap(),
                Poll::Pending => turns += 1,
            }
        };
        assert_eq!(turns, 8);
        assert_eq!(found.extents.values().map(Vec::len).sum::<usize>(), 64 * 4_096);
    }
}
