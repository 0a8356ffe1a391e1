//! What the failure of a call means.
//!
//! Etcd names its errors by a text; the code of gRPC alone is too coarse (etcd.io, "API
//! guarantees", and the package `rpctypes` of its client). A refusal means that nothing was changed
//! only if it is known to be made before the change was proposed, or in place of applying it. Any
//! other, also one that a later etcd may invent, leaves the outcome open.

use super::super::api::Error;
use super::super::api::Reason;
use super::grpc::CallError;
use super::grpc::Status;

/// What the failure of one attempt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing was changed. This or another member may take the same call soon.
    NotDone,
    /// Nothing was changed, and the same call fails again.
    Refused,
    /// Nothing was changed: the token is not valid, or is missing.
    Token,
    /// Nothing was read: the revision is no longer kept.
    Compacted,
    /// Nothing was read: the store has not reached the revision.
    Future,
    /// Nothing was changed: there is no such lease.
    NoLease,
    /// The store has no room. A transaction may have been carried out nevertheless.
    Full,
    /// The members disagree about their data. Nothing was changed.
    Corrupt,
    /// The answer is larger than what is received. Only reads have large answers.
    TooLarge,
    /// It may or may not have happened.
    Unknown,
}

const INVALID_ARGUMENT: u32 = 3;
const NOT_FOUND: u32 = 5;
const PERMISSION_DENIED: u32 = 7;
const RESOURCE_EXHAUSTED: u32 = 8;
const FAILED_PRECONDITION: u32 = 9;
const OUT_OF_RANGE: u32 = 11;
const UNIMPLEMENTED: u32 = 12;
const UNAVAILABLE: u32 = 14;
const DATA_LOSS: u32 = 15;
const UNAUTHENTICATED: u32 = 16;

/// What a failure means.
pub(super) fn meaning(error: &CallError) -> Meaning {
    match error {
        CallError::NotSent(_) => Meaning::NotDone,
        CallError::Lost(_) => Meaning::Unknown,
        CallError::TooLarge => Meaning::TooLarge,
        CallError::Refused(status) => of_status(status),
    }
}

fn of_status(status: &Status) -> Meaning {
    let text = status.message.strip_prefix("etcdserver: ").unwrap_or(&status.message);
    match (status.code, text) {
        (OUT_OF_RANGE, "mvcc: required revision has been compacted") => Meaning::Compacted,
        (OUT_OF_RANGE, "mvcc: required revision is a future revision") => Meaning::Future,
        (NOT_FOUND, "requested lease not found") => Meaning::NoLease,
        (RESOURCE_EXHAUSTED, "mvcc: database space exceeded") => Meaning::Full,
        // Counted before the proposal.
        (RESOURCE_EXHAUSTED, "too many requests") => Meaning::NotDone,
        // The server did not read it.
        (RESOURCE_EXHAUSTED, text) if text.starts_with("grpc: received message larger") => {
            Meaning::Refused
        }
        // Found by what all requests pass before they are looked at: the member knows no leader,
        // has no vote, or its cluster has no version yet. The code depends on etcd's version.
        (
            UNAVAILABLE | FAILED_PRECONDITION,
            "no leader" | "not capable" | "rpc not supported for learner",
        ) => Meaning::NotDone,
        (UNAUTHENTICATED, _) => Meaning::Token,
        // The rights of users have changed since the token was checked. Found before applying.
        (INVALID_ARGUMENT, "revision of auth store is old" | "user name is empty") => {
            Meaning::Token
        }
        // A request that etcd calls wrong is not proposed, and one that lacks a right not applied.
        (
            INVALID_ARGUMENT | NOT_FOUND | PERMISSION_DENIED | FAILED_PRECONDITION | OUT_OF_RANGE
            | UNIMPLEMENTED,
            _,
        ) => Meaning::Refused,
        (DATA_LOSS, _) => Meaning::Corrupt,
        // Such as "request timed out", "leader changed" and "server stopped": all of these can come
        // after the proposal.
        _ => Meaning::Unknown,
    }
}

/// Whether etcd refused a log-in because its authentication is off.
pub(super) fn needs_no_token(error: &CallError) -> bool {
    match error {
        CallError::Refused(Status { code: FAILED_PRECONDITION, message }) => {
            message.contains("authentication is not enabled")
        }
        CallError::Refused(_)
        | CallError::NotSent(_)
        | CallError::Lost(_)
        | CallError::TooLarge => false,
    }
}

