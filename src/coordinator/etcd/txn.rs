//! Transactions in the terms of etcd.

use std::collections::HashSet;

use bytes::Bytes;

use super::super::api::Compare;
use super::super::api::Error;
use super::super::api::Op;
use super::super::api::Session;
use super::super::transaction::TXN_ITEMS_MAX;
use super::keys::Keys;
use super::wire;
use super::wire::DeleteRangeRequest;
use super::wire::Expected;
use super::wire::PutRequest;
use super::wire::RangeRequest;
use super::wire::Request;
use super::wire::RequestOp;
use super::wire::TxnRequest;

/// A revision that no key has.
const NEVER: i64 = -1;

/// The request for a transaction.
///
/// # Errors
/// [`Error::Unavailable`] if it has too many conditions or changes, [`Error::SessionEnded`] if a
/// session cannot be one of etcd.
pub(super) fn request(keys: &Keys, when: &[Compare], then: &[Op]) -> Result<TxnRequest, Error> {
    for (count, what) in [(when.len(), "conditions"), (then.len(), "changes")] {
        if count > TXN_ITEMS_MAX {
            let reason = format!("a transaction has {count} {what}, more than {TXN_ITEMS_MAX}");
            return Err(Error::Unavailable { reason: reason.into() });
        }
    }
    let compare = when.iter().map(|one| compare(keys, one)).collect();
    // Etcd refuses two changes of one key. The last one is what counts.
    let mut seen = HashSet::with_capacity(then.len());
    let mut last: Vec<&Op> = then.iter().rev().filter(|op| seen.insert(key_of(op))).collect();
    last.reverse();
    let mut success: Vec<RequestOp> =
        last.into_iter().map(|op| change(keys, op)).collect::<Result<_, _>>()?;
    if success.is_empty() {
        // A member answers conditions alone from what it knows, which may be old. A read among the
        // operations makes it ask the others first.
        let key = keys.outer(b"");
        let read = RangeRequest { key, count_only: true, ..RangeRequest::default() };
        success.push(RequestOp { request: Some(Request::Range(read)) });
    }
    Ok(TxnRequest { compare, success })
}

/// The lease of a session, `None` if it can be none.
pub(super) fn lease_of(session: Session) -> Option<i64> {
    // Etcd writes a key with lease 0 without a lease.
    i64::try_from(session.0).ok().filter(|lease| *lease > 0)
}

/// Reads the keys that a request changes.
pub(super) fn read_back(request: &TxnRequest) -> TxnRequest {
    let key = |op: &RequestOp| match &op.request {
        Some(Request::Put(put)) => Some(put.key.clone()),
        Some(Request::Delete(delete)) => Some(delete.key.clone()),
        Some(Request::Range(_)) | None => None,
    };
    let read = |key| RangeRequest { key, ..RangeRequest::default() };
    let keys = request.success.iter().filter_map(key);
    let success = keys.map(|key| RequestOp { request: Some(Request::Range(read(key))) });
    TxnRequest { compare: Vec::new(), success: success.collect() }
}

fn key_of(op: &Op) -> &Bytes {
    match op {
        Op::Put(key, _) | Op::PutWithSession(key, _, _) | Op::Delete(key) => key,
    }
}

fn compare(keys: &Keys, compare: &Compare) -> wire::Compare {
    let (key, target, expected) = match compare {
        Compare::ModRevision(key, revision) => {
            // To etcd a key that does not exist has revision 0. Here it has none.
            let revision = i64::try_from(revision.0).ok().filter(|revision| *revision > 0);
            let expected = Expected::ModRevision(revision.unwrap_or(NEVER));
            (key, wire::TARGET_MOD, expected)
        }
        Compare::Absent(key) => (key, wire::TARGET_VERSION, Expected::Version(0)),
        Compare::Value(key, value) => (key, wire::TARGET_VALUE, Expected::Value(value.clone())),
    };
    wire::Compare { target, key: keys.outer(key), expected: Some(expected) }
}

fn change(keys: &Keys, op: &Op) -> Result<RequestOp, Error> {
    let put = |key: &Bytes, value: &Bytes, lease| {
        Request::Put(PutRequest { key: keys.outer(key), value: value.clone(), lease })
    };
    let request = match op {
        Op::Put(key, value) => put(key, value, 0),
        Op::PutWithSession(key, value, session) => {
            put(key, value, lease_of(*session).ok_or(Error::SessionEnded)?)
        }
        Op::Delete(key) => Request::Delete(DeleteRangeRequest { key: keys.outer(key) }),
    };
    Ok(RequestOp { request: Some(request) })
}
