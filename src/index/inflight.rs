//! What reclaim must leave alone: bytes that running requests may still read, have stored but not yet committed,
//! or have looked up to name once more.

mod copies;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::types::ExtentId;
use crate::types::Timestamp;

pub use copies::{CopyGuard, CopyWatch};

/// Running reads and writes of this process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Running reads, by number, and when each began.
    reads: BTreeMap<u64, Timestamp>,
    next_read: u64,
    /// The latest time that was shown.
    latest: Option<Timestamp>,
    writes: BTreeMap<ExtentId, u64>,
    /// The same by when they began.
    begun: BTreeSet<u64>,
    next_write: u64,
    /// Running copies; what they met, once they know.
    copies: BTreeMap<u64, Option<BTreeSet<ExtentId>>>,
    next_copy: u64,
    /// Running audits; what copies named since they began.
    watches: BTreeMap<u64, BTreeSet<ExtentId>>,
}

/// What the clock may be set back by without being noticed here: threads tell its time in another order than they read it.
const UNNOTICED: Duration = Duration::from_millis(500);

impl State {
    /// Notes what the clock shows. When it was set back, what became garbage since a read began may have an earlier time than
    /// the read: it then counts as having run for ever.
    fn note(&mut self, now: Timestamp) {
        if self.latest.is_some_and(|latest| now.plus(UNNOTICED) < latest) {
            self.reads.values_mut().for_each(|began| *began = Timestamp::ZERO);
            self.latest = None;
        }
        self.latest = self.latest.max(Some(now));
    }
}

impl InFlight {
    /// Notes a read that looked up its locations no earlier than `now`; until the guard is dropped, nothing that became
    /// garbage after `now` is freed.
    #[must_use]
    pub fn read(&self, now: Timestamp) -> ReadGuard {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.note(now);
        let id = state.next_read;
        state.next_read += 1;
        state.reads.insert(id, now);
        ReadGuard { inflight: self.clone(), id }
    }

    /// Notes a write before its first byte goes to `extent`; until the guard is dropped, the audit leaves the extent
    /// alone.
    #[must_use]
    pub fn write(&self, extent: ExtentId) -> WriteGuard {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state.writes.entry(extent).or_insert(0) += 1;
        let id = state.next_write;
        state.next_write += 1;
        state.begun.insert(id);
        WriteGuard { inflight: self.clone(), extent, id }
    }

    /// A mark between the writes noted before now and those after.
    #[must_use]
    pub fn write_mark(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next_write
    }

    /// Whether a write noted before `mark` still runs.
    #[must_use]
    pub fn is_writing(&self, mark: u64) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.begun.first().is_some_and(|oldest| *oldest < mark)
    }

    /// The start of the oldest running read, or a little earlier: nothing that became garbage since it began has an earlier time.
    #[must_use]
    pub fn oldest_read(&self, now: Timestamp) -> Option<Timestamp> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.note(now);
        let oldest = state.reads.values().min()?;
        Some(oldest.minus(UNNOTICED).unwrap_or(Timestamp::ZERO))
    }

    /// Whether an extent holds bytes of a running write.
    #[must_use]
    pub fn is_written(&self, extent: ExtentId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).writes.contains_key(&extent)
    }
}

/// A running read.
#[derive(Debug)]
pub struct ReadGuard {
    inflight: InFlight,
    id: u64,
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        self.inflight.0.lock().unwrap_or_else(PoisonError::into_inner).reads.remove(&self.id);
    }
}

/// A running write into one extent.
#[derive(Debug)]
pub struct WriteGuard {
    inflight: InFlight,
    extent: ExtentId,
    id: u64,
}

impl WriteGuard {
    /// A second guard of the same extent, for another write in the same append.
    #[must_use]
    pub fn another(&self) -> Self {
        self.inflight.write(self.extent)
    }

    /// The guarded extent.
    #[must_use]
    pub const fn extent(&self) -> ExtentId {
        self.extent
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        let mut state = self.inflight.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.begun.remove(&self.id);
        if let Some(count) = state.writes.get_mut(&self.extent) {
            *count -= 1;
            if *count == 0 {
                state.writes.remove(&self.extent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Timestamp {
        Timestamp::from_unix(Duration::from_millis(milliseconds))
    }

    #[test]
    fn oldest_read_is_the_one_that_began_first_of_those_that_run() {
        let inflight = InFlight::default();
        assert_eq!(inflight.oldest_read(at(9_000)), None);
        let first = inflight.read(at(10_000));
        let second = inflight.read(at(12_000));
        let is_from = |began| {
            let oldest = inflight.oldest_read(at(13_000)).unwrap();
            assert!(oldest <= at(began) && oldest.plus(UNNOTICED) >= at(began), "{oldest:?}");
        };
        is_from(10_000);
        drop(first);
        is_from(12_000);
        drop(second);
        assert_eq!(inflight.oldest_read(at(13_000)), None);
    }

    /// What was deleted just after the clock was set back seems to have been before the read began.
    #[test]
    fn read_that_began_before_the_clock_was_set_back_is_older_than_all_garbage() {
        for (back, told_by_another) in [(400, false), (400, true), (60_000, false), (60_000, true)]
        {
            let inflight = InFlight::default();
            let _read = inflight.read(at(100_000));
            let deleted = at(100_010 - back);
            if told_by_another {
                drop(inflight.read(at(100_020 - back)));
            }
            let oldest = inflight.oldest_read(at(100_020 - back)).unwrap();
            assert!(deleted >= oldest, "it must not be freed: {back}");
        }
        // Those that begin afterwards hold up nothing of before.
        let inflight = InFlight::default();
        let read = inflight.read(at(100_000));
        let later = inflight.read(at(50_000));
        drop(read);
        assert!(inflight.oldest_read(at(51_000)).unwrap() > at(49_000));
        drop(later);
    }
}
