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
    /// When it became garbage.
    pub since: Timestamp,
    /// What to free.
    pub locations: Vec<Location>,
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
