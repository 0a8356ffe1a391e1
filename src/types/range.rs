//! Byte ranges of a blob.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::Serialize;

/// A requested range: `bytes=first-` or `bytes=first-last`, both ends inclusive, `first <= last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(u64, Option<u64>)", into = "(u64, Option<u64>)")]
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

    /// The first requested byte.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The last requested byte; `None` for the end of the blob.
    #[must_use]
    pub const fn last(&self) -> Option<u64> {
        self.last
    }

    /// The half-open part of a blob of `len` bytes that this range covers; `None` if it starts
    /// beyond the end.
    #[must_use]
    pub fn within(&self, len: u64) -> Option<Range<u64>> {
        if self.first >= len {
            return None;
        }
        let end = self.last.map_or(len, |last| last.saturating_add(1).min(len));
        Some(self.first..end)
    }
}

impl TryFrom<(u64, Option<u64>)> for ByteRange {
    type Error = &'static str;

    fn try_from((first, last): (u64, Option<u64>)) -> Result<Self, Self::Error> {
        Self::new(first, last).ok_or("a range ends before it begins")
    }
}

impl From<ByteRange> for (u64, Option<u64>) {
    fn from(range: ByteRange) -> Self {
        (range.first, range.last)
    }
}

impl fmt::Display for ByteRange {
    /// The value of a `Range` header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(f, "bytes={}-{last}", self.first),
            None => write!(f, "bytes={}-", self.first),
        }
    }
}

#[cfg(test)]
mod tests;
