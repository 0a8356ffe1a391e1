//! The `If-*` headers of reads and writes.

use http::HeaderMap;
use http::HeaderName;
use http::header::IF_MATCH;
use http::header::IF_MODIFIED_SINCE;
use http::header::IF_NONE_MATCH;
use http::header::IF_UNMODIFIED_SINCE;

use crate::protocol::model::Detail;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::encryption;
use crate::protocol::wire::headers;
use crate::types::Conditions;
use crate::types::ContentEtag;
use crate::types::EtagMatch;
use crate::types::LockClaim;
use crate::types::Pairing;
use crate::types::Protection;
use crate::types::Timestamp;

/// Source: S3, DeleteObject.
const MODIFIED_AT: &str = "x-amz-if-match-last-modified-time";
const SIZE: &str = "x-amz-if-match-size";
/// The names of the four headers.
pub(super) struct ConditionNames {
    /// `If-Match`.
    pub(super) if_match: HeaderName,
    /// `If-None-Match`.
    pub(super) if_none_match: HeaderName,
    /// `If-Modified-Since`.
    pub(super) if_modified_since: HeaderName,
    /// `If-Unmodified-Since`.
    pub(super) if_unmodified_since: HeaderName,
}

/// The names that HTTP has.
static NAMES: ConditionNames = ConditionNames {
    if_match: IF_MATCH,
    if_none_match: IF_NONE_MATCH,
    if_modified_since: IF_MODIFIED_SINCE,
    if_unmodified_since: IF_UNMODIFIED_SINCE,
};

/// Conditions of a read.
pub(super) fn read(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    of_names(headers, &NAMES)
}

/// Conditions of a deletion: one tag, the time of the last change, the length. Conditions that S3
/// does not have on deletions are refused.
///
/// # Errors
/// `UnsupportedHeader` for other conditions; `InvalidHeaderValue` for a time or a length that
/// cannot be read.
pub(super) fn delete(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    if headers.contains_key(IF_NONE_MATCH) {
        return Err(unsupported(&IF_NONE_MATCH));
    }
    let mut precondition = write(headers)?;
    precondition.conditions.if_modified_at = match given(headers, MODIFIED_AT)? {
        Some(text) => Some(time(text).ok_or_else(|| headers::invalid(MODIFIED_AT, text))?),
        None => None,
    };
    precondition.conditions.if_len = given(headers, SIZE)?
        .and_then(|_| headers::number(headers, SIZE).transpose())
        .transpose()?;
    Ok(precondition)
}

/// A header that restricts or protects. If an empty one were ignored, the request would be carried
/// out without its protection.
pub(super) fn given<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    match headers::text(headers, name)? {
        None if headers.contains_key(name) => Err(headers::invalid(name, "")),
        text => Ok(text),
    }
}

/// Parses the time in a condition of a deletion: an HTTP date, or ISO 8601.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let http = httpdate::parse_http_date(text).ok();
    let http = http.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    http.map(Timestamp::from_unix).or_else(|| Timestamp::from_iso(text))
}

fn unsupported(name: &HeaderName) -> Refusal {
    Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, name.as_str())
}

/// Conditions of a write: tags only.
///
/// # Errors
/// `UnsupportedHeader` for dates, which S3 does not have on writes.
pub(super) fn write(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    for name in [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
        if headers.contains_key(&name) {
            return Err(unsupported(&name));
        }
    }
    if headers.contains_key(IF_MATCH) && headers.contains_key(IF_NONE_MATCH) {
        return Err(Refusal::new(Reason::UnsupportedHeader)
            .message("A write has If-Match or If-None-Match, not both."));
    }
    Ok(Precondition { over_archived: true, ..of_names(headers, &NAMES)? })
}

/// Reads conditions from headers of these names.
///
/// # Errors
/// `InvalidHeaderValue` for tags beyond ASCII, and for a header without a tag.
pub(super) fn of_names(
    headers: &HeaderMap,
    names: &ConditionNames,
) -> Result<Precondition, Refusal> {
    let conditions = Conditions {
        if_match: content_tags(headers, &names.if_match)?,
        if_none_match: content_tags(headers, &names.if_none_match)?,
        if_modified_since: date(headers, &names.if_modified_since),
        if_unmodified_since: date(headers, &names.if_unmodified_since),
        pairing: Pairing::TagFirst,
        ..Conditions::default()
    };
    Ok(Precondition {
        conditions,
        lease: None,
        if_tags: None,
        encryption: encryption::read(headers, &encryption::OF_OBJECT)?,
        over_archived: false,
        protection: Protection::default(),
        lock: LockClaim::default(),
        open_to: None,
    })
}

/// Reads a date. A malformed one is ignored (RFC 9110, 13.1.3).
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()?;
    Some(Timestamp::from_unix(time.duration_since(std::time::UNIX_EPOCH).ok()?))
}

/// Tags of content of a header.
fn content_tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<EtagMatch>, Refusal> {
    let mut texts = Vec::new();
    for value in headers.get_all(name) {
        texts.push(value.to_str().map_err(|_| headers::invalid(name.as_str(), ""))?);
    }
    match tags(texts.iter().copied()) {
        None if !texts.is_empty() => Err(headers::invalid(name.as_str(), &texts.join(","))),
        tags => Ok(tags),
    }
}

/// Tags of content in a text.
pub(super) fn tags_of(text: &str) -> Option<EtagMatch> {
    tags([text])
}

/// Tags of content, quoted or not, separated by commas. A tag that this server never returns
/// matches nothing. `None` if no tag is given.
fn tags<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<EtagMatch> {
    let (mut tags, mut is_given) = (Vec::new(), false);
    for tag in texts.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        if tag == "*" {
            return Some(EtagMatch::Any);
        }
        is_given |= !tag.is_empty();
        tags.extend(ContentEtag::parse(tag.strip_prefix("W/").unwrap_or(tag)));
    }
    is_given.then_some(EtagMatch::Content(tags))
}
