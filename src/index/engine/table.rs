//! Memtables: the rows that are not in runs yet, in several versions. They are read without locks.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::index::invariant::{Invariant, Violation};
use crate::index::rows::Family;
use crate::types::Sequence;

/// Bytes of memory that a row takes beside key and value: two handles and a node of the skip list.
/// A rough measurement.
const ROW_OVERHEAD: usize = 160;
/// One call of [`Tables::collect`] examines at most `limit` versions, or this many if that is more.
/// Of a key that was written thousands of times only one version is wanted, and the next call seeks
/// past the others.
const VERSIONS_MAX: usize = 256;

/// The memory budget of the memtables of all partitions of a host.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: AtomicUsize,
    freed: Notify,
    /// Since when a write has waited for room: nanoseconds of monotonic time, plus one. 0 if no
    /// write has waited since memory was last freed.
    full_since: AtomicU64,
    waiting: AtomicUsize,
}

/// A write that waits for room. It is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    budget: &'a Budget,
    ahead: usize,
}

impl Waiter<'_> {
    /// The number of writes that waited when this one came.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.budget.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Budget {
    /// Bytes of memtables now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts a write that waits for room.
    pub(crate) fn wait(&self) -> Waiter<'_> {
        Waiter { budget: self, ahead: self.waiting.fetch_add(1, Ordering::Relaxed) }
    }

    /// Forgets what is counted.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        self.used.store(0, Ordering::Relaxed);
    }

    /// A future that ends when memory is freed after this call.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// How long writes have waited for room since memory was last freed. The first call after that
    /// starts the time.
    pub(crate) fn full_for(&self, now: Duration) -> Duration {
        let since = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).saturating_add(1);
        match self.full_since.compare_exchange(0, since, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Duration::ZERO,
            Err(first) => Duration::from_nanos(since.saturating_sub(first)),
        }
    }

    /// Notes that memory was freed, and wakes all waiting writes.
    pub(crate) fn ring(&self) {
        self.full_since.store(0, Ordering::Relaxed);
        self.freed.notify_waiters();
    }
}

fn cost(key: &Bytes, value: Option<&Bytes>) -> usize {
    ROW_OVERHEAD + key.len() + value.map_or(0, Bytes::len)
}

/// A version of a row. Newer versions of a key sort first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    key: Bytes,
    sequence: Reverse<Sequence>,
}

/// A key, and its value or, as `None`, its tombstone.
pub(crate) type Item = (Bytes, Option<Bytes>);

/// The memtables of all families. They are filled and flushed together.
pub(crate) struct Tables {
    families: [SkipMap<Version, Option<Bytes>>; Family::ALL.len()],
    bytes: AtomicUsize,
    budget: Arc<Budget>,
    /// Whether its bytes count in the budget.
    counted: AtomicBool,
}

