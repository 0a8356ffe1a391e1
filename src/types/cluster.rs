//! The number of a cluster, which the ids that it issues carry.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::types::ExtentId;

/// Bits of an id below the number of its cluster.
const COUNTER_BITS: u32 = 48;

/// The number of a cluster: the upper 16 bits of all ids that its counters issue. So no two
/// clusters issue the same id. A store that was made alone has number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterNumber(u16);

impl ClusterNumber {
    /// The number of a store that was made alone.
    pub const ALONE: Self = Self(0);

    /// Wraps a number that was drawn or given when the cluster was made.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The cluster that issued an id. Ids of containers count before their bits are reversed.
    #[must_use]
    pub const fn of(id: u64) -> Self {
        let [upper, lower, ..] = id.to_be_bytes();
        Self(u16::from_be_bytes([upper, lower]))
    }

    /// The bare number, for encoding.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The ids that each counter of the cluster issues. Id 0 is reserved. The last id of a cluster
    /// is not issued: so the next id of a counter is always one of its cluster, even if none is
    /// left, and no id is 2^64 - 1, which has a meaning of its own as a container and as an
    /// account.
    #[must_use]
    pub const fn ids(self) -> Range<u64> {
        let start = (self.0 as u64) << COUNTER_BITS;
        let last = start | ((1 << COUNTER_BITS) - 1);
        if start == 0 { 1..last } else { start..last }
    }
}

impl fmt::Display for ClusterNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ExtentId {
    /// The cluster that created the extent.
    #[must_use]
    pub const fn cluster(self) -> ClusterNumber {
        ClusterNumber::of(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ContainerId;
    use crate::types::TAG_INDEX;

    const ALL: [u16; 5] = [0, 1, 0x00AB, 0x8000, u16::MAX];

    #[test]
    fn ids_of_a_cluster_carry_its_number_and_no_other_cluster_issues_them() {
        for number in ALL {
            let cluster = ClusterNumber::new(number);
            let Range { start, end } = cluster.ids();
            assert_eq!(start >> 48, u64::from(number));
            for id in [start, start + 1, end - 1, end] {
                assert_eq!(ClusterNumber::of(id), cluster, "{id:x}");
                assert_eq!(ExtentId::new(id).cluster().get(), number);
            }
        }
        assert_eq!(ClusterNumber::ALONE.ids(), 1..0xFFFF_FFFF_FFFF);
        assert_eq!(ClusterNumber::new(0xAB).ids().start, 0x00AB_0000_0000_0000);
        assert_eq!(ClusterNumber::new(0xAB).to_string(), "171");
    }

    #[test]
    fn no_cluster_issues_a_container_id_with_a_meaning_of_its_own() {
        for number in ALL {
            let Range { start, end } = ClusterNumber::new(number).ids();
            for counter in [start, end - 1] {
                let id = ContainerId::new(counter.reverse_bits());
                assert!(id != ContainerId::new(0) && id != TAG_INDEX, "{counter:x}");
            }
        }
    }

    /// The lowest bits of a counter become the highest of the id, whatever the cluster's number is.
    #[test]
    fn containers_of_a_cluster_spread_evenly_over_the_key_space() {
        for number in ALL {
            let start = ClusterNumber::new(number).ids().start;
            let mut sixteenths = [0; 16];
            for counter in start..start + 160 {
                let id = counter.reverse_bits();
                sixteenths[usize::try_from(id >> 60).unwrap()] += 1;
            }
            assert_eq!(sixteenths, [10; 16], "cluster {number}");
        }
    }
}
