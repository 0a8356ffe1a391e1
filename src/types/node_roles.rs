//! The roles of a node of a cluster.

use serde::{Deserialize, Serialize};

/// What a node does in its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRoles(u8);

impl NodeRoles {
    /// Serves clients.
    pub const FRONT: Self = Self(1);
    /// Serves partitions of the index.
    pub const INDEX: Self = Self(2);
    /// Has copies of extents.
    pub const CAPACITY: Self = Self(4);
    /// May lead the cluster.
    pub const MANAGER: Self = Self(8);
    /// All of these.
    pub const ALL: Self = Self(15);
    /// Those of a process that asks the index: what its requests need must not be freed.
    pub const ASKING: Self = Self::FRONT.with(Self::INDEX).with(Self::MANAGER);
    /// Those of a process that creates extents.
    pub const WRITING: Self = Self::FRONT.with(Self::INDEX);

    /// These roles and the others.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether all the others are among these. Bits that this release does not know are kept.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether some of the others are among these.
    #[must_use]
    pub const fn has_some(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_a_set() {
        let both = NodeRoles::INDEX.with(NodeRoles::MANAGER);
        assert!(both.has(NodeRoles::INDEX) && both.has(NodeRoles::default()));
        assert!(NodeRoles::ALL.has(both));
        assert!(!both.has(NodeRoles::FRONT) && !both.has(NodeRoles::ALL));
        assert!(both.has_some(NodeRoles::WRITING) && both.has_some(NodeRoles::ASKING));
        assert!(!NodeRoles::CAPACITY.has_some(NodeRoles::ASKING));
        assert!(!NodeRoles::MANAGER.has_some(NodeRoles::WRITING));
    }
}
