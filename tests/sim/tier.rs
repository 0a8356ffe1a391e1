//! The reference model of tiers: which requests are refused for archived blobs, and until when, as
//! far as that is known.

use std::time::Duration;

use blockyard::types::AccessTier;
use blockyard::types::TierState;

use crate::when::When;

/// How long a rehydration takes in the simulation.
pub(crate) const REHYDRATION: Duration = Duration::from_millis(150);

/// A tier that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tier {
    tier: AccessTier,
    /// The tier after a rehydration, and when it is complete.
    rehydrating: Option<(AccessTier, When)>,
}

impl Tier {
    pub(crate) const fn new(tier: AccessTier) -> Self {
        Self { tier, rehydrating: None }
    }

    /// The tiers that it may be at a time.
    pub(crate) fn at(self, when: When) -> Vec<Self> {
        let Some((to, ready)) = self.rehydrating else { return vec![self] };
        let mut all = Vec::new();
        if when.may_precede(ready) {
            all.push(self);
        }
        if when.may_follow(ready) {
            all.push(Self::new(to));
        }
        all
    }

    pub(crate) fn archived(self) -> bool {
        self.tier == AccessTier::Archive
    }

    /// Whether a record read at `when` shows this tier.
    pub(crate) fn is_shown(self, seen: &TierState, when: When) -> bool {
        self.at(when).iter().any(|tier| {
            [when.from, when.to].iter().any(|now| {
                let seen = seen.at(*now);
                seen.tier == tier.tier
                    && seen.rehydrating.map(|r| r.to) == tier.rehydrating.map(|(to, _)| to)
            })
        })
    }

    /// The tier after Set Blob Tier with `wanted` at `when`, if it was `before`; `None` if that is
    /// refused.
    pub(crate) fn after(before: Option<Self>, wanted: AccessTier, when: When) -> Option<Self> {
        let Some(before) = before else { return Some(Self::new(wanted)) };
        if let Some((to, _)) = before.rehydrating {
            return (to == wanted).then_some(before);
        }
        if !before.archived() || wanted == AccessTier::Archive {
            return Some(Self::new(wanted));
        }
        let ready = when.plus(REHYDRATION);
        Some(Self { rehydrating: Some((wanted, ready)), ..before })
    }
}
