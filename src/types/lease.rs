//! A lease on a blob or container, as it stands at an instant.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::types::Timestamp;

/// A lease as stored; its state follows from the time. Source: Lease Blob, Lease Container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// What the holder sends.
    pub id: Uuid,
    /// 15 to 60 s; `None` is infinite.
    pub duration: Option<Duration>,
    /// When it was last acquired or renewed.
    pub since: Timestamp,
    /// Set by Break Lease: until then it is breaking, after it broken.
    pub breaks_at: Option<Timestamp>,
}

/// What a lease is at an instant; a blob without one is [`LeaseState::Available`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// None.
    Available,
    /// Held.
    Leased,
    /// Ran out; its holder may renew it until somebody else writes or leases.
    Expired,
    /// Breaking: held until the break period is over.
    Breaking,
    /// Broken.
    Broken,
}

impl Lease {
    /// Its state at `now`.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> LeaseState {
        match (self.breaks_at, self.expires()) {
            (Some(at), _) if now < at => LeaseState::Breaking,
            (Some(_), _) => LeaseState::Broken,
            (None, Some(at)) if at <= now => LeaseState::Expired,
            (None, _) => LeaseState::Leased,
        }
    }

    /// When it runs out; `None` when infinite.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.duration.map(|duration| self.since.plus(duration))
    }

    /// Whether writes need its id at `now`.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        matches!(self.state(now), LeaseState::Leased | LeaseState::Breaking)
    }
}

/// What Lease Blob and Lease Container are asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Takes a lease, or takes the own one anew.
    Acquire {
        /// Its id; one is drawn when the client proposes none.
        proposed: Option<Uuid>,
        /// 15 to 60 s; `None` is infinite.
        duration: Option<Duration>,
    },
    /// Starts the duration again.
    Renew {
        /// The holder's.
        id: Uuid,
    },
    /// Gives the lease another id.
    Change {
        /// The holder's.
        id: Uuid,
        /// The new one.
        to: Uuid,
    },
    /// Ends it at once.
    Release {
        /// The holder's.
        id: Uuid,
    },
    /// Ends it without its id, after a while.
    Break {
        /// 0 to 60 s; `None` is what remains of the duration.
        period: Option<Duration>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_a_lease_through_its_states() {
        let at = |s| Timestamp::from_unix(Duration::from_secs(s));
        let held = Lease {
            id: Uuid::nil(),
            duration: Some(Duration::from_secs(15)),
            since: at(100),
            breaks_at: None,
        };
        assert_eq!(held.state(at(114)), LeaseState::Leased);
        assert_eq!(held.state(at(115)), LeaseState::Expired);
        let breaking = Lease { breaks_at: Some(at(110)), ..held };
        assert_eq!(breaking.state(at(109)), LeaseState::Breaking);
        assert!(breaking.is_active(at(109)));
        assert_eq!(breaking.state(at(110)), LeaseState::Broken);
        assert!(!breaking.is_active(at(110)));
        let infinite = Lease { duration: None, ..held };
        assert_eq!(infinite.state(at(1 << 40)), LeaseState::Leased);
    }
}
