//! Lists of objects and of their versions.

use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ListAfter;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::VersionAfter;
use crate::protocol::model::operation::VersionOrder;
use crate::protocol::s3::arguments;
use crate::protocol::s3::arguments::wrong;
use crate::protocol::s3::markers;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::versions;
use crate::protocol::wire::query::Query;
use crate::types::Revision;

/// Parameters of the second version of the list.
const OF_V2: &[&str] = &["continuation-token", "start-after", "fetch-owner"];

/// `ListObjects`.
pub(super) fn objects(request: &Request<'_>) -> Result<Parsed, Refusal> {
    refuse(request.query, OF_V2)?;
    let after = request.query.get("marker")?.map(markers::read);
    list(request, Page { after, ..Page::default() })
}

/// `ListObjectsV2`. Another `list-type` than 2 is the first version of the list.
pub(super) fn objects_v2(request: &Request<'_>) -> Result<Parsed, Refusal> {
    if !is_v2(request.query) {
        return objects(request);
    }
    refuse(request.query, &["marker"])?;
    let after = request.query.get("start-after")?.map(|name| ListAfter::Name(name.to_owned()));
    let token = arguments::token(request.query, "continuation-token")?;
    list(request, Page { marker: token, after, versions: None })
}

/// Whether a list is of the second version.
pub(super) fn is_v2(query: &Query) -> bool {
    query.get("list-type").ok().flatten() == Some("2")
}

/// `ListObjectVersions`: versions and delete markers, the newest of each key first.
pub(super) fn versions(request: &Request<'_>) -> Result<Parsed, Refusal> {
    const VERSION: &str = "version-id-marker";
    let query = request.query;
    let (key, version) = (query.get("key-marker")?, query.get(VERSION)?);
    let mut after = key.map(markers::read);
    if query.has(VERSION) {
        match (version, key) {
            (None, _) => {
                return Err(wrong(VERSION, "", "A version-id marker cannot be empty."));
            }
            (Some(text), None) => {
                let message = "A version-id marker cannot be specified without a key marker.";
                return Err(wrong(VERSION, text, message));
            }
            (Some(text), Some(key)) => {
                let version = match versions::of_id(text) {
                    Some(Revision::Version(time)) => VersionAfter::Time(time),
                    Some(Revision::Null) => VersionAfter::Null,
                    Some(Revision::Current | Revision::Snapshot(_)) | None => {
                        return Err(wrong(VERSION, text, "Invalid version id specified"));
                    }
                };
                after = Some(match markers::read(key) {
                    ListAfter::Name(key) => ListAfter::PassedVersion(key, version),
                    ListAfter::NameOrPrefix(_)
                    | ListAfter::Version(..)
                    | ListAfter::PassedVersion(..) => ListAfter::Version(key.to_owned(), version),
                });
            }
        }
    }
    list(request, Page { versions: Some(VersionOrder::NewestFirst), after, ..Page::default() })
}

/// Refuses parameters that only the other version of the list has.
fn refuse(query: &Query, others: &[&str]) -> Result<(), Refusal> {
    match others.iter().find(|name| query.has(name)) {
        Some(name) => {
            let value = query.get(name).ok().flatten().unwrap_or_default();
            Err(wrong(name, value, format!("{name} is not of this version of the list.")))
        }
        None => Ok(()),
    }
}

/// The start of a page, and its content.
#[derive(Default)]
struct Page {
    marker: Option<String>,
    after: Option<ListAfter>,
    versions: Option<VersionOrder>,
}

fn list(request: &Request<'_>, page: Page) -> Result<Parsed, Refusal> {
    let Page { marker, after, versions } = page;
    let query = request.query;
    let owned = |name: &str| Ok::<_, Refusal>(query.get(name)?.map(str::to_owned));
    arguments::is_encoded(query)?;
    let delimiter = owned("delimiter")?;
    // A parameter of Ceph for lists in any order. Lists of Blockyard are always in order.
    if delimiter.is_some() && query.get("allow-unordered")?.is_some_and(is_true) {
        return Err(wrong(
            "allow-unordered",
            "true",
            "allow-unordered cannot be used with a delimiter.",
        ));
    }
    let list = ListBlobs {
        container: request.bucket()?,
        prefix: owned("prefix")?,
        delimiter,
        marker,
        start_from: None,
        end_before: None,
        after,
        exact: true,
        max_results: Some(arguments::served(arguments::page_size(query, "max-keys")?)),
        metadata: false,
        uncommitted: false,
        snapshots: false,
        versions,
        deleted: false,
        versions_only: false,
        tags: false,
        copy: false,
        retention: false,
        legal_hold: false,
        content_etag: true,
        columns: false,
    };
    Ok(Parsed::ready(ContainerOperation::ListBlobs(list).into()))
}

/// Whether a parameter says yes.
pub(super) fn is_true(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}
