//! Leases on blobs and containers.

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
#[derive(Clone, Debug)]
pub struct LeaseBlob {
    /// The blob.
    pub key: BlobKey,
    /// Only the conditions count: the ids stand in the action.
    pub guard: Guard,
    /// What to do; an acquire has an id.
    pub action: LeaseAction,
}

/// Lease Container.
#[derive(Clone, Debug)]
pub struct LeaseContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// Only the conditions count: the ids stand in the action.
    pub guard: Guard,
    /// What to do; an acquire has an id.
    pub action: LeaseAction,
}

/// What a lease action left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased {
    /// Tag and time of the blob or container, which a lease leaves alone.
    pub written: Written,
    /// The lease; none after a release.
    pub lease: Option<Lease>,
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
