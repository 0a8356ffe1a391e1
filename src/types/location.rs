//! Where bytes lie.

use serde::{Deserialize, Serialize};

use crate::types::ExtentId;

/// A run of payload bytes in one extent: one frame, or several contiguous ones when longer than a
/// frame.
///
/// Never an address: which disk or cluster holds the extent is looked up, so moving an extent
/// rewrites no row.
///
/// The order is that of the bytes, an extent after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The extent.
    pub extent: ExtentId,
    /// Logical offset of the first frame's first byte in the extent.
    pub offset: u64,
    /// Payload bytes, at least 1.
    pub len: u64,
    /// CRC-32C of the whole payload, taken at ingest.
    pub crc: u32,
}

/// Payload bytes of several locations together.
#[must_use]
pub fn locations_len(locations: &[Location]) -> u64 {
    locations.iter().map(|l| l.len).sum()
}

#[cfg(test)]
mod tests;
