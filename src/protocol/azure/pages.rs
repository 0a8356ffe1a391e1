//! Put Page, also from URLs, Get Page Ranges, and headers about pages of other operations.
//!
//! Source: Blob REST "Put Page", "Put Page From URL", "Get Page Ranges", "Put Blob", "Set Blob
//! Properties".

use std::ops::Range;

use http::HeaderMap;

use crate::protocol::azure::conditions;
use crate::protocol::azure::copy;
use crate::protocol::azure::encryption;
use crate::protocol::azure::headers;
use crate::protocol::azure::limits;
use crate::protocol::azure::range;
use crate::protocol::azure::request::Request;
use crate::protocol::azure::upload;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::CopyPurpose;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::PageWrite;
use crate::protocol::model::operation::SequenceBounds;
use crate::protocol::model::operation::SequenceChange;
use crate::protocol::wire::query;
use crate::protocol::wire::query::Query;
use crate::protocol::wire::range::byte_range;
use crate::types::NewKind;
use crate::types::PAGE_BLOB_BYTES_MAX;
use crate::types::PAGE_BYTES;
use crate::types::Timestamp;

/// Ranges of one answer, when the request does not ask for fewer.
const RANGES_MAX: u32 = 10_000;

/// Put Page.
pub(super) fn put(request: &Request<'_>, path: BlobPath) -> Result<Operation, Refusal> {
    let all = request.headers;
    let update = is_update(all)?;
    let upload = upload::upload(all, limits::PUT_PAGE_BYTES_MAX)?;
    let range = range_of_pages(all)?;
    let len = range.end - range.start;
    if update {
        check_len(len)?;
    }
    let given = upload.framing.len_max();
    if update && given != len {
        return Err(Reason::InvalidPageRange.into());
    }
    if !update && given != 0 {
        return Err(headers::invalid("Content-Length", &given.to_string()));
    }
    Ok(ContentOperation::PutPage {
        path,
        precondition: encryption::with(all, conditions::write(all)?)?,
        sequence: sequence_bounds(all)?,
        write: if update { PageWrite::Update } else { PageWrite::Clear },
        range,
        upload,
    }
    .into())
}

/// Put Page From URL.
pub(super) fn put_from_url(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    copy::no_body(all)?;
    if !is_update(all)? {
        return Err(headers::invalid("x-ms-page-write", "clear"));
    }
    let range = range_of_pages(all)?;
    check_len(range.end - range.start)?;
    let source = copy::source(all, CopyPurpose::Part)?;
    let taken = source.range.ok_or_else(|| {
        Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, "x-ms-source-range")
    })?;
    let taken = taken.within(u64::MAX).ok_or(Reason::InvalidRange)?;
    if taken.end - taken.start != range.end - range.start {
        return Err(headers::invalid(
            "x-ms-source-range",
            &source.range.map_or_else(String::new, |r| r.to_string()),
        ));
    }
    Ok(ContentOperation::PutPageFromUrl {
        path,
        precondition: encryption::with(all, conditions::write(all)?)?,
        sequence: sequence_bounds(all)?,
        range,
        source: Box::new(source),
    }
    .into())
}

/// `x-ms-page-write`: whether pages are written, not cleared.
fn is_update(all: &HeaderMap) -> Result<bool, Refusal> {
    match headers::text(all, "x-ms-page-write")? {
        Some(text) if text.eq_ignore_ascii_case("update") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("clear") => Ok(false),
        Some(other) => Err(headers::invalid("x-ms-page-write", other)),
        None => Err(Refusal::new(Reason::MissingRequiredHeader)
            .detail(Detail::HeaderName, "x-ms-page-write")),
    }
}

fn check_len(len: u64) -> Result<(), Refusal> {
    if len <= limits::PUT_PAGE_BYTES_MAX {
        return Ok(());
    }
    Err(Refusal::new(Reason::RequestBodyTooLarge)
        .detail(Detail::Limit, limits::PUT_PAGE_BYTES_MAX.to_string()))
}

/// The range of a Put Page: closed, and of whole pages.
fn range_of_pages(all: &HeaderMap) -> Result<Range<u64>, Refusal> {
    let name = if all.contains_key("x-ms-range") { "x-ms-range" } else { "range" };
    let text = headers::text(all, name)?.ok_or_else(|| {
        Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, "Range")
    })?;
    let parsed = byte_range(text).ok_or_else(|| headers::invalid(name, text))?;
    let refused = || Refusal::new(Reason::InvalidPageRange);
    let range = parsed.within(u64::MAX).ok_or_else(refused)?;
    let aligned = |offset: u64| offset.is_multiple_of(PAGE_BYTES);
    if !aligned(range.start) || !aligned(range.end) || range.end > PAGE_BLOB_BYTES_MAX {
        return Err(refused());
    }
    Ok(range)
}

/// `x-ms-if-sequence-number-*`.
fn sequence_bounds(all: &HeaderMap) -> Result<SequenceBounds, Refusal> {
    Ok(SequenceBounds {
        at_most: headers::number(all, "x-ms-if-sequence-number-le")?,
        below: headers::number(all, "x-ms-if-sequence-number-lt")?,
        equal: headers::number(all, "x-ms-if-sequence-number-eq")?,
    })
}

