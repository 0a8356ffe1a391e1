//! What reclaim must leave alone: bytes that running requests may still read, have stored but not yet committed,
//! or have looked up to name once more.

mod copies;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::types::ExtentId;
use crate::types::Timestamp;

pub use copies::{CopyGuard, CopyWatch};

/// Running reads and writes of this process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    reads: BTreeMap<(Timestamp, u64), ()>,
    next_read: u64,
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

impl InFlight {
    /// Notes a read that looked up its locations no earlier than `now`; until the guard is dropped, nothing that became
    /// garbage after `now` is freed.
    #[must_use]
    pub fn read(&self, now: Timestamp) -> ReadGuard {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (now, state.next_read);
        state.next_read += 1;
        state.reads.insert(id, ());
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

    /// The start of the oldest running read.
    #[must_use]
    pub fn oldest_read(&self) -> Option<Timestamp> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.reads.keys().next().map(|(time, _)| *time)
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
    id: (Timestamp, u64),
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
