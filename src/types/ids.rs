//! Ids. None is ever reused.

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
    /// The id of an account. An account that is created again gets a new id. Zero is the system.
    AccountId, "{}"
}
id! {
    /// The id of a container of one account. A container that is created again gets a new id, so it
    /// never sees old rows. Zero is the account's table of containers. Ids are counter values with
    /// reversed bits, so that containers spread over the key space and an initial partition map of
    /// N ranges is used evenly.
    ContainerId, "{}"
}
id! {
    /// The id of a partition of the index. The children of a split get new ids.
    PartitionId, "{}"
}
id! {
    /// The id of a node of a cluster. A node that is set up anew, with an empty directory, gets a
    /// new id.
    NodeId, "{}"
}
id! {
    /// An incarnation: one life of a node, from the opening of its session to its end. A node that
    /// has lost its session goes on under a new one. All writes and extents of a node carry it.
    Incarnation, "{}"
}
id! {
    /// The generation of a group of extents grows with every change of its members.
    Generation, "{}"
}
id! {
    /// The epoch of a partition grows with every change of its owner or range, that of an extent
    /// with every change of its writer. It fences earlier owners and writers.
    Epoch, "{}"
}
id! {
    /// The number of a commit within its partition. Starts at 1 and has no gaps.
    Sequence, "{}"
}
id! {
    /// The permanent id of an extent: the cluster that created it in the upper 16 bits, a counter
    /// below.
    ExtentId, "{:016x}"
}

/// The id of a host of partitions: the node whose process it is in, and its number there. Host zero
/// of a node always exists. The hosts of a node alone are those of node zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId {
    node: NodeId,
    number: u64,
}

impl HostId {
    /// A host of a node alone.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self::of(NodeId::new(0), number)
    }

    /// A host of a node of a cluster.
    #[must_use]
    pub const fn of(node: NodeId, number: u64) -> Self {
        Self { node, number }
    }

    /// The node; zero if it is alone.
    #[must_use]
    pub const fn node(self) -> NodeId {
        self.node
    }

    /// The number of the host in its process.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node.get() {
            0 => write!(f, "{}", self.number),
            node => write!(f, "{node}.{}", self.number),
        }
    }
}

impl Generation {
    /// The generation of a group whose members never changed.
    pub const FIRST: Self = Self(1);

    /// The next generation.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
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
