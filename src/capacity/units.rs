//! Pages, and conversions between `usize` and `u64`.

#![deny(clippy::indexing_slicing)]

use std::ops::{Add, Sub};

use bytes::Bytes;

use crate::types::Crc32c;
use crate::types::ExtentOffset;

/// The unit of space on disk, bytes: holes, batches and large frames start and end on its
/// multiples.
pub(crate) const PAGE: u64 = 4096;

static ZEROS: [u8; 4096] = [0; 4096];

/// A position in a file: bytes from its start. Not a logical offset of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileOffset(u64);

impl FileOffset {
    /// The start of a file.
    pub(crate) const START: Self = Self(0);

    /// A position that was read from disk or computed from lengths.
    pub(crate) const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The bare number, for calls of the disk and for encoding.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

/// The position that is this many bytes later.
impl Add<u64> for FileOffset {
    type Output = Self;

    fn add(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

/// The bytes between two positions.
impl Sub for FileOffset {
    type Output = u64;

    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

/// The first page border at or after a logical offset.
pub(crate) const fn offset_up(offset: ExtentOffset) -> ExtentOffset {
    ExtentOffset::new(page_up(offset.get()))
}

/// The last page border at or before a logical offset.
pub(crate) const fn offset_down(offset: ExtentOffset) -> ExtentOffset {
    ExtentOffset::new(page_down(offset.get()))
}

/// The next multiple of a page, or `n` itself.
pub(crate) const fn page_up(n: u64) -> u64 {
    n.div_ceil(PAGE) * PAGE
}

/// The multiple of a page at or before `n`.
pub(crate) const fn page_down(n: u64) -> u64 {
    n / PAGE * PAGE
}

/// A length that was read from disk, as an index. The caller has checked it against a limit.
pub(crate) fn index(n: u64) -> usize {
    usize::try_from(n).expect("the program runs on 64-bit machines only")
}

/// A length in memory as a number on disk.
pub(crate) fn size(n: usize) -> u64 {
    u64::try_from(n).expect("the program runs on 64-bit machines only")
}

/// Zero bytes to fill a gap of at most a page.
pub(crate) fn zeros(len: u64) -> Bytes {
    Bytes::from_static(&ZEROS).slice(..index(len))
}

/// Reads a little-endian `u16`; `None` past the end.
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Reads a little-endian `u32`; `None` past the end.
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a checksum, little endian; `None` past the end.
pub(crate) fn get_crc(bytes: &[u8], at: usize) -> Option<Crc32c> {
    get_u32(bytes, at).map(Crc32c::new)
}

/// Reads a little-endian `u64`; `None` past the end.
pub(crate) fn get_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
