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
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::wire::headers;
use crate::types::Conditions;
use crate::types::ContentEtag;
use crate::types::EtagMatch;
use crate::types::Pairing;
use crate::types::Timestamp;

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

/// Conditions of a write: tags only.
///
/// # Errors
/// `UnsupportedHeader` for dates, which S3 does not have on writes.
pub(super) fn write(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    for name in [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
        if headers.contains_key(&name) {
            return Err(
                Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, name.as_str())
            );
        }
    }
    if headers.contains_key(IF_MATCH) && headers.contains_key(IF_NONE_MATCH) {
        return Err(Refusal::new(Reason::UnsupportedHeader)
            .message("A write has If-Match or If-None-Match, not both."));
    }
    of_names(headers, &NAMES)
}

/// Conditions in headers of these names.
///
/// # Errors
/// `InvalidHeaderValue` for tags beyond ASCII.
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
    };
    Ok(Precondition {
        conditions,
        lease: None,
        if_tags: None,
        encryption: RequestEncryption::Plain,
    })
}

/// A date. One that cannot be read is ignored (RFC 9110, 13.1.3).
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()?;
    Some(Timestamp::from_unix(time.duration_since(std::time::UNIX_EPOCH).ok()?))
}

/// Tags of content, quoted or not. A tag that this server never returns matches nothing.
fn content_tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<EtagMatch>, Refusal> {
    let (mut tags, mut is_given) = (Vec::new(), false);
    for value in headers.get_all(name) {
        let text = value.to_str().map_err(|_| headers::invalid(name.as_str(), ""))?;
        for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            if tag == "*" {
                return Ok(Some(EtagMatch::Any));
            }
            is_given = true;
            tags.extend(ContentEtag::parse(tag.strip_prefix("W/").unwrap_or(tag)));
        }
    }
    Ok(is_given.then_some(EtagMatch::Content(tags)))
}
