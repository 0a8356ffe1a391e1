//! The register of the requests of this process, for what reclaim must leave alone: bytes that they
//! may still read, have stored but not yet committed, or have looked up to name once more; and
//! changes that may still add rows to a deleted container.
//!
//! 1. `reads.rs`, `copies.rs`, `changes.rs` and here: a request notes what it does. That costs it a
//!    short lock and no message, so only the front end of the same process does it.
//! 2. `local.rs`: reclaim and backups ask through `RunningRequests`, as they ask other processes
//!    (`api/requests.rs`, ADR 0028).

mod changes;
mod copies;
mod local;
mod reads;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::types::ExtentId;

pub use changes::ChangeGuard;
pub use copies::CopyGuard;
pub use local::LocalRequests;
pub use reads::{LayerGuard, ReadGuard};

/// Running reads and writes of this process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    state: Arc<Mutex<State>>,
    /// Under a lock of their own: every Get Blob takes it.
    reads: Arc<Mutex<reads::Reads>>,
    changes: Arc<Mutex<changes::Changes>>,
}

#[derive(Debug, Default)]
struct State {
    writes: BTreeMap<ExtentId, u64>,
    /// Running copies; what they met, once they know.
    copies: BTreeMap<u64, Option<BTreeSet<ExtentId>>>,
    next_copy: u64,
    /// Running audits; what copies named since they began.
    watches: BTreeMap<u64, BTreeSet<ExtentId>>,
}

impl InFlight {
    /// Notes a write before its first byte goes to `extent`; until the guard is dropped, the audit
    /// leaves the extent alone.
    #[must_use]
    pub fn write(&self, extent: ExtentId) -> WriteGuard {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.writes.entry(extent).or_insert(0) += 1;
        WriteGuard { inflight: self.clone(), extent }
    }

    /// The extents that hold bytes of running writes.
    fn written(&self) -> BTreeSet<ExtentId> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.writes.keys().copied().collect()
    }
}

/// A running write into one extent.
#[derive(Debug)]
pub struct WriteGuard {
    inflight: InFlight,
    extent: ExtentId,
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
        let mut state = self.inflight.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = state.writes.get_mut(&self.extent) {
            *count -= 1;
            if *count == 0 {
                state.writes.remove(&self.extent);
            }
        }
    }
}
