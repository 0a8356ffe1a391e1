//! The answers to reclaim.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::ExtentId;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Something to free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GarbageRow {
    /// For [`Write::ForgetGarbage`](crate::index::api::Write::ForgetGarbage).
    pub key: Bytes,
    /// The time of the commit that made it garbage. Commits of a partition have growing times and
    /// become visible in their order.
    pub since: Timestamp,
    /// The locations to free.
    pub locations: Vec<Location>,
    /// The blob, when the row stands for a layer of its pages instead: forgetting it drops the next
    /// spans of the layer.
    pub layer: Option<RoutingKey>,
}

/// A blob with staged blocks or completed uploads, for expiry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedBlocks {
    /// The blob.
    pub key: RoutingKey,
    /// The last Put Block, or the first completion of an upload.
    pub last_staged: Timestamp,
}

/// Requests references of rows, page by page.
///
/// A blob may name more locations than fit into one answer: each snapshot of a long block list
/// names all of them again. The next answer then continues in the same blob *in the order of
/// locations*, not of rows. Between two answers locations move from row to row of the blob, and
/// could pass a place among the rows. A location in a row never changes, so its place among the
/// locations never does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReferences {
    /// Where to begin.
    pub from: ReferencePlace,
    /// Locations in other extents are left out.
    pub extents: RangeInclusive<ExtentId>,
    /// Routing keys that one answer is about, at most.
    pub blobs: usize,
    /// Locations in one answer, at most; at least one. Each takes 32 bytes, and about twice that
    /// while the answer is made.
    pub locations: usize,
}

impl ListReferences {
    /// All of them in one page: only for callers that know that there are few.
    #[must_use]
    pub fn all() -> Self {
        Self {
            from: ReferencePlace::default(),
            extents: ExtentId::new(0)..=ExtentId::new(u64::MAX),
            blobs: usize::MAX,
            locations: usize::MAX,
        }
    }
}

/// A place in a walk over references, ordered as the walk goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReferencePlace {
    /// The first row key; empty for the beginning.
    pub key: Bytes,
    /// In the blob with this routing key, the last location that was returned.
    pub after: Option<Location>,
}

impl ReferencePlace {
    /// Before all that rows from a position on refer to.
    #[must_use]
    pub fn at(key: Bytes) -> Self {
        Self { key, after: None }
    }
}

/// The locations that some rows name, for the audit: current, staged and garbage alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct References {
    /// Locations. Of one blob they are sorted, each once.
    pub locations: Vec<Location>,
    /// Where to go on; `None` at the end of the partition.
    pub next: Option<ReferencePlace>,
}

/// Garbage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GarbagePage {
    /// The rows.
    pub rows: Vec<GarbageRow>,
    /// Where to go on.
    pub next: Option<Bytes>,
}

/// A deleted container whose rows are not yet purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub container: ContainerId,
    /// When it was deleted.
    pub deleted: Timestamp,
}

/// Blobs of which something was softly deleted that can no longer be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedPage {
    /// The blobs.
    pub blobs: Vec<RoutingKey>,
    /// Where to go on.
    pub next: Option<Bytes>,
}

/// Blobs whose staged blocks or completed uploads have expired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiredPage {
    /// The blobs.
    pub blobs: Vec<StagedBlocks>,
    /// Where to go on.
    pub next: Option<Bytes>,
}
