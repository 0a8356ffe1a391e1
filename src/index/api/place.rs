//! The keys that a request is about. A partition checks whether it owns them.

use bytes::Bytes;

use crate::types::PartitionKeys;

/// Where in the key space a request belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To the owner of this key.
    Key(Bytes),
    /// To the partition whose range contains this position, or to all stripes of that range.
    From(Bytes),
    /// To a partition as a whole, whatever its keys.
    Partition,
}

impl Place {
    /// Whether a partition with these keys answers the request.
    #[must_use]
    pub fn is_in(&self, keys: &PartitionKeys) -> bool {
        match self {
            Self::Key(key) => keys.contains(key),
            Self::From(position) => keys.range().contains(position),
            Self::Partition => true,
        }
    }

    /// The key or position, as a sample of the load.
    #[must_use]
    pub fn sample(self) -> Option<Bytes> {
        match self {
            Self::Key(at) | Self::From(at) => Some(at),
            Self::Partition => None,
        }
    }
}
