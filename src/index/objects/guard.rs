//! What a request demands of the current state: existence (the caller asks), then the lease, then
//! the conditions.
//!
//! Source: Lease Blob and Lease Container, "outcomes of use attempts by lease state"; a wrong id is
//! 412 as in the table of error codes, not 409 as in that one.

use uuid::Uuid;

use crate::index::api::Guard;
use crate::index::api::LeaseRefusal;
use crate::index::api::Refused;
use crate::index::api::check_lease;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::CopyStatus;
use crate::types::AccessTier;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Outcome;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;

/// What a guard is held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current<'a> {
    etag: Etag,
    last_modified: Timestamp,
    lease: Option<Lease>,
    /// Of a blob.
    tags: Option<&'a Tags>,
    /// It is the destination of a pending copy.
    copying: bool,
}

impl<'a> From<&'a BlobRecord> for Current<'a> {
    fn from(blob: &'a BlobRecord) -> Self {
        let BlobRecord { etag, last_modified, lease, tags, .. } = blob;
        let (etag, last_modified, lease) = (*etag, *last_modified, *lease);
        Self { etag, last_modified, lease, tags: Some(tags), copying: is_copying(blob) }
    }
}

impl<'a> From<&'a ContainerRecord> for Current<'a> {
    fn from(container: &'a ContainerRecord) -> Self {
        let ContainerRecord { etag, last_modified, lease, .. } = container;
        let (etag, last_modified, lease) = (*etag, *last_modified, *lease);
        Self { etag, last_modified, lease, tags: None, copying: false }
    }
}

/// A read of what exists.
pub(super) fn read<'a>(
    guard: &Guard,
    current: impl Into<Current<'a>>,
    now: Timestamp,
) -> Result<(), Refused> {
    let current = current.into();
    lease_of_read(guard.lease, current.lease, now)?;
    tags(guard, current.tags)?;
    settle(guard.conditions.check_read(current.etag, current.last_modified))
}

/// A write that makes what it names when that is missing. The lease that stays.
pub(super) fn create<'a>(
    guard: &Guard,
    current: Option<impl Into<Current<'a>>>,
    now: Timestamp,
) -> Result<Option<Lease>, Refused> {
    let current = current.map(Into::into);
    let lease = lease_of_write(guard.lease, current.and_then(|c| c.lease), now)?;
    tags(guard, current.and_then(|c| c.tags))?;
    settle(guard.conditions.check_write(current.map(|c| (c.etag, c.last_modified))))?;
    current.map_or(Ok(()), not_copying)?;
    Ok(lease)
}

/// A change or removal of what exists. The lease that stays.
pub(super) fn change<'a>(
    guard: &Guard,
    current: impl Into<Current<'a>>,
    now: Timestamp,
) -> Result<Option<Lease>, Refused> {
    let current = current.into();
    let lease = lease_of_write(guard.lease, current.lease, now)?;
    conditions(guard, current)?;
    not_copying(current)?;
    Ok(lease)
}

/// A change that a lease does not lock out, but whose id must be right when it is sent.
pub(super) fn change_beside_lease<'a>(
    guard: &Guard,
    current: impl Into<Current<'a>>,
    now: Timestamp,
) -> Result<(), Refused> {
    let current = current.into();
    lease_of_read(guard.lease, current.lease, now)?;
    conditions(guard, current)?;
    not_copying(current)
}

/// The conditions of a change alone: there `If-None-Match: *` is a plain failed condition.
pub(super) fn conditions<'a>(
    guard: &Guard,
    current: impl Into<Current<'a>>,
) -> Result<(), Refused> {
    let current = current.into();
    tags(guard, current.tags)?;
    let outcome = guard.conditions.check_write(Some((current.etag, current.last_modified)));
    settle(if outcome == Outcome::AlreadyExists { Outcome::Failed } else { outcome })
}

/// A read needs no id, but one that is sent must be the holder's.
pub(super) fn lease_of_read(
    sent: Option<Uuid>,
    lease: Option<Lease>,
    now: Timestamp,
) -> Result<(), Refused> {
    check_lease(sent, lease, now).map_err(Refused::Lease)
}

/// A write of what is leased needs the holder's id. The lease that stays: one that ran out or was
/// broken is gone after a write.
pub(super) fn lease_of_write(
    sent: Option<Uuid>,
    lease: Option<Lease>,
    now: Timestamp,
) -> Result<Option<Lease>, Refused> {
    lease_of_read(sent, lease, now)?;
    let active = lease.filter(|lease| lease.is_active(now));
    if active.is_some() && sent.is_none() {
        return Err(Refused::Lease(LeaseRefusal::Missing));
    }
    Ok(active)
}

/// What is demanded of the tags of what exists; what does not exist satisfies no demand.
fn tags(guard: &Guard, current: Option<&Tags>) -> Result<(), Refused> {
    match &guard.if_tags {
        Some(condition) if !current.is_some_and(|tags| condition.matches(tags)) => {
            Err(Refused::Condition(Outcome::Failed))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether the blob is the destination of a pending copy.
pub(super) fn is_copying(blob: &BlobRecord) -> bool {
    blob.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending)
}

/// What a pending copy refuses: every change of its destination but its own end.
fn not_copying(current: Current<'_>) -> Result<(), Refused> {
    if current.copying { Err(Refused::CopyPending) } else { Ok(()) }
}

/// What the archive refuses: reading and changing content, properties and metadata. A blob on its
/// way out of it is not out yet.
pub(super) fn not_archived(blob: &BlobRecord, now: Timestamp) -> Result<(), Refused> {
    match blob.tier.as_ref().map(|tier| tier.at(now)) {
        Some(TierState { rehydrating: Some(_), .. }) => Err(Refused::Rehydrating),
        Some(TierState { tier: AccessTier::Archive, .. }) => Err(Refused::Archived),
        Some(_) | None => Ok(()),
    }
}

fn settle(outcome: Outcome) -> Result<(), Refused> {
    if outcome == Outcome::Proceed { Ok(()) } else { Err(Refused::Condition(outcome)) }
}

#[cfg(test)]
mod tests;
