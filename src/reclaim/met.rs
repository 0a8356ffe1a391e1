//! When garbage rows of a partition were first met, in little memory however many wait.
//!
//! Garbage rows are shown in the order of their times: no row shows up later whose time is below
//! one that was shown before. So who meets a row may take it that all rows with earlier times are
//! visible too, and one mark covers them all. Commits mostly become visible in the order of their
//! times. A write that is evaluated ahead of its turn does not: it takes its time when its
//! evaluation begins. The partition withholds rows of later times until that write is visible or
//! given up (`index/engine/watches.rs`). These times only order commits of one owner of the
//! partition; they are compared with no clock.

use crate::index::inflight::ReadMark;
use crate::types::Timestamp;

/// Marks kept of one partition. When there are more, one is dropped, and its rows have the next:
/// they wait for some reads too that began after they were met, but not for those that began in the
/// later half of the time since then.
const MARKS_MAX: usize = 64;

/// Of one owner of a partition, by id and epoch.
#[derive(Debug, Default)]
pub(super) struct Met {
    marks: Vec<Mark>,
    /// Marks there have been.
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The highest time that was met before it.
    latest: Timestamp,
    mark: ReadMark,
    number: u64,
}

impl Met {
    /// Rows up to `latest` were met, then `mark` was taken. Whether any of them is new.
    pub(super) fn note(&mut self, latest: Timestamp, mark: ReadMark) -> bool {
        if self.marks.last().is_some_and(|last| last.latest >= latest) {
            return false;
        }
        self.marks.push(Mark { latest, mark, number: self.count });
        self.count += 1;
        if self.marks.len() > MARKS_MAX {
            self.thin();
        }
        true
    }

    /// Drops the mark that is missed least: before and after it stand marks of nearly the same age.
    /// The first stays, since how old its rows are is not known.
    fn thin(&mut self) {
        let age = |mark: &Mark| self.count - mark.number;
        let ages: Vec<u64> = self.marks.iter().map(age).collect();
        let missed = |at: &usize| {
            let (before, after) = (ages[at - 1], ages[at + 1]);
            before.saturating_mul(1 << 20) / after
        };
        if let Some(least) = (1..ages.len().saturating_sub(1)).min_by_key(missed) {
            self.marks.remove(least);
        }
    }

    /// A mark that was taken after a row of this time was met.
    pub(super) fn mark(&self, since: Timestamp) -> Option<ReadMark> {
        let at = self.marks.partition_point(|mark| mark.latest < since);
        self.marks.get(at).map(|mark| mark.mark)
    }

    /// No row from before `oldest` waits; none at all when there is none.
    pub(super) fn forget_before(&mut self, oldest: Option<Timestamp>) {
        // What is known to be met stays so: the newest mark is kept.
        let end = self.marks.len().saturating_sub(1);
        let waits = |oldest| self.marks.partition_point(|mark| mark.latest < oldest);
        let at = oldest.map_or(end, waits);
        self.marks.drain(..at.min(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::InFlight;

    /// Marks that follow each other.
    fn marks(inflight: &InFlight, count: usize) -> Vec<ReadMark> {
        let mark = |_| {
            drop(inflight.read(std::time::Duration::ZERO));
            inflight.read_mark()
        };
        (0..count).map(mark).collect()
    }

    fn at(ticks: usize) -> Timestamp {
        Timestamp::from_ticks(ticks as u64)
    }

    #[test]
    fn row_has_the_first_mark_after_it_was_met() {
        let marks = marks(&InFlight::default(), 3);
        let mut met = Met::default();
        assert_eq!(met.mark(at(1)), None);
        assert!(met.note(at(10), marks[0]));
        assert!(met.note(at(20), marks[1]));
        assert!(!met.note(at(20), marks[2]) && !met.note(at(15), marks[2]));
        assert_eq!((met.mark(at(0)), met.mark(at(10))), (Some(marks[0]), Some(marks[0])));
        assert_eq!((met.mark(at(11)), met.mark(at(20))), (Some(marks[1]), Some(marks[1])));
        assert_eq!(met.mark(at(21)), None, "not met yet");
    }

    #[test]
    fn few_marks_are_kept_and_none_is_too_early_or_much_too_late() {
        let marks = marks(&InFlight::default(), 10_000);
        let mut met = Met::default();
        for (n, mark) in marks.iter().enumerate() {
            assert!(met.note(at(n), *mark));
            assert!(met.marks.len() <= MARKS_MAX);
            assert_eq!(met.mark(at(n)), Some(*mark));
        }
        for (n, mark) in marks.iter().enumerate() {
            let given = met.mark(at(n)).unwrap();
            let half = marks[n + (marks.len() - n) / 2];
            assert!(given >= *mark && given <= half, "row {n}: {given:?}");
        }
    }

    #[test]
    fn marks_that_cover_no_waiting_row_are_forgotten() {
        let marks = marks(&InFlight::default(), 4);
        let filled = || {
            let mut met = Met::default();
            for (n, mark) in marks.iter().enumerate() {
                met.note(at(n * 10), *mark);
            }
            met
        };
        let mut met = filled();
        met.forget_before(Some(at(11)));
        assert_eq!(met.marks.len(), 2);
        assert_eq!(met.mark(at(11)), Some(marks[2]));
        let mut met = filled();
        met.forget_before(None);
        assert_eq!(met.marks.len(), 1);
        assert!(!met.note(at(30), marks[3]), "it is known that this was met");
    }
}
