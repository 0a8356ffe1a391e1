//! Numbers that name things. None is ever reused.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number read from disk or issued by the coordinator.
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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    };
}

id! {
    /// An account, issued once; re-creating an account gives a new one. Zero is the system.
    AccountId, "{}"
}
id! {
    /// A container of one account, issued once: a re-created container never sees old rows. Zero is
    /// the account's table of containers. Issued as bit-reversed counter values, so that containers
    /// spread over the key space and an initial partition map of N ranges is used evenly.
    ContainerId, "{}"
}
id! {
    /// A partition of the index; a split gives its children new ids.
    PartitionId, "{}"
}
id! {
    /// A host of partitions: a thread of a process. Zero is there always.
    HostId, "{}"
}
id! {
    /// Grows with every change of a partition's owner or range, and of an extent's writer; fences
    /// the old one.
    Epoch, "{}"
}
id! {
    /// The order of commits within one partition; starts at 1, no gaps.
    Sequence, "{}"
}
id! {
    /// An append-only file with a permanent id: the birth cluster in the upper 16 bits, a counter
    /// below.
    ExtentId, "{:016x}"
}

impl Epoch {
    /// The next epoch.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Sequence {
    /// The sequence number `n` commits later.
    #[must_use]
    pub const fn plus(self, n: u64) -> Self {
        Self(self.0 + n)
    }
}

#[cfg(test)]
mod tests;
