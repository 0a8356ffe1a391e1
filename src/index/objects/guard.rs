//! What a request demands of the current state: existence, then the lease, then the conditions.

use crate::index::api::Error;
use crate::index::api::Guard;
use crate::types::Etag;
use crate::types::Outcome;
use crate::types::Timestamp;

/// There are no leases yet: any id sent is one too many.
pub(super) fn lease(guard: &Guard) -> Result<(), Error> {
    if guard.lease.is_some() { Err(Error::LeaseNotPresent) } else { Ok(()) }
}

/// A read of what exists.
pub(super) fn read(guard: &Guard, etag: Etag, last_modified: Timestamp) -> Result<(), Error> {
    lease(guard)?;
    settle(guard.conditions.check_read(etag, last_modified))
}

/// A write that makes what it names when that is missing.
pub(super) fn create(guard: &Guard, current: Option<(Etag, Timestamp)>) -> Result<(), Error> {
    lease(guard)?;
    settle(guard.conditions.check_write(current))
}

/// A change or removal of what exists: there `If-None-Match: *` is a plain failed condition.
pub(super) fn change(guard: &Guard, etag: Etag, last_modified: Timestamp) -> Result<(), Error> {
    lease(guard)?;
    let outcome = guard.conditions.check_write(Some((etag, last_modified)));
    settle(if outcome == Outcome::AlreadyExists { Outcome::Failed } else { outcome })
}

fn settle(outcome: Outcome) -> Result<(), Error> {
    if outcome == Outcome::Proceed { Ok(()) } else { Err(Error::Condition(outcome)) }
}
