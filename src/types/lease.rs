//! A lease on a blob or container, and its state at an instant.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::types::Timestamp;

/// A stored lease. Its state depends on the time. Source: Lease Blob, Lease Container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The id that its holder sends.
    pub id: Uuid,
    /// 15 to 60 s; `None` is infinite.
    pub duration: Option<Duration>,
    /// When it was last acquired or renewed.
    pub since: Timestamp,
    /// Set by Break Lease: the lease is breaking until then, and broken after it.
    pub breaks_at: Option<Timestamp>,
}

/// The state of a lease at an instant. A blob without a lease is [`LeaseState::Available`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// There is no lease.
    Available,
    /// The lease is held.
    Leased,
    /// The lease has expired. Its holder may renew it until another client writes or takes a lease.
    Expired,
    /// The lease is held until the break period is over.
    Breaking,
    /// The lease is broken.
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

    /// When it expires; `None` if it is infinite.
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

/// An action of Lease Blob or Lease Container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseAction {
    /// Takes a lease, or takes it again if the client holds it.
    Acquire {
        /// Its id. If the client proposes none, the server chooses a random one.
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
    /// Ends it immediately.
    Release {
        /// The holder's.
        id: Uuid,
    },
    /// Ends it after a period. Needs no lease id.
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
