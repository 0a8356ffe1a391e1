//! The manifest: the durable state of a partition beside the rows in its log. Layout:
//! `api-spec/log-record.md`.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::index::engine::answers::Answers;
use crate::index::engine::log::record;
use crate::index::engine::log::record::Kind;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::Location;
use crate::types::PartitionId;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Where the previous extent of the log ends. Bytes after that were never acknowledged and are not
/// replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    /// The extent before this one.
    pub(crate) extent: ExtentId,
    /// The offset after its last valid record.
    pub(crate) end: u64,
}

/// A sorted run of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunEntry {
    /// Number of its family.
    pub(crate) family: u8,
    /// The location of its footer. The run is the whole extent.
    pub(crate) footer: Location,
    /// Rows, tombstones included.
    pub(crate) rows: u64,
    /// Encoded bytes. Compaction chooses runs by this size.
    pub(crate) bytes: u64,
}

/// The state of a partition at one point of its log. The newest manifest is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The partition. A reader checks it, so that a log is never read as that of another partition.
    pub(crate) partition: PartitionId,
    /// The owner's epoch when it was written.
    pub(crate) epoch: Epoch,
    /// Set in the first record of an extent, when the log has an extent before it.
    pub(crate) previous: Option<Link>,
    /// Commits up to this one are in the runs. Replay starts after it.
    pub(crate) flushed: Sequence,
    /// The highest time given to a commit so far.
    pub(crate) time: Timestamp,
    /// The runs. Those of one family are ordered newest first.
    pub(crate) runs: Vec<RunEntry>,
    /// The answers to writes that may be sent again, of all commits before it in the log. It is a
    /// second part of the record, which is left out if there are none.
    #[serde(skip)]
    pub(crate) answers: Answers,
}

impl Manifest {
    /// Encodes the manifest as a log record; `None` if it is too large for one.
    pub(crate) fn encode(&self) -> Option<Bytes> {
        let body = postcard::to_stdvec(self).ok()?;
        if self.answers.is_empty() {
            return record::encode(Kind::Manifest, &body);
        }
        let body = postcard::to_extend(&self.answers, body).ok()?;
        record::encode(Kind::AnsweredManifest, &body)
    }

    /// Decodes the body of a manifest record; `None` if it is malformed.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes(body) {
            Ok((manifest, [])) => Some(manifest),
            Ok(_) | Err(_) => None,
        }
    }

    /// Decodes the body of a manifest record with answers; `None` if it is malformed.
    pub(crate) fn decode_answered(body: &[u8]) -> Option<Self> {
        let (manifest, rest) = postcard::take_from_bytes::<Self>(body).ok()?;
        match postcard::take_from_bytes(rest) {
            Ok((answers, [])) => Some(Self { answers, ..manifest }),
            Ok(_) | Err(_) => None,
        }
    }
}
