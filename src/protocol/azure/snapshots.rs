//! Snapshots in requests: which operations take one, taking one, and what a deletion does to them.
//!
//! Source: "Snapshot Blob", "Delete Blob", "Creating a snapshot of a blob".

use http::HeaderMap;
use http::Method;

use crate::protocol::azure::conditions;
use crate::protocol::azure::encryption;
use crate::protocol::azure::headers;
use crate::protocol::azure::request::Request;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::wire::query;
use crate::protocol::wire::query::Query;
use crate::types::DeleteScope;
use crate::types::Timestamp;

/// `snapshot=` of a request about a blob. Snapshots are read, deleted, tagged and moved between
/// tiers, nothing else.
pub(super) fn time(
    request: &Request<'_>,
    comp: Option<&str>,
) -> Result<Option<Timestamp>, Refusal> {
    const NAME: &str = "snapshot";
    let Some(text) = request.query.get(NAME)? else {
        return if request.query.has(NAME) { Err(query::invalid(NAME, "")) } else { Ok(None) };
    };
    let taken = Timestamp::from_iso(text).ok_or_else(|| query::invalid(NAME, text))?;
    match (request.method, comp) {
        (&Method::GET | &Method::HEAD, _)
        | (&Method::DELETE, None)
        | (_, Some("tier" | "tags")) => Ok(Some(taken)),
        _ => Err(query::invalid(NAME, text)),
    }
}

/// Snapshot Blob: metadata, when any is given, is that of the snapshot.
pub(super) fn take(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = encryption::with(all, conditions::write(all)?)?;
    let metadata = Some(headers::metadata(all)?).filter(|metadata| !metadata.is_empty());
    Ok(BlobOperation::SnapshotBlob { path, precondition, metadata }.into())
}

/// What Delete Blob removes. What is deleted is not kept, so asking for a permanent deletion of a
/// snapshot asks for what happens anyway.
pub(super) fn scope(
    all: &HeaderMap,
    parameters: &Query,
    path: &BlobPath,
) -> Result<DeleteScope, Refusal> {
    const NAME: &str = "x-ms-delete-snapshots";
    const TYPE: &str = "deletetype";
    match parameters.get(TYPE)? {
        Some(text) if path.snapshot.is_none() || !text.eq_ignore_ascii_case("permanent") => {
            return Err(query::invalid(TYPE, text));
        }
        Some(_) | None => {}
    }
    match (headers::text(all, NAME)?, path.snapshot) {
        (None, None) => Ok(DeleteScope::Blob),
        (None, Some(taken)) => Ok(DeleteScope::Snapshot(taken)),
        (Some(text), None) if text.eq_ignore_ascii_case("include") => {
            Ok(DeleteScope::BlobAndSnapshots)
        }
        (Some(text), None) if text.eq_ignore_ascii_case("only") => Ok(DeleteScope::Snapshots),
        (Some(text), _) => Err(headers::invalid(NAME, text)),
    }
}
