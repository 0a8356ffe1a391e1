//! Byte ranges of a blob.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::Serialize;

/// A requested range (RFC 9110, 14.1.2). Both ends are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Ends", into = "Ends")]
pub struct ByteRange(Ends);

/// The form of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Ends {
    /// `bytes=first-` or `bytes=first-last`, `first <= last`.
    From(u64, Option<u64>),
    /// `bytes=-len`: the last `len` bytes.
    Suffix(u64),
}

impl ByteRange {
    /// `None` when `last < first`.
    #[must_use]
    pub fn new(first: u64, last: Option<u64>) -> Option<Self> {
        let is_empty = last.is_some_and(|last| last < first);
        if is_empty { None } else { Some(Self(Ends::From(first, last))) }
    }

    /// The last `len` bytes.
    #[must_use]
    pub const fn suffix(len: u64) -> Self {
        Self(Ends::Suffix(len))
    }

    /// The half-open part of a blob of `len` bytes that this range covers; `None` if it covers no
    /// byte of it.
    #[must_use]
    pub fn within(&self, len: u64) -> Option<Range<u64>> {
        let found = match self.0 {
            Ends::From(first, last) => {
                first..last.map_or(len, |last| last.saturating_add(1).min(len))
            }
            Ends::Suffix(suffix) => len.saturating_sub(suffix)..len,
        };
        if found.start < found.end { Some(found) } else { None }
    }

    /// The first and the last requested byte, as far as the request says; `None` for a suffix.
    #[must_use]
    pub const fn ends(&self) -> Option<(u64, Option<u64>)> {
        match self.0 {
            Ends::From(first, last) => Some((first, last)),
            Ends::Suffix(_) => None,
        }
    }
}

impl TryFrom<Ends> for ByteRange {
    type Error = &'static str;

    fn try_from(ends: Ends) -> Result<Self, Self::Error> {
        match ends {
            Ends::From(first, last) => {
                Self::new(first, last).ok_or("a range ends before it begins")
            }
            Ends::Suffix(len) => Ok(Self::suffix(len)),
        }
    }
}

impl From<ByteRange> for Ends {
    fn from(range: ByteRange) -> Self {
        range.0
    }
}

impl fmt::Display for ByteRange {
    /// The value of a `Range` header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ends::From(first, Some(last)) => write!(f, "bytes={first}-{last}"),
            Ends::From(first, None) => write!(f, "bytes={first}-"),
            Ends::Suffix(len) => write!(f, "bytes=-{len}"),
        }
    }
}

#[cfg(test)]
mod tests;
