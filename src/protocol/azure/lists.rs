//! Parameters of List Containers and List Blobs.

use http::header::ACCEPT;

use crate::protocol::azure::ServiceVersion;
use crate::protocol::azure::request::Request;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::operation::VersionOrder;
use crate::protocol::wire::query;
use crate::protocol::wire::query::Query;
use crate::types::ContainerName;

/// Entries of one page at most.
const MAX_RESULTS: u32 = 5_000;

/// `include` values of List Blobs that have nothing to show here, because such entries cannot exist
/// yet.
const BLOBS_INCLUDE_EMPTY: &[&str] = &["permissions"];

pub(super) fn containers(query: &Query) -> Result<ListContainers, Refusal> {
    let include = include(query, &["metadata", "deleted"], &["system"])?;
    Ok(ListContainers {
        prefix: owned(query, "prefix")?,
        marker: owned(query, "marker")?,
        max_results: max_results(query)?,
        metadata: include.contains(&"metadata"),
        deleted: include.contains(&"deleted"),
        owner: None,
        exact: false,
    })
}

/// The content type of a page in columns.
pub(super) const ARROW: &str = "application/vnd.apache.arrow.stream";
/// The first version with pages in columns; under earlier ones `Accept` has no meaning.
const ARROW_SINCE: ServiceVersion = ServiceVersion::new(2026, 10, 6);

/// Whether the request takes a page in columns.
fn wants_columns(request: &Request<'_>) -> bool {
    let accepted = request.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(','));
    let is_arrow = |kind: &str| {
        let mut parts = kind.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(ARROW));
        let is_refused = |part: &str| {
            part.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()).is_some_and(|q| q <= 0.0)
        };
        is_named && !parts.any(is_refused)
    };
    request.version >= ARROW_SINCE && kinds.any(is_arrow)
}

pub(super) fn blobs(request: &Request<'_>, container: ContainerName) -> Result<ListBlobs, Refusal> {
    let query = request.query;
    let served = [
        "metadata",
        "uncommittedblobs",
        "snapshots",
        "tags",
        "copy",
        "versions",
        "deleted",
        "deletedwithversions",
        "immutabilitypolicy",
        "legalhold",
    ];
    let include = include(query, &served, BLOBS_INCLUDE_EMPTY)?;
    Ok(ListBlobs {
        container,
        prefix: owned(query, "prefix")?,
        delimiter: owned(query, "delimiter")?,
        marker: owned(query, "marker")?,
        start_from: owned(query, "startfrom")?,
        end_before: owned(query, "endbefore")?,
        after: None,
        exact: false,
        max_results: max_results(query)?,
        metadata: include.contains(&"metadata"),
        snapshots: include.contains(&"snapshots"),
        versions: include.contains(&"versions").then_some(VersionOrder::OldestFirst),
        deleted: include.contains(&"deleted"),
        versions_only: include.contains(&"deletedwithversions"),
        uncommitted: include.contains(&"uncommittedblobs"),
        tags: include.contains(&"tags"),
        copy: include.contains(&"copy"),
        retention: include.contains(&"immutabilitypolicy"),
        legal_hold: include.contains(&"legalhold"),
        content_etag: false,
        columns: wants_columns(request),
    })
}

pub(super) fn owned(query: &Query, name: &str) -> Result<Option<String>, Refusal> {
    Ok(query.get(name)?.map(str::to_owned))
}

pub(super) fn max_results(query: &Query) -> Result<Option<u32>, Refusal> {
    let Some(text) = query.get("maxresults")? else { return Ok(None) };
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(query::invalid("maxresults", text));
    }
    // Digits beyond 32 bits are still a number above the page limit.
    let number: u32 = digits.parse().unwrap_or(MAX_RESULTS).min(MAX_RESULTS);
    if sign < 0 || number == 0 {
        let code = Reason::OutOfRangeQueryParameterValue;
        return Err(query::parameter(code, "maxresults", text)
            .detail(Detail::Minimum, "1")
            .detail(Detail::Maximum, MAX_RESULTS.to_string()));
    }
    Ok(Some(number))
}

/// The served values of `include` that the request names; values with nothing to show are accepted.
fn include(
    query: &Query,
    served: &[&'static str],
    empty: &[&str],
) -> Result<Vec<&'static str>, Refusal> {
    let text = query.get("include")?.unwrap_or("");
    let mut found = Vec::new();
    for value in text.split(',').map(str::trim).filter(|value| !value.is_empty()) {
        match served.iter().find(|known| known.eq_ignore_ascii_case(value)) {
            Some(known) => found.push(*known),
            None if empty.iter().any(|known| known.eq_ignore_ascii_case(value)) => {}
            None => return Err(query::invalid("include", text)),
        }
    }
    Ok(found)
}
