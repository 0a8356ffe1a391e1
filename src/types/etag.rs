//! The Azure entity tag.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

/// An opaque tag that changes with every change of content, properties or metadata. It is the
/// commit time in ticks, unique per partition, written as `0x8DE...` as in Azure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Etag(u64);

impl Etag {
    /// The tag of a change committed at `time`.
    #[must_use]
    pub const fn from_commit(time: Timestamp) -> Self {
        Self(time.ticks())
    }

    /// Its bytes, big endian.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Parses a tag, quoted or not, in any case. `None` if this server cannot have returned it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        let hex = bare.strip_prefix("0x").or_else(|| bare.strip_prefix("0X"))?;
        u64::from_str_radix(hex, 16).ok().map(Self)
    }
}

impl fmt::Display for Etag {
    /// Without quotes; headers add them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:X}", self.0)
    }
}

#[cfg(test)]
mod tests;
