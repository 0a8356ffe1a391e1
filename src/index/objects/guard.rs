//! Checks the preconditions of a request against the current state: existence (checked by the
//! caller), then the lease, then the conditions.
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
use crate::types::CannedAcl;
use crate::types::EtagMatch;
use crate::types::Lease;
use crate::types::Outcome;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;
use crate::types::Validators;

/// The current state that a guard is checked against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current<'a> {
    validators: Validators,
    lease: Option<Lease>,
    /// The tags of a blob; `None` for a container.
    tags: Option<&'a Tags>,
    /// The access control list of a blob.
    acl: Option<CannedAcl>,
    /// The access tier of a blob, if it was set.
    tier: Option<&'a TierState>,
    /// Whether it is the destination of a pending copy.
    copying: bool,
}

impl<'a> From<&'a BlobRecord> for Current<'a> {
    fn from(blob: &'a BlobRecord) -> Self {
        let validators = Validators {
            etag: blob.etag,
            content_etag: Some(blob.content_etag()),
            last_modified: blob.last_modified,
            len: Some(blob.len),
            tier_changed: None,
        };
        let (lease, tags) = (blob.lease, Some(&blob.tags));
        let acl = blob.fields.as_ref().and_then(|fields| fields.acl);
        let (tier, copying) = (blob.tier.as_ref(), is_copying(blob));
        Self { validators, lease, tags, acl, tier, copying }
    }
}

impl<'a> From<&'a ContainerRecord> for Current<'a> {
    fn from(container: &'a ContainerRecord) -> Self {
        let ContainerRecord { etag, last_modified, lease, .. } = container;
        let validators = Validators {
            etag: *etag,
            content_etag: None,
            last_modified: *last_modified,
            len: None,
            tier_changed: None,
        };
        Self { validators, lease: *lease, tags: None, acl: None, tier: None, copying: false }
    }
}

/// Checks a read of an existing blob or container.
pub(super) fn read<'a>(
    guard: &Guard,
    current: impl Into<Current<'a>>,
    now: Timestamp,
) -> Result<(), Refused> {
    let current = current.into();
    open(guard, current.acl)?;
    lease_of_read(guard.lease, current.lease, now)?;
    tags(guard, current.tags)?;
    let content_etag = current.validators.content_etag;
    match guard.conditions.check_read(&current.validators) {
        Outcome::NotModified => Err(Refused::NotModified { content_etag }),
        outcome @ (Outcome::Proceed
        | Outcome::Failed
        | Outcome::AlreadyExists
        | Outcome::NothingToMatch) => settle(outcome),
    }
}

/// Checks a write that creates a missing blob. Returns the lease that stays.
pub(super) fn create<'a>(
    guard: &Guard,
    current: Option<impl Into<Current<'a>>>,
    now: Timestamp,
) -> Result<Option<Lease>, Refused> {
    let current = current.map(Into::into);
    let lease = lease_of_write(guard.lease, current.and_then(|c| c.lease), now)?;
    tags(guard, current.and_then(|c| c.tags))?;
    // A lease that stays was named by the request.
    let may_replace =
        lease.is_some() && matches!(guard.conditions.if_none_match, Some(EtagMatch::AnyUnleased));
    let outcome = guard.conditions.check_write(current.as_ref().map(|c| &c.validators));
    if !(may_replace && outcome == Outcome::AlreadyExists) {
        settle(outcome)?;
    }
    current.map_or(Ok(()), not_copying)?;
    Ok(lease)
}

/// Checks a change or removal of an existing blob or container. Returns the lease that stays.
pub(super) fn change<'a>(
    guard: &Guard,
    current: impl Into<Current<'a>>,
    now: Timestamp,
) -> Result<Option<Lease>, Refused> {
    let mut current = current.into();
    current.validators.tier_changed = current.tier.map(|tier| tier.at(now).changed);
    let lease = lease_of_write(guard.lease, current.lease, now)?;
    conditions(guard, current)?;
    not_copying(current)?;
    Ok(lease)
}

/// Checks a change that needs no lease id. If the request sends one, it must be right.
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

/// Checks only the conditions of a change. `If-None-Match: *` is an ordinary failed condition here.
pub(super) fn conditions<'a>(
    guard: &Guard,
    current: impl Into<Current<'a>>,
) -> Result<(), Refused> {
    let current = current.into();
    tags(guard, current.tags)?;
    let outcome = guard.conditions.check_write(Some(&current.validators));
    settle(if outcome == Outcome::AlreadyExists { Outcome::Failed } else { outcome })
}

/// Checks the lease id of a read. None is needed, but one that is sent must be the holder's.
pub(super) fn lease_of_read(
    sent: Option<Uuid>,
    lease: Option<Lease>,
    now: Timestamp,
) -> Result<(), Refused> {
    check_lease(sent, lease, now).map_err(Refused::Lease)
}

/// Checks the lease id of a write, which an active lease requires. Returns the lease that stays: a
/// write removes an expired or broken lease.
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

/// Checks that the blob's access control list permits the audience that the request requires.
fn open(guard: &Guard, acl: Option<CannedAcl>) -> Result<(), Refused> {
    match guard.open_to {
        Some(audience) if !acl.is_some_and(|acl| acl.opens_to(audience)) => Err(Refused::NotOpen),
        Some(_) | None => Ok(()),
    }
}

/// Checks the condition on tags. A blob that does not exist satisfies no condition.
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

/// Refuses changes of the destination of a pending copy. Only the end of the copy may change it.
fn not_copying(current: Current<'_>) -> Result<(), Refused> {
    if current.copying { Err(Refused::CopyPending) } else { Ok(()) }
}

/// Refuses all requests on an incremental copy but reads of its properties, another incremental
/// copy and its deletion. Source: "Incremental Copy Blob".
pub(super) fn not_incremental(blob: &BlobRecord) -> Result<(), Refused> {
    if blob.incremental_source().is_some() { Err(Refused::Incremental) } else { Ok(()) }
}

/// Refuses to replace an incremental copy, and a blob in the archive tier, unless the request may.
pub(super) fn replaceable(
    guard: &Guard,
    before: Option<&BlobRecord>,
    now: Timestamp,
) -> Result<(), Refused> {
    before.map_or(Ok(()), not_incremental)?;
    match before {
        Some(before) if !guard.over_archived => not_archived(before, now),
        Some(_) | None => Ok(()),
    }
}

/// Refuses to read or change content, properties and metadata in the archive tier. A blob that is
/// being rehydrated is still archived.
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
