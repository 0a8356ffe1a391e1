//! A set of extents of one group.

use serde::Deserialize;
use serde::Serialize;

use crate::types::ExtentId;
use crate::types::GroupId;

/// Some of the 64 extents of a group. Which group is known from elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extents(u64);

impl Extents {
    /// No extent.
    pub const NONE: Self = Self(0);
    /// All 64.
    pub const ALL: Self = Self(u64::MAX);

    /// A set by its bits: bit n is set if the extent at place n is in it.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, for encoding.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The extents of one group, as a set; `None` if one of them is of another group.
    pub fn of(group: GroupId, extents: impl IntoIterator<Item = ExtentId>) -> Option<Self> {
        extents.into_iter().try_fold(Self::NONE, |set, extent| {
            (extent.group() == group).then(|| set.with(Self::at(extent.place())))
        })
    }

    /// The extent at a place below 64.
    pub(super) const fn at(place: u8) -> Self {
        Self(1 << place)
    }

    /// Whether an extent is in the set, if it is of the group.
    #[must_use]
    pub const fn has(self, extent: ExtentId) -> bool {
        self.0 & Self::at(extent.place()).0 != 0
    }

    /// Whether the set has all extents of another one.
    #[must_use]
    pub const fn has_all(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    /// Those of this set and those of the other one.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are in both sets.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those of this set that are not in the other one.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether no extent is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The extents of the set, ascending.
    pub fn in_group(self, group: GroupId) -> impl Iterator<Item = ExtentId> {
        group.extents().filter(move |extent| self.has(*extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_the_extents_they_were_made_of() {
        let group = ExtentId::new(640).group();
        let [first, second, last] = [640, 641, 703].map(ExtentId::new);
        let set = Extents::of(group, [first, last]).unwrap();
        assert_eq!(set.bits(), 1 | 1 << 63);
        assert!(set.has(first) && set.has(last) && !set.has(second));
        assert_eq!(set.in_group(group).collect::<Vec<_>>(), [first, last]);
        assert_eq!(Extents::of(group, [first, ExtentId::new(704)]), None);
        assert_eq!(Extents::of(group, group.extents()), Some(Extents::ALL));
    }

    #[test]
    fn sets_are_combined() {
        let (low, high) = (Extents::from_bits(0b0011), Extents::from_bits(0b0110));
        assert_eq!(low.with(high).bits(), 0b0111);
        assert_eq!(low.common(high).bits(), 0b0010);
        assert_eq!(low.without(high).bits(), 0b0001);
        assert!(low.with(high).has_all(low) && !low.has_all(high));
        assert!(low.has_all(Extents::NONE) && Extents::NONE.is_empty());
    }
}
