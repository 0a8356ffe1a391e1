//! The manifest: everything durable about a partition that is not in the log's rows. Layout:
//! `api-spec/log-record.md`.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::index::engine::log::record;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::Location;
use crate::types::PartitionId;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Where the log's previous extent ends: whatever lies behind was never acknowledged and is not
/// replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    /// The extent before this one.
    pub(crate) extent: ExtentId,
    /// The offset after its last record.
    pub(crate) end: u64,
}

/// A sorted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunEntry {
    /// Number of its family.
    pub(crate) family: u8,
    /// Its footer; the run is the whole extent.
    pub(crate) footer: Location,
    /// Rows, tombstones included.
    pub(crate) rows: u64,
    /// Encoded bytes, the measure of compaction.
    pub(crate) bytes: u64,
}

/// A partition's state at one point of its log. The newest one counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The partition, so that a log is never read as another's.
    pub(crate) partition: PartitionId,
    /// The owner's epoch when it was written.
    pub(crate) epoch: Epoch,
    /// Set in the first record of an extent, when the log has an extent before it.
    pub(crate) previous: Option<Link>,
    /// Commits up to here are in the runs; replay starts after it.
    pub(crate) flushed: Sequence,
    /// The highest time given to a commit so far.
    pub(crate) time: Timestamp,
    /// The runs, within a family newest first.
    pub(crate) runs: Vec<RunEntry>,
}

impl Manifest {
    /// The manifest as a log record; `None` when it is too large to be one.
    pub(crate) fn encode(&self) -> Option<Bytes> {
        record::encode(record::Kind::Manifest, &postcard::to_stdvec(self).ok()?)
    }

    /// Reads a manifest body; `None` when it is malformed.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes(body) {
            Ok((manifest, [])) => Some(manifest),
            Ok(_) | Err(_) => None,
        }
    }
}
