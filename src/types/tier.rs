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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RehydratePriority {
    /// `Standard`.
    Standard,
    /// `High`.
    High,
}

impl RehydratePriority {
    /// As it stands in headers and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "Standard",
            Self::High => "High",
        }
    }

    /// Reads a header; any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Standard, Self::High].into_iter().find(|p| p.as_str().eq_ignore_ascii_case(text))
    }
}

/// A blob on its way out of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehydration {
    /// Where to.
    pub to: AccessTier,
    /// How fast.
    pub priority: RehydratePriority,
    /// When it is there.
    pub ready: Timestamp,
}

/// The tier of one blob, once it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierState {
    /// The tier now.
    pub tier: AccessTier,
    /// When it was set; `x-ms-access-tier-change-time`.
    pub changed: Timestamp,
    /// On the way out of the archive; what it is at an instant tells [`Self::at`].
    pub rehydrating: Option<Rehydration>,
}

impl TierState {
    /// A tier set at `now`.
    #[must_use]
    pub const fn new(tier: AccessTier, now: Timestamp) -> Self {
        Self { tier, changed: now, rehydrating: None }
    }

    /// As it is at `now`: a rehydration that is over has changed the tier.
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
        assert_eq!(AccessTier::parse("Tepid"), None);
    }
}
