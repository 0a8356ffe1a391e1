//! Memtables: the rows not yet in runs, in many versions, read without locks.

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

/// What a row costs beyond its bytes: two handles and a node of the skip list. Measured, roughly.
const ROW_OVERHEAD: usize = 160;
/// Versions that one call of [`Tables::collect`] looks at, at least: of a key that was written
/// thousands of times only one is wanted, and a new call seeks past the others.
const VERSIONS_MAX: usize = 256;

/// Bytes of memtables of all partitions of a host.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: AtomicUsize,
    freed: Notify,
    /// Since when somebody waits for room, nanoseconds of monotonic time and one; 0 when nobody
    /// does since the last was freed.
    full_since: AtomicU64,
    waiting: AtomicUsize,
}

/// One who waits for room, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    budget: &'a Budget,
    ahead: usize,
}

impl Waiter<'_> {
    /// How many waited when it came.
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
    /// Bytes held now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Notes one who waits for room.
    pub(crate) fn wait(&self) -> Waiter<'_> {
        Waiter { budget: self, ahead: self.waiting.fetch_add(1, Ordering::Relaxed) }
    }

    /// Forgets what is counted.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        self.used.store(0, Ordering::Relaxed);
    }

    /// Ends with the next memtable that goes, from the call on.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// For how long somebody has waited for room although none was freed; from the first call on.
    pub(crate) fn full_for(&self, now: Duration) -> Duration {
        let since = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).saturating_add(1);
        match self.full_since.compare_exchange(0, since, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Duration::ZERO,
            Err(first) => Duration::from_nanos(since.saturating_sub(first)),
        }
    }

    /// Has everybody who waits look again.
    pub(crate) fn ring(&self) {
        self.full_since.store(0, Ordering::Relaxed);
        self.freed.notify_waiters();
    }
}

fn cost(key: &Bytes, value: Option<&Bytes>) -> usize {
    ROW_OVERHEAD + key.len() + value.map_or(0, Bytes::len)
}

/// One version of a row's place: newer versions of a key sort first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    key: Bytes,
    sequence: Reverse<Sequence>,
}

/// A row or the tombstone of one.
pub(crate) type Item = (Bytes, Option<Bytes>);

/// The memtables of all families, filled together and flushed together.
pub(crate) struct Tables {
    families: [SkipMap<Version, Option<Bytes>>; Family::ALL.len()],
    bytes: AtomicUsize,
    budget: Arc<Budget>,
    /// Whether its bytes are in the budget.
    counted: AtomicBool,
}

impl Tables {
    /// Empty tables that count into `budget`.
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        let (bytes, counted) = (AtomicUsize::new(0), AtomicBool::new(true));
        Self { families: Default::default(), bytes, budget, counted }
    }

    /// Adds a version. Adding it again changes nothing (I14).
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

    /// Takes a version back that no reader could see yet.
    pub(crate) fn retract(&self, family: Family, key: Bytes, sequence: Sequence) {
        let version = Version { key, sequence: Reverse(sequence) };
        if let Some(entry) = self.family(family).remove(&version) {
            // Counted back, or refused writes would fill the budget for good.
            let bytes = cost(&version.key, entry.value().as_ref());
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            if self.is_counted() {
                self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
                self.budget.ring();
            }
        }
    }

    /// Takes its bytes out of the budget for good: nobody flushes it any more, and others' writes
    /// must not wait for that. Not while another task adds rows.
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

    /// How many families have rows.
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
    /// add nothing and still have more to read.
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
            From::At(key) => {
                Bound::Included(Version { key: key.clone(), sequence: Reverse(sequence) })
            }
            From::After(key) => {
                Bound::Excluded(Version { key: key.clone(), sequence: Reverse(Sequence::new(0)) })
            }
        };
        let mut last: Option<Bytes> = None;
        let (mut taken, mut seen) = (0, 0);
        for entry in self.family(family).range((start, Bound::Unbounded)) {
            let Version { key, sequence: Reverse(of) } = entry.key();
            if to.is_some_and(|to| key.as_ref() >= to) {
                return Collected { seen, resume: None };
            }
            let is_taken = last.as_ref() == Some(key);
            let is_passed = is_taken || *of > sequence;
            if seen == versions_max || taken == limit && !is_passed {
                // Both start behind all versions of the key that were passed.
                let key = key.clone();
                let resume = if is_taken { From::After(key) } else { From::At(key) };
                return Collected { seen, resume: Some(resume) };
            }
            seen += 1;
            if !is_passed {
                taken += 1;
                last = Some(key.clone());
                out.push_back((key.clone(), entry.value().clone()));
            }
        }
        Collected { seen, resume: None }
    }

    /// Versions of one family.
    pub(crate) fn len(&self, family: Family) -> usize {
        self.family(family).len()
    }

    /// Whether there is nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.families.iter().all(SkipMap::is_empty)
    }

    /// Memory held.
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
    /// Where it starts.
    pub(crate) from: &'a From,
    /// The first key that is not part of it; without one it has no end.
    pub(crate) to: Option<&'a [u8]>,
}

/// Which rows a call of [`Tables::collect`] takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Rows as of this commit.
    pub(crate) sequence: Sequence,
    /// At most so many.
    pub(crate) limit: usize,
}

/// What a call of [`Tables::collect`] did.
#[derive(Debug)]
pub(crate) struct Collected {
    /// Versions that it examined.
    pub(crate) seen: usize,
    /// Where the next call continues; `None` at the end.
    pub(crate) resume: Option<From>,
}

/// Where a walk over rows starts or goes on.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// At this key or the first above it.
    At(Bytes),
    /// Above this key.
    After(Bytes),
}
