//! Leases on blobs and containers.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

use crate::index::api::Guard;
use crate::index::api::LeaseRefusal;
use crate::index::api::Written;
use crate::types::AccountId;
use crate::types::BlobKey;
use crate::types::ContainerName;
use crate::types::Lease;
use crate::types::LeaseAction;
use crate::types::Timestamp;

/// Lease Blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseBlob {
    /// The blob.
    pub key: BlobKey,
    /// Only the conditions count: the ids stand in the action.
    pub guard: Guard,
    /// The action; an acquire has an id.
    pub action: LeaseAction,
}

/// Lease Container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// Only the conditions count: the ids stand in the action.
    pub guard: Guard,
    /// The action; an acquire has an id.
    pub action: LeaseAction,
}

/// The effect of a lease action, with the new lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseResult {
    /// There is a lease.
    Acquired(Lease),
    /// Its duration began again.
    Renewed(Lease),
    /// It has another id.
    Changed(Lease),
    /// There is none any more.
    Released,
    /// It is broken, or will be.
    Broken {
        /// The lease.
        lease: Lease,
        /// Until it is broken.
        left: Duration,
    },
}

impl LeaseResult {
    /// The lease; none after a release.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            Self::Acquired(lease)
            | Self::Renewed(lease)
            | Self::Changed(lease)
            | Self::Broken { lease, .. } => Some(*lease),
            Self::Released => None,
        }
    }
}

/// The answer to a lease action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leased {
    /// Tag and time of the blob or container, which a lease leaves alone.
    pub written: Written,
    /// The effect of the action.
    pub result: LeaseResult,
    /// When it was done.
    pub now: Timestamp,
}

/// Whether a lease id that came with a request may be there: none is needed to read, but one that
/// is sent must be the holder's.
///
/// # Errors
/// [`LeaseRefusal::NotPresent`], [`LeaseRefusal::Lost`], [`LeaseRefusal::Mismatch`].
pub fn check_lease(
    sent: Option<Uuid>,
    lease: Option<Lease>,
    now: Timestamp,
) -> Result<(), LeaseRefusal> {
    match (sent, lease) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(LeaseRefusal::NotPresent),
        (Some(_), Some(lease)) if !lease.is_active(now) => Err(LeaseRefusal::Lost),
        (Some(id), Some(lease)) if id != lease.id => Err(LeaseRefusal::Mismatch),
        (Some(_), Some(_)) => Ok(()),
    }
}
