//! Locations of payload in extents.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::types::Crc32c;
use crate::types::ExtentId;

/// A logical offset in an extent: the bytes of frames before it. It never changes, even if frames
/// are freed or the file is compacted. It is not a position in a file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ExtentOffset(u64);

impl ExtentOffset {
    /// Where an extent begins.
    pub const START: Self = Self(0);

    /// An offset that was read from disk or computed from lengths of frames.
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

/// The offset that is this many bytes later.
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

/// Contiguous payload in one extent: one frame, or several contiguous frames if it is longer than a
/// frame.
///
/// A location is not an address. The disk or cluster that holds the extent is looked up, so moving
/// an extent rewrites no row.
///
/// Locations are ordered by extent, then by offset.
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

/// The sum of the payload bytes of several locations.
#[must_use]
pub fn locations_len(locations: &[Location]) -> u64 {
    locations.iter().map(|location| location.len).sum::<ByteLen>().get()
}

#[cfg(test)]
mod tests;