impl Tables {
    /// Empty tables that count into `budget`.
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        let (bytes, counted) = (AtomicUsize::new(0), AtomicBool::new(true));
        Self { families: Default::default(), bytes, budget, counted }
    }

    /// Adds a version of a row. Adding the same version again changes no row (I14).
    pub(crate) fn insert(
        &self,
        family: Family,
        key: Bytes,
        sequence: Sequence,
        value: Option<Bytes>,
    ) {
        let bytes = cost(&key, value.as_ref());
        self.family(family).insert(Version { key, sequence: Reverse(sequence) }, value);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.is_counted() {
            self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Removes a version that no reader could see yet.
    pub(crate) fn retract(&self, family: Family, key: Bytes, sequence: Sequence) {
        let version = Version { key, sequence: Reverse(sequence) };
        if let Some(entry) = self.family(family).remove(&version) {
            // Without this, refused writes would fill the budget permanently.
            let bytes = cost(&version.key, entry.value().as_ref());
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            if self.is_counted() {
                self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
                self.budget.ring();
            }
        }
    }

    /// Removes its bytes from the budget permanently. Call it if these memtables will not be
    /// flushed: writes of other partitions must not wait for that. No other task may add rows
    /// meanwhile.
    pub(crate) fn uncount(&self) {
        if self.counted.swap(false, Ordering::Relaxed) {
            self.budget.used.fetch_sub(self.bytes(), Ordering::Release);
            self.budget.ring();
        }
    }

    /// # Errors
    /// [`Invariant::Bounded`] unless the budget has at least the bytes of these tables: with fewer
    /// in it than memory holds, writes would be let in without limit (I16).
    pub(crate) fn check_counted(&self) -> Result<(), Violation> {
        let bytes = self.bytes();
        let used = self.budget.used.load(Ordering::Acquire);
        // Read last: tables that were just uncounted are seen as such.
        Invariant::Bounded.assert(used >= bytes || !self.is_counted(), || {
            format!("memtables of {bytes} bytes are in a budget of {used}")
        })
    }

    fn is_counted(&self) -> bool {
        self.counted.load(Ordering::Relaxed)
    }

    /// The number of families that have rows.
    pub(crate) fn families(&self) -> usize {
        self.families.iter().filter(|rows| !rows.is_empty()).count()
    }

    /// The newest version of a key at or below `sequence`; the inner `None` is a tombstone.
    pub(crate) fn get(
        &self,
        family: Family,
        key: &Bytes,
        sequence: Sequence,
    ) -> Option<Option<Bytes>> {
        let rows = self.family(family);
        if rows.is_empty() {
            return None;
        }
        let newest = Version { key: key.clone(), sequence: Reverse(sequence) };
        let entry = rows.lower_bound(Bound::Included(&newest))?;
        (entry.key().key == *key).then(|| entry.value().clone())
    }

    /// Adds the next rows of an interval to `out`, one version each, tombstones included. It may
    /// add no row although there are more: [`Collected::resume`] says where to continue.
    pub(crate) fn collect(
        &self,
        family: Family,
        interval: Interval<'_>,
        page: Page,
        out: &mut VecDeque<Item>,
    ) -> Collected {
        let Interval { from, to } = interval;
        let Page { sequence, limit } = page;
        let versions_max = limit.max(VERSIONS_MAX);
        let start = match from {
            ScanStart::At(key) => {
                Bound::Included(Version { key: key.clone(), sequence: Reverse(sequence) })
            }
            ScanStart::After(key) => {
                Bound::Excluded(Version { key: key.clone(), sequence: Reverse(Sequence::new(0)) })
            }
        };
        let (mut taken, mut seen) = (0, 0);
        for entry in self.family(family).range((start, Bound::Unbounded)) {
            let Version { key, sequence: Reverse(of) } = entry.key();
            if to.is_some_and(|to| key.as_ref() >= to) {
                return Collected { seen, resume: None };
            }
            let is_taken = taken > 0 && out.back().is_some_and(|(last, _)| last == key);
            let is_passed = is_taken || *of > sequence;
            if seen == versions_max || taken == limit && !is_passed {
                // Both positions are after all versions of the key that were examined.
                let key = key.clone();
                let resume = if is_taken { ScanStart::After(key) } else { ScanStart::At(key) };
                return Collected { seen, resume: Some(resume) };
            }
            seen += 1;
            if !is_passed {
                taken += 1;
                out.push_back((key.clone(), entry.value().clone()));
            }
        }
        Collected { seen, resume: None }
    }

    /// The number of versions in one family.
    pub(crate) fn len(&self, family: Family) -> usize {
        self.family(family).len()
    }

    /// Whether no family has rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.families.iter().all(SkipMap::is_empty)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn family(&self, family: Family) -> &SkipMap<Version, Option<Bytes>> {
        self.families.get(usize::from(family as u8)).expect("one table for each family")
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.uncount();
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// The keys of a walk over rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval<'a> {
    /// The start.
    pub(crate) from: &'a ScanStart,
    /// The first key after the interval; `None` if the interval has no end.
    pub(crate) to: Option<&'a [u8]>,
}

/// Which rows a call of [`Tables::collect`] takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Rows as of this commit.
    pub(crate) sequence: Sequence,
    /// The most rows.
    pub(crate) limit: usize,
}

/// The result of [`Tables::collect`].
#[derive(Debug)]
pub(crate) struct Collected {
    /// Versions that it examined.
    pub(crate) seen: usize,
    /// Where the next call continues; `None` at the end.
    pub(crate) resume: Option<ScanStart>,
}

/// Where a walk over rows starts or continues.
#[derive(Clone, Debug)]
pub(crate) enum ScanStart {
    /// At this key or the first above it.
    At(Bytes),
    /// Above this key.
    After(Bytes),
}
