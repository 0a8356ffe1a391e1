//! What reclaim is told.

use std::fmt::Debug;

use bytes::Bytes;

use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Something to free.
#[derive(Clone, Debug)]
pub struct GarbageRow {
    /// For [`Write::ForgetGarbage`].
    pub key: Bytes,
    /// The time of the commit that made it garbage. Commits of a partition have growing times and
    /// become visible in their order.
    pub since: Timestamp,
    /// What to free.
    pub locations: Vec<Location>,
    /// The blob, when the row stands for a layer of its pages instead: forgetting it drops the next
    /// spans of the layer.
    pub layer: Option<RoutingKey>,
}

/// A blob with staged blocks, for expiry.
#[derive(Clone, Debug)]
pub struct StagedBlocks {
    /// The blob.
    pub key: RoutingKey,
    /// The last Put Block.
    pub last_staged: Timestamp,
}

/// Everything some rows refer to, for the audit: current, staged and garbage alike.
#[derive(Clone, Debug)]
pub struct References {
    /// Locations.
    pub locations: Vec<Location>,
    /// Where to go on; `None` at the end of the partition.
    pub next: Option<Bytes>,
}
