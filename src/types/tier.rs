//! Access tiers.

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

/// Where a blob is billed and how soon it can be read; on disk by position.
/// Source: Set Blob Tier.
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
}

impl AccessTier {
    /// As it stands in headers and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "Hot",
            Self::Cool => "Cool",
            Self::Cold => "Cold",
            Self::Archive => "Archive",
        }
    }

    /// Reads a header; any case, as the service does.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Hot, Self::Cool, Self::Cold, Self::Archive]
            .into_iter()
            .find(|tier| tier.as_str().eq_ignore_ascii_case(text))
    }
}

/// How fast a blob comes out of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RehydratePriority {
    /// `Standard`.
    Standard,
    /// `High`.
    High,
}

/// The tier of one blob, once it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierState {
    /// The tier now.
    pub tier: AccessTier,
    /// When it was set; `x-ms-access-tier-change-time`.
    pub changed: Timestamp,
    /// On the way out of the archive: to which tier, how fast.
    pub rehydrating: Option<(AccessTier, RehydratePriority)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!(AccessTier::parse("cool"), Some(AccessTier::Cool));
        assert_eq!(AccessTier::parse("ARCHIVE"), Some(AccessTier::Archive));
        assert_eq!(AccessTier::parse("Tepid"), None);
    }
}