/// The new page blob that Put Blob requests.
pub(super) fn kind(all: &HeaderMap) -> Result<NewKind, Refusal> {
    let len = len(all)?.ok_or_else(|| {
        Refusal::new(Reason::MissingRequiredHeader)
            .detail(Detail::HeaderName, "x-ms-blob-content-length")
    })?;
    Ok(NewKind::Page { len, sequence: sequence(all)?.unwrap_or(0) })
}

/// `x-ms-blob-content-length`.
fn len(all: &HeaderMap) -> Result<Option<u64>, Refusal> {
    const NAME: &str = "x-ms-blob-content-length";
    let Some(len) = headers::number(all, NAME)? else { return Ok(None) };
    if !len.is_multiple_of(PAGE_BYTES) || len > PAGE_BLOB_BYTES_MAX {
        return Err(headers::invalid(NAME, &len.to_string()));
    }
    Ok(Some(len))
}

/// `x-ms-blob-sequence-number`: 0 to 2^63 - 1.
fn sequence(all: &HeaderMap) -> Result<Option<u64>, Refusal> {
    const NAME: &str = "x-ms-blob-sequence-number";
    let Some(number) = headers::number(all, NAME)? else { return Ok(None) };
    if i64::try_from(number).is_err() {
        return Err(headers::invalid(NAME, &number.to_string()));
    }
    Ok(Some(number))
}

/// Set Blob Properties with what only page blobs have; `None` when the request says nothing of
/// that.
pub(super) fn set(all: &HeaderMap, path: &BlobPath) -> Result<Option<Operation>, Refusal> {
    const ACTION: &str = "x-ms-sequence-number-action";
    let missing =
        |name| Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, name);
    let number = sequence(all)?;
    let required = || number.ok_or_else(|| missing("x-ms-blob-sequence-number"));
    let change = match headers::text(all, ACTION)?.map(str::to_ascii_lowercase).as_deref() {
        None if number.is_some() => return Err(missing(ACTION)),
        None => None,
        Some("max") => Some(SequenceChange::Max(required()?)),
        Some("update") => Some(SequenceChange::Update(required()?)),
        Some("increment") if number.is_none() => Some(SequenceChange::Increment),
        // With a number it would say two things.
        Some("increment") => return Err(headers::invalid(ACTION, "increment")),
        Some(other) => return Err(headers::invalid(ACTION, other)),
    };
    let len = len(all)?;
    if len.is_none() && change.is_none() {
        return Ok(None);
    }
    let properties = headers::properties(all, false)?;
    // Properties are set together or, when none is given, not at all.
    let properties =
        (properties != crate::types::BlobProperties::default()).then(|| properties.replacing());
    let precondition = conditions::write(all)?;
    // Another length changes content.
    let precondition = match len {
        Some(_) => encryption::with(all, precondition)?,
        None => encryption::with_any(all, precondition)?,
    };
    let path = path.clone();
    Ok(Some(
        BlobOperation::SetPageProperties { path, precondition, properties, len, sequence: change }
            .into(),
    ))
}

/// `prevsnapshot`. The other way to name the snapshot, by its URL, is for the accounts of managed
/// disks, and this is none.
fn compared_with(all: &HeaderMap, parameters: &Query) -> Result<Option<Timestamp>, Refusal> {
    const NAME: &str = "prevsnapshot";
    const BY_URL: &str = "x-ms-previous-snapshot-url";
    if all.contains_key(BY_URL) {
        return Err(Refusal::new(Reason::PreviousSnapshotOperationNotSupported)
            .detail(Detail::HeaderName, BY_URL));
    }
    match parameters.get(NAME)? {
        Some(text) => Timestamp::from_iso(text).map(Some).ok_or_else(|| query::invalid(NAME, text)),
        None if parameters.has(NAME) => Err(query::invalid(NAME, "")),
        None => Ok(None),
    }
}

/// Get Page Ranges.
pub(super) fn ranges(
    all: &HeaderMap,
    parameters: &Query,
    path: BlobPath,
) -> Result<Operation, Refusal> {
    let max_results = match parameters.get("maxresults")? {
        None => None,
        Some(text) => match text.parse::<u32>() {
            Ok(0) | Err(_) => {
                let code = Reason::OutOfRangeQueryParameterValue;
                return Err(query::parameter(code, "maxresults", text));
            }
            Ok(number) => Some(number.min(RANGES_MAX)),
        },
    };
    let marker = match parameters.get("marker")? {
        None => None,
        Some(text) => Some(text.parse::<u64>().map_err(|_| query::invalid("marker", text))?),
    };
    Ok(BlobOperation::GetPageRanges {
        path,
        since: compared_with(all, parameters)?,
        precondition: conditions::read(all)?,
        range: range::range(all)?,
        marker,
        max_results: max_results.unwrap_or(RANGES_MAX),
    }
    .into())
}
