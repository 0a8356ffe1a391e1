//! Byte ranges of a blob.

use std::ops::Range;

/// A range as asked for: `bytes=first-` or `bytes=first-last`, both ends inclusive, `first <= last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    first: u64,
    last: Option<u64>,
}

impl ByteRange {
    /// `None` when `last < first`.
    #[must_use]
    pub fn new(first: u64, last: Option<u64>) -> Option<Self> {
        if last.is_some_and(|last| last < first) { None } else { Some(Self { first, last }) }
    }

    /// The half-open part of a blob of `len` bytes that this range covers; `None` when it starts past the end.
    #[must_use]
    pub fn within(&self, len: u64) -> Option<Range<u64>> {
        if self.first >= len {
            return None;
        }
        let end = self.last.map_or(len, |last| last.saturating_add(1).min(len));
        Some(self.first..end)
    }
}

#[cfg(test)]
mod tests;
