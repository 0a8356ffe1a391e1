//! Access tiers.

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

/// The access tier of a blob. The order of the variants is on disk. Source: Set Blob Tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AccessTier {
    /// `Hot`, the default of an account.
    Hot,
    /// `Cool`.
    Cool,
    /// `Cold`.
    Cold,
    /// `Archive`: not readable until rehydrated.
    Archive,
    /// `Smart`: the service chooses between hot, cool and cold.
    Smart,
    /// `P4`, of premium page blobs.
    P4,
    /// `P6`, of premium page blobs.
    P6,
    /// `P10`, of premium page blobs.
    P10,
    /// `P15`, of premium page blobs.
    P15,
    /// `P20`, of premium page blobs.
    P20,
    /// `P30`, of premium page blobs.
    P30,
    /// `P40`, of premium page blobs.
    P40,
    /// `P50`, of premium page blobs.
    P50,
    /// `P60`, of premium page blobs.
    P60,
    /// `P70`, of premium page blobs.
    P70,
    /// `P80`, of premium page blobs.
    P80,
}

impl AccessTier {
    /// All of them, from small to large where they have a size.
    const ALL: [Self; 16] = [
        Self::Hot,
        Self::Cool,
        Self::Cold,
        Self::Archive,
        Self::Smart,
        Self::P4,
        Self::P6,
        Self::P10,
        Self::P15,
        Self::P20,
        Self::P30,
        Self::P40,
        Self::P50,
        Self::P60,
        Self::P70,
        Self::P80,
    ];

    /// Its name in headers and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "Hot",
            Self::Cool => "Cool",
            Self::Cold => "Cold",
            Self::Archive => "Archive",
            Self::Smart => "Smart",
            Self::P4 => "P4",
            Self::P6 => "P6",
            Self::P10 => "P10",
            Self::P15 => "P15",
            Self::P20 => "P20",
            Self::P30 => "P30",
            Self::P40 => "P40",
            Self::P50 => "P50",
            Self::P60 => "P60",
            Self::P70 => "P70",
            Self::P80 => "P80",
        }
    }

    /// Bytes that a page blob of this tier may have; `None` for tiers of other blobs. Source:
    /// "Azure page blob storage pricing", sizes of premium page blobs.
    #[must_use]
    pub const fn bytes_max(self) -> Option<u64> {
        match self {
            Self::Hot | Self::Cool | Self::Cold | Self::Archive | Self::Smart => None,
            Self::P4 => Some(32 << 30),
            Self::P6 => Some(64 << 30),
            Self::P10 => Some(128 << 30),
            Self::P15 => Some(256 << 30),
            Self::P20 => Some(512 << 30),
            Self::P30 => Some(1 << 40),
            Self::P40 => Some(2 << 40),
            Self::P50 => Some(4 << 40),
            Self::P60 => Some(8 << 40),
            Self::P70 => Some(16 << 40),
            Self::P80 => Some(32 << 40),
        }
    }

    /// Parses a header in any case, as Azure does.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str().eq_ignore_ascii_case(text))
    }

    /// The tier in which a blob of the tier `Smart` is; `None` for other tiers. All bytes are on
    /// the same disks here, so it never leaves the first one.
    #[must_use]
    pub const fn smart(self) -> Option<Self> {
        match self {
            Self::Smart => Some(Self::Hot),
            Self::Hot
            | Self::Cool
            | Self::Cold
            | Self::Archive
            | Self::P4
            | Self::P6
            | Self::P10
            | Self::P15
            | Self::P20
            | Self::P30
            | Self::P40
            | Self::P50
            | Self::P60
            | Self::P70
            | Self::P80 => None,
        }
    }

    /// The tier of a page blob of `len` bytes for which none was set. P4, P6 and P15 must be set.
    /// Source: REST version 2017-04-17, "Azure page blob storage pricing".
    #[must_use]
    pub fn of_page_blob(len: u64) -> Self {
        [Self::P10, Self::P20, Self::P30, Self::P40, Self::P50]
            .into_iter()
            .find(|tier| tier.bytes_max().is_some_and(|max| len <= max))
            .unwrap_or(Self::P60)
    }
}

/// The priority of a rehydration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RehydratePriority {
    /// `Standard`.
    Standard,
    /// `High`.
    High,
}

impl RehydratePriority {
    /// Its name in headers and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "Standard",
            Self::High => "High",
        }
    }

    /// Parses a header in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Standard, Self::High].into_iter().find(|p| p.as_str().eq_ignore_ascii_case(text))
    }
}

/// A rehydration: a move out of the archive tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehydration {
    /// The tier after it.
    pub to: AccessTier,
    /// Its priority.
    pub priority: RehydratePriority,
    /// When it is complete.
    pub ready: Timestamp,
}

/// The tier of a blob, if it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierState {
    /// The tier. [`Self::at`] applies a rehydration that is complete.
    pub tier: AccessTier,
    /// When it was set; `x-ms-access-tier-change-time`.
    pub changed: Timestamp,
    /// The rehydration in progress, or one that is complete.
    pub rehydrating: Option<Rehydration>,
}

impl TierState {
    /// A tier set at `now`.
    #[must_use]
    pub const fn new(tier: AccessTier, now: Timestamp) -> Self {
        Self { tier, changed: now, rehydrating: None }
    }

    /// The tier at `now`: a complete rehydration has changed it.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Self {
        match &self.rehydrating {
            Some(rehydration) if rehydration.ready <= now => {
                Self::new(rehydration.to, rehydration.ready)
            }
            Some(_) | None => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rehydration_ends_by_time() {
        let at = |s| Timestamp::from_unix(std::time::Duration::from_secs(s));
        let priority = RehydratePriority::High;
        let rehydration = Rehydration { to: AccessTier::Cool, priority, ready: at(20) };
        let state = TierState {
            rehydrating: Some(rehydration),
            ..TierState::new(AccessTier::Archive, at(10))
        };
        assert_eq!(state.at(at(19)), state);
        assert_eq!(state.at(at(20)), TierState::new(AccessTier::Cool, at(20)));
        assert_eq!(RehydratePriority::parse("standard"), Some(RehydratePriority::Standard));
    }

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!(AccessTier::parse("cool"), Some(AccessTier::Cool));
        assert_eq!(AccessTier::parse("ARCHIVE"), Some(AccessTier::Archive));
        assert_eq!(AccessTier::parse("smart"), Some(AccessTier::Smart));
        assert_eq!(AccessTier::parse("p40"), Some(AccessTier::P40));
        assert_eq!(AccessTier::parse("Tepid"), None);
    }

    #[test]
    fn page_blobs_have_the_smallest_tier_that_fits() {
        for (len, tier) in [
            (0, AccessTier::P10),
            (128 << 30, AccessTier::P10),
            ((128 << 30) + 512, AccessTier::P20),
            (1 << 40, AccessTier::P30),
            (2 << 40, AccessTier::P40),
            (4 << 40, AccessTier::P50),
            (8 << 40, AccessTier::P60),
        ] {
            assert_eq!(AccessTier::of_page_blob(len), tier, "{len}");
        }
    }
}
