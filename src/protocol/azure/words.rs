//! Words for states, as headers and lists have them.

use crate::protocol::model::reply::LeaseFacts;
use crate::types::LeaseState;
use crate::types::PublicAccess;
use crate::types::RetentionMode;

/// `x-ms-lease-status`: whether writes need an id.
pub(super) const fn lease_status(state: LeaseState) -> &'static str {
    match state {
        LeaseState::Leased | LeaseState::Breaking => "locked",
        LeaseState::Available | LeaseState::Expired | LeaseState::Broken => "unlocked",
    }
}

/// `x-ms-lease-state`.
pub(super) const fn lease_state(state: LeaseState) -> &'static str {
    match state {
        LeaseState::Available => "available",
        LeaseState::Leased => "leased",
        LeaseState::Expired => "expired",
        LeaseState::Breaking => "breaking",
        LeaseState::Broken => "broken",
    }
}

/// `x-ms-lease-duration`, while it is leased.
pub(super) const fn lease_duration(lease: LeaseFacts) -> Option<&'static str> {
    match (lease.state, lease.infinite) {
        (LeaseState::Leased, true) => Some("infinite"),
        (LeaseState::Leased, false) => Some("fixed"),
        (
            LeaseState::Available | LeaseState::Expired | LeaseState::Breaking | LeaseState::Broken,
            _,
        ) => None,
    }
}

/// `x-ms-blob-public-access`; none says private.
pub(super) const fn public_access_name(access: PublicAccess) -> Option<&'static str> {
    match access {
        PublicAccess::Private => None,
        PublicAccess::Blob => Some("blob"),
        PublicAccess::Container => Some("container"),
    }
}

/// The word for the mode of an immutability policy.
pub(super) const fn policy_mode(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Unlocked => "unlocked",
        RetentionMode::Locked => "locked",
    }
}
