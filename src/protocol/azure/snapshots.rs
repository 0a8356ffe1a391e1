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
use crate::types::Revision;
use crate::types::Timestamp;

/// `snapshot=` or `versionid=` of a request about a blob. Snapshots and versions are read, deleted,
/// tagged, protected and moved between tiers, nothing else.
pub(super) fn revision(request: &Request<'_>, comp: Option<&str>) -> Result<Revision, Refusal> {
    let snapshot = time(request, comp, "snapshot")?;
    let version = time(request, comp, "versionid")?;
    match (snapshot, version) {
        (None, None) => Ok(Revision::Current),
        (Some(taken), None) => Ok(Revision::Snapshot(taken)),
        (None, Some(committed)) => Ok(Revision::Version(committed)),
        (Some(_), Some(committed)) => Err(query::invalid("versionid", &committed.to_iso())),
    }
}

fn time(
    request: &Request<'_>,
    comp: Option<&str>,
    name: &str,
) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = request.query.get(name)? else {
        return if request.query.has(name) { Err(query::invalid(name, "")) } else { Ok(None) };
    };
    let time = Timestamp::from_iso(text).ok_or_else(|| query::invalid(name, text))?;
    match (request.method, comp) {
        (&Method::GET | &Method::HEAD, _)
        | (&Method::DELETE, None)
        | (_, Some("tier" | "tags" | "immutabilitypolicies" | "legalhold" | "query")) => {
            Ok(Some(time))
        }
        _ => Err(query::invalid(name, text)),
    }
}

/// Snapshot Blob: metadata, when any is given, is that of the snapshot.
pub(super) fn take(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = encryption::with(all, conditions::write(all)?)?;
    let metadata = Some(headers::metadata(all)?).filter(|metadata| !metadata.is_empty());
    Ok(BlobOperation::SnapshotBlob { path, precondition, metadata }.into())
}

/// Whether Delete Blob removes the blob, its snapshots, or both.
pub(super) fn scope(
    all: &HeaderMap,
    parameters: &Query,
    path: &BlobPath,
) -> Result<DeleteScope, Refusal> {
    const NAME: &str = "x-ms-delete-snapshots";
    const TYPE: &str = "deletetype";
    match parameters.get(TYPE)? {
        Some(text) if text.eq_ignore_ascii_case("permanent") => {
            return match headers::text(all, NAME)? {
                Some(text) => Err(headers::invalid(NAME, text)),
                None => Ok(DeleteScope::Permanently(path.revision)),
            };
        }
        Some(text) => return Err(query::invalid(TYPE, text)),
        None => {}
    }
    let own = match path.revision {
        Revision::Current | Revision::Null => None,
        Revision::Snapshot(taken) => Some(DeleteScope::Snapshot(taken)),
        Revision::Version(committed) => Some(DeleteScope::FormerVersion(committed)),
    };
    match (headers::text(all, NAME)?, own) {
        (None, own) => Ok(own.unwrap_or(DeleteScope::Blob)),
        (Some(text), None) if text.eq_ignore_ascii_case("include") => {
            Ok(DeleteScope::BlobAndSnapshots)
        }
        (Some(text), None) if text.eq_ignore_ascii_case("only") => Ok(DeleteScope::Snapshots),
        (Some(text), _) => Err(headers::invalid(NAME, text)),
    }
}
