//! Groups of extents by their ids.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error;

use crate::types::ExtentId;

/// Bits of an extent's id that are its place in the group.
const PLACE_BITS: u32 = 6;
/// Extents of a group.
pub const GROUP_EXTENTS: u64 = 1 << PLACE_BITS;

/// The id of a group: the 64 extents whose ids begin at one multiple of 64. It is the id of the
/// first of them, divided by 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct GroupId(u64);

impl GroupId {
    /// Wraps a number that was read; `None` if it is so large that no extent is in such a group.
    #[must_use]
    pub const fn new(value: u64) -> Option<Self> {
        if value >> (u64::BITS - PLACE_BITS) == 0 { Some(Self(value)) } else { None }
    }

    /// The bare number, for encoding.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The extent with the lowest id.
    #[must_use]
    pub const fn first(self) -> ExtentId {
        ExtentId::new(self.0 << PLACE_BITS)
    }

    /// All extents of the group, ascending.
    pub fn extents(self) -> impl DoubleEndedIterator<Item = ExtentId> + Clone {
        let first = self.first().get();
        (0..GROUP_EXTENTS).map(move |place| ExtentId::new(first | place))
    }
}

/// As [`GroupId::new`].
impl<'de> Deserialize<'de> for GroupId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| D::Error::custom("no extent is in such a group"))
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl ExtentId {
    /// The group that the extent belongs to.
    #[must_use]
    pub const fn group(self) -> GroupId {
        GroupId(self.get() >> PLACE_BITS)
    }

    /// The place of the extent in its group, 0 to 63.
    #[must_use]
    pub const fn place(self) -> u8 {
        let [.., lowest] = self.get().to_be_bytes();
        lowest & ((1 << PLACE_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ClusterNumber;

    #[test]
    fn sixty_four_extents_are_a_group() {
        let group = ExtentId::new(0x00AB_0000_0000_1040).group();
        assert_eq!(group.to_string(), "0002ac0000000041");
        assert_eq!(group.first(), ExtentId::new(0x00AB_0000_0000_1040));
        let extents: Vec<ExtentId> = group.extents().collect();
        assert_eq!(extents.len(), 64);
        for (place, extent) in (0..).zip(extents) {
            assert_eq!((extent.group(), extent.place()), (group, place));
        }
        assert_ne!(ExtentId::new(0x00AB_0000_0000_1080).group(), group);
        assert_ne!(ExtentId::new(0x00AB_0000_0000_103F).group(), group);
    }

    #[test]
    fn numbers_without_extents_are_no_groups() {
        let last = ExtentId::new(u64::MAX).group();
        assert_eq!(GroupId::new(last.get()), Some(last));
        assert_eq!(last.extents().next_back(), Some(ExtentId::new(u64::MAX)));
        assert_eq!(GroupId::new(last.get() + 1), None);
        assert_eq!(GroupId::new(u64::MAX), None);
    }

    #[test]
    fn all_extents_of_a_group_are_of_one_cluster() {
        for number in [0, 1, u16::MAX] {
            let ids = ClusterNumber::new(number).ids();
            for id in [ids.start, ids.end] {
                let group = ExtentId::new(id).group();
                assert!(group.extents().all(|extent| extent.cluster().get() == number));
            }
        }
    }
}
