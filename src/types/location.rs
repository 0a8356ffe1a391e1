//! Where bytes lie.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::types::Crc32c;
use crate::types::ExtentId;

/// A logical offset in an extent: bytes of frames before it. It never changes, whatever is freed
/// or compacted. Not an offset in a file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ExtentOffset(u64);

impl ExtentOffset {
    /// Where an extent begins.
    pub const START: Self = Self(0);

    /// Wraps a number read from disk or computed from frame lengths.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The bare number, for encoding.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ExtentOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The offset so many bytes later.
impl Add<u64> for ExtentOffset {
    type Output = Self;

    fn add(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

/// The bytes between two offsets.
impl Sub for ExtentOffset {
    type Output = u64;

    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

/// A length in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ByteLen(u64);

impl ByteLen {
    /// Wraps a number of bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add for ByteLen {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sum for ByteLen {
    fn sum<I: Iterator<Item = Self>>(lens: I) -> Self {
        lens.fold(Self::default(), Add::add)
    }
}

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
    pub offset: ExtentOffset,
    /// Payload bytes, at least 1.
    pub len: ByteLen,
    /// Checksum of the whole payload, taken at ingest.
    pub crc: Crc32c,
}

/// Payload bytes of several locations together.
#[must_use]
pub fn locations_len(locations: &[Location]) -> u64 {
    locations.iter().map(|location| location.len).sum::<ByteLen>().get()
}

#[cfg(test)]
mod tests;
