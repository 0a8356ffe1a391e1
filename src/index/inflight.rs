//! The register of running requests of this process. It shows what reclaim must not free: bytes
//! that a request may still read, has stored and not yet committed, or has looked up to name them
//! again. It also shows changes that may still add rows to a deleted container.
//!
//! 1. `reads.rs`, `copies.rs`, `changes.rs` and this file: a request makes notes. A note takes a
//!    short lock and sends no message, so only the front end of the same process makes notes.
//! 2. `local.rs`: reclaim and backups ask through `RunningRequests` (`api/requests.rs`, ADR 0028).
//! 3. In a cluster they ask all processes: `cluster.rs` asks, `service.rs` answers, `calls.rs` has
//!    the messages.

mod calls;
mod changes;
mod cluster;
mod copies;
mod local;
mod reads;
mod service;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::types::ExtentId;

pub use changes::ChangeNote;
pub use cluster::{ClusterRequests, Processes};
pub use copies::CopyNote;
pub use local::LocalRequests;
pub use reads::{LayerNote, ReadNote};
pub use service::{REQUESTS_SERVICE, RequestsService};

pub(in crate::index) use calls::decode_any;

/// Running reads and writes of this process; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    state: Arc<Mutex<State>>,
    /// Behind a lock of its own, because every Get Blob takes it.
    reads: Arc<Mutex<reads::Reads>>,
    changes: Arc<Mutex<changes::Changes>>,
}

#[derive(Debug, Default)]
struct State {
    writes: BTreeMap<ExtentId, u64>,
    /// Running copies, each with the extents that its look-up found, once it is answered.
    copies: BTreeMap<u64, Option<BTreeSet<ExtentId>>>,
    next_copy: u64,
    /// The watches of running audits, each with the extents that copies have named since it began.
    watches: BTreeMap<u64, BTreeSet<ExtentId>>,
}

impl InFlight {
    /// Notes a write before its first byte goes to `extent`. Until the note is dropped, the audit
    /// frees nothing in the extent.
    #[must_use]
    pub fn write(&self, extent: ExtentId) -> WriteNote {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.writes.entry(extent).or_insert(0) += 1;
        WriteNote { inflight: self.clone(), extent }
    }

    /// The extents that hold bytes of running writes.
    fn written(&self) -> BTreeSet<ExtentId> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.writes.keys().copied().collect()
    }
}

/// A running write into one extent.
#[derive(Debug)]
pub struct WriteNote {
    inflight: InFlight,
    extent: ExtentId,
}

impl WriteNote {
    /// A second note of the same extent, for another write in the same append.
    #[must_use]
    pub fn another(&self) -> Self {
        self.inflight.write(self.extent)
    }

    /// The noted extent.
    #[must_use]
    pub const fn extent(&self) -> ExtentId {
        self.extent
    }
}

impl Drop for WriteNote {
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
