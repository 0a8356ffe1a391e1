//! Object lock: versions that must neither be removed nor changed (ADR 0041).
//!
//! A version is held while it is under a legal hold, and until its retention ends. The clock is
//! that of the partition. No request removes a held version or changes it in place. A write that
//! keeps it as a version may replace it as the current blob. Tags, tier, lease and access control
//! list may change.
//!
//! Source: S3, "Locking objects with Object Lock"; Azure, "Version-level WORM policies for
//! immutable blob data".

use crate::index::api::Guard;
use crate::index::api::Refused;
use crate::index::record::BlobRecord;
use crate::types::Retention;
use crate::types::RetentionMode;
use crate::types::Timestamp;

/// Protects the version that a write makes: as the request says, else by the container's default.
///
/// # Errors
/// [`Refused::NoObjectLock`] if the request protects it and the container has no object lock;
/// [`Refused::RetentionInPast`].
pub(super) fn protect(
    record: &mut BlobRecord,
    guard: &Guard,
    now: Timestamp,
) -> Result<(), Refused> {
    let (claim, lock) = (&guard.lock, guard.protection.lock);
    let Some(lock) = lock else {
        return if claim.protects() { Err(Refused::NoObjectLock) } else { Ok(()) };
    };
    check_future(claim.retention, now)?;
    // The protection of a completed upload is that of the request that started it.
    let own = claim.retention.or_else(|| record.retention());
    record.set_retention(own.or_else(|| lock.default.map(|default| default.from(now))));
    record.set_legal_hold(claim.legal_hold.or_else(|| record.legal_hold()));
    Ok(())
}

/// As [`protect`], for a version with the content of a former one. The former one keeps its
/// protection.
pub(super) fn protect_again(
    record: &mut BlobRecord,
    guard: &Guard,
    now: Timestamp,
) -> Result<(), Refused> {
    release(record);
    protect(record, guard, now)
}

/// Removes the protection from the copy of a version.
pub(super) fn release(record: &mut BlobRecord) {
    record.set_retention(None);
    record.set_legal_hold(None);
}

/// Checks that a version may be changed in place.
///
/// # Errors
/// [`Refused::LegalHold`], [`Refused::Retained`].
pub(super) fn may_change(record: &BlobRecord, now: Timestamp) -> Result<(), Refused> {
    held(record, now).map_or(Ok(()), Err)
}

/// Checks that a version may be removed.
///
/// # Errors
/// As [`may_change`]. A request that may bypass governance removes a version whose retention is not
/// locked.
pub(super) fn may_remove(
    guard: &Guard,
    record: &BlobRecord,
    now: Timestamp,
) -> Result<(), Refused> {
    match held(record, now) {
        Some(Refused::Retained(RetentionMode::Unlocked)) if guard.lock.bypass => Ok(()),
        Some(held) => Err(held),
        None => Ok(()),
    }
}

/// The legal hold or retention that protects a version, if any.
fn held(record: &BlobRecord, now: Timestamp) -> Option<Refused> {
    if record.legal_hold() == Some(true) {
        return Some(Refused::LegalHold);
    }
    let retention = record.retention().filter(|retention| retention.is_active(now));
    retention.map(|retention| Refused::Retained(retention.mode))
}

/// Replaces the retention of a version.
///
/// # Errors
/// [`Refused::NoObjectLock`]; [`Refused::RetentionInPast`]; [`Refused::Retained`] if it would end a
/// locked retention or shorten it, or, without the right to bypass it, one that is not locked.
pub(super) fn set_retention(
    record: &mut BlobRecord,
    new: Option<Retention>,
    guard: &Guard,
    now: Timestamp,
) -> Result<(), Refused> {
    check_lock(guard)?;
    check_future(new, now)?;
    if let Some(old) = record.retention().filter(|old| old.is_active(now)) {
        let extends = new.is_some_and(|new| new.mode == old.mode && new.until >= old.until);
        let may_bypass = old.mode == RetentionMode::Unlocked && guard.lock.bypass;
        if !extends && !may_bypass {
            return Err(Refused::Retained(old.mode));
        }
    }
    record.set_retention(new);
    Ok(())
}

/// Sets or removes the legal hold of a version.
///
/// # Errors
/// [`Refused::NoObjectLock`].
pub(super) fn set_legal_hold(
    record: &mut BlobRecord,
    on: bool,
    guard: &Guard,
) -> Result<(), Refused> {
    check_lock(guard)?;
    record.set_legal_hold(Some(on));
    Ok(())
}

fn check_lock(guard: &Guard) -> Result<(), Refused> {
    guard.protection.lock.map(|_| ()).ok_or(Refused::NoObjectLock)
}

/// Checks that a retention that a request gives has not ended yet.
pub(super) fn check_future(new: Option<Retention>, now: Timestamp) -> Result<(), Refused> {
    match new {
        Some(new) if !new.is_active(now) => Err(Refused::RetentionInPast),
        Some(_) | None => Ok(()),
    }
}