/// What failed, for the operator.
pub(super) fn text(error: &CallError) -> String {
    match error {
        CallError::NotSent(why) | CallError::Lost(why) => why.clone(),
        CallError::TooLarge => "an answer of etcd is too large".to_owned(),
        CallError::Refused(status) => {
            format!("etcd refused with code {}: {}", status.code, status.message)
        }
    }
}

/// The error of a call that changes nothing, or whose change does no harm.
pub(super) fn of_read(error: &CallError) -> Error {
    match meaning(error) {
        Meaning::Compacted => Error::Compacted,
        Meaning::NoLease => Error::SessionEnded,
        Meaning::Full => Error::Unavailable { reason: Reason::full(text(error)) },
        Meaning::Corrupt => Error::Corrupt { reason: text(error) },
        // The store was restored to an older state. Whoever knows a newer one has to read again.
        Meaning::Future => Error::Compacted,
        Meaning::NotDone
        | Meaning::Refused
        | Meaning::Token
        | Meaning::TooLarge
        | Meaning::Unknown => Error::Unavailable { reason: text(error).into() },
    }
}

/// The error of a call that changes something. What `Full` means for a transaction is not decided
/// here.
pub(super) fn of_change(error: &CallError) -> Error {
    match meaning(error) {
        Meaning::Unknown | Meaning::TooLarge | Meaning::Full => Error::Ambiguous,
        Meaning::Compacted
        | Meaning::NoLease
        | Meaning::Corrupt
        | Meaning::Future
        | Meaning::NotDone
        | Meaning::Refused
        | Meaning::Token => of_read(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u32, message: &str) -> CallError {
        CallError::Refused(Status { code, message: message.to_owned() })
    }

    #[test]
    fn only_known_refusals_mean_that_nothing_was_changed() {
        let not_changed = [
            refused(UNAVAILABLE, "etcdserver: no leader"),
            refused(UNAVAILABLE, "etcdserver: not capable"),
            refused(FAILED_PRECONDITION, "etcdserver: rpc not supported for learner"),
            refused(RESOURCE_EXHAUSTED, "etcdserver: too many requests"),
            refused(INVALID_ARGUMENT, "etcdserver: request is too large"),
            refused(PERMISSION_DENIED, "etcdserver: permission denied"),
            refused(UNAUTHENTICATED, "etcdserver: invalid auth token"),
            CallError::NotSent("connection refused".to_owned()),
        ];
        for error in not_changed {
            assert!(matches!(of_change(&error), Error::Unavailable { .. }), "{error:?}");
        }
        let unknown = [
            refused(UNAVAILABLE, "etcdserver: request timed out"),
            refused(UNAVAILABLE, "etcdserver: request timed out, possibly due to connection lost"),
            refused(UNAVAILABLE, "etcdserver: leader changed"),
            refused(UNAVAILABLE, "etcdserver: server stopped"),
            refused(4, "context deadline exceeded"),
            refused(1, "context canceled"),
            refused(2, "raft proposal dropped"),
            refused(13, "stream terminated"),
            refused(77, "from the future"),
            refused(RESOURCE_EXHAUSTED, "from the future"),
            CallError::Lost("connection reset".to_owned()),
            CallError::TooLarge,
        ];
        for error in unknown {
            assert!(matches!(of_change(&error), Error::Ambiguous), "{error:?}");
            assert!(matches!(of_read(&error), Error::Unavailable { .. }), "{error:?}");
        }
    }

    #[test]
    fn refusals_have_errors_of_their_own() {
        let full = refused(RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded");
        assert!(of_read(&full).is_full());
        assert!(matches!(of_change(&full), Error::Ambiguous));
        let compacted = "etcdserver: mvcc: required revision has been compacted";
        assert!(matches!(of_read(&refused(OUT_OF_RANGE, compacted)), Error::Compacted));
        let lease = refused(NOT_FOUND, "etcdserver: requested lease not found");
        assert!(matches!(of_change(&lease), Error::SessionEnded));
        let corrupt = refused(DATA_LOSS, "etcdserver: corrupt cluster");
        assert!(matches!(of_change(&corrupt), Error::Corrupt { .. }));
    }
}
