//! Pages, and conversions between `usize` and `u64`.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::types::Crc32c;

/// The unit of space on disk, bytes: holes, batches and large frames start and end on its
/// multiples.
pub(crate) const PAGE: u64 = 4096;

static ZEROS: [u8; 4096] = [0; 4096];

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
