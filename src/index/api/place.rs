//! Which keys a request is about, so that a partition can tell whether it is the right one.

use bytes::Bytes;

use crate::types::PartitionKeys;

/// Where in the key space a request belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To the owner of this key.
    Key(Bytes),
    /// To everyone who has keys from this position on: all stripes of a range.
    From(Bytes),
    /// To a partition as a whole, whatever its keys.
    Partition,
}

impl Place {
    /// Whether a partition with these keys is to answer.
    #[must_use]
    pub fn is_in(&self, keys: &PartitionKeys) -> bool {
        match self {
            Self::Key(key) => keys.contains(key),
            Self::From(position) => keys.range().contains(position),
            Self::Partition => true,
        }
    }

    /// The key or position, as a sample of where load is.
    #[must_use]
    pub fn sample(self) -> Option<Bytes> {
        match self {
            Self::Key(at) | Self::From(at) => Some(at),
            Self::Partition => None,
        }
    }
}
