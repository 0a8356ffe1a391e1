//! The read marks of a partition's garbage rows: a row waits for the reads that began before a pass
//! first read it. The memory is bounded, however many rows wait.
//!
//! Garbage rows become visible in the order of their commit times: no row appears later with a time
//! below that of a visible row. So when a pass reads a row, all rows with earlier times are visible
//! too, and one mark covers them all. Most commits become visible in the order of their times. A
//! write that is evaluated ahead does not: it takes its time when its evaluation begins. The
//! partition hides rows with later times until that write is visible or has failed
//! (`index/engine/watches.rs`). The times order only the commits of one owner of the partition;
//! they are never compared with a clock.

use crate::index::RequestMark;
use crate::reclaim::error::Error;
use crate::reclaim::invariant::Invariant;
use crate::types::Timestamp;

/// Marks kept for one partition. When there are more, one is dropped, and its rows get the next
/// mark: they then wait also for some reads that began after the rows were read, but not for those
/// that began in the later half of the time since then.
const MARKS_MAX: usize = 64;

/// The rows of one owner of a partition.
#[derive(Debug, Default)]
pub(super) struct GarbageMarks {
    marks: Vec<Mark>,
    /// Number of marks taken so far.
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The highest time of a row that was read before the mark.
    latest: Timestamp,
    mark: RequestMark,
    number: u64,
}

impl GarbageMarks {
    /// Rows up to `latest` were read, then `mark` was taken. Returns whether any of them is new.
    ///
    /// # Errors
    /// [`Error::Invariant`] for a mark that is older than an earlier one: rows would be freed while
    /// reads need them (I10).
    pub(super) fn note(&mut self, latest: Timestamp, mark: RequestMark) -> Result<bool, Error> {
        let newest = self.marks.last();
        let is_later = newest.is_none_or(|newest| newest.mark.reads <= mark.reads);
        Invariant::NothingReferencedIsFreed
            .assert(is_later, || format!("{mark:?} was taken for garbage after {newest:?}"))?;
        if newest.is_some_and(|newest| newest.latest >= latest) {
            return Ok(false);
        }
        self.marks.push(Mark { latest, mark, number: self.count });
        self.count += 1;
        if self.marks.len() > MARKS_MAX {
            self.thin();
        }
        Ok(true)
    }

    /// Drops the mark whose neighbours are closest to it in age. The first stays, since the age of
    /// its rows is unknown.
    fn thin(&mut self) {
        let age = |mark: &Mark| self.count - mark.number;
        let ages: Vec<u64> = self.marks.iter().map(age).collect();
        let closeness = |at: &usize| {
            let (before, after) = (ages[at - 1], ages[at + 1]);
            before.saturating_mul(1 << 20) / after
        };
        if let Some(least) = (1..ages.len().saturating_sub(1)).min_by_key(closeness) {
            self.marks.remove(least);
        }
    }

    /// A mark that was taken after a row of this time was read.
    pub(super) fn mark(&self, since: Timestamp) -> Option<RequestMark> {
        let at = self.marks.partition_point(|mark| mark.latest < since);
        self.marks.get(at).map(|mark| mark.mark)
    }

    /// Drops the marks that no waiting row needs. `oldest` is the time of the oldest waiting row;
    /// `None` when no row waits.
    pub(super) fn forget_before(&mut self, oldest: Option<Timestamp>) {
        // The newest mark stays: it shows which rows were read.
        let end = self.marks.len().saturating_sub(1);
        let waits = |oldest| self.marks.partition_point(|mark| mark.latest < oldest);
        let at = oldest.map_or(end, waits);
        self.marks.drain(..at.min(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks that follow each other.
    fn marks(count: u64) -> Vec<RequestMark> {
        (0..count).map(|reads| RequestMark { reads, changes: 7, copies: 7 }).collect()
    }

    fn at(ticks: usize) -> Timestamp {
        Timestamp::from_ticks(ticks as u64)
    }

    #[test]
    fn row_has_the_first_mark_after_it_was_read() {
        let marks = marks(3);
        let mut found = GarbageMarks::default();
        assert_eq!(found.mark(at(1)), None);
        assert!(found.note(at(10), marks[0]).unwrap());
        assert!(found.note(at(20), marks[1]).unwrap());
        assert!(!found.note(at(20), marks[2]).unwrap() && !found.note(at(15), marks[2]).unwrap());
        assert_eq!((found.mark(at(0)), found.mark(at(10))), (Some(marks[0]), Some(marks[0])));
        assert_eq!((found.mark(at(11)), found.mark(at(20))), (Some(marks[1]), Some(marks[1])));
        assert_eq!(found.mark(at(21)), None, "not read yet");
    }

    #[test]
    fn mark_older_than_an_earlier_one_is_refused_by_i10() {
        let marks = marks(2);
        let mut found = GarbageMarks::default();
        assert!(found.note(at(10), marks[1]).unwrap());
        let refused = found.note(at(20), marks[0]).unwrap_err().to_string();
        assert!(refused.starts_with("invariant I10 does not hold: "), "{refused}");
        assert_eq!(found.mark(at(20)), None, "its rows are not freed");
    }

    #[test]
    fn few_marks_are_kept_and_none_is_too_early_or_much_too_late() {
        let marks = marks(10_000);
        let mut found = GarbageMarks::default();
        for (n, mark) in marks.iter().enumerate() {
            assert!(found.note(at(n), *mark).unwrap());
            assert!(found.marks.len() <= MARKS_MAX);
            assert_eq!(found.mark(at(n)), Some(*mark));
        }
        for (n, mark) in marks.iter().enumerate() {
            let given = found.mark(at(n)).unwrap().reads;
            let half = marks[n + (marks.len() - n) / 2].reads;
            assert!(given >= mark.reads && given <= half, "row {n}: {given}");
        }
    }

    #[test]
    fn marks_that_cover_no_waiting_row_are_forgotten() {
        let marks = marks(4);
        let filled = || {
            let mut found = GarbageMarks::default();
            for (n, mark) in marks.iter().enumerate() {
                assert!(found.note(at(n * 10), *mark).unwrap());
            }
            found
        };
        let mut found = filled();
        found.forget_before(Some(at(11)));
        assert_eq!(found.marks.len(), 2);
        assert_eq!(found.mark(at(11)), Some(marks[2]));
        let mut found = filled();
        found.forget_before(None);
        assert_eq!(found.marks.len(), 1);
        assert!(!found.note(at(30), marks[3]).unwrap(), "this row was read before");
    }
}
