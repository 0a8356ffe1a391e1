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

/// Conditions of a read.
pub(super) fn read(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    precondition(headers)
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
    precondition(headers)
}

fn precondition(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    let conditions = Conditions {
        if_match: content_tags(headers, &IF_MATCH)?,
        if_none_match: content_tags(headers, &IF_NONE_MATCH)?,
        if_modified_since: date(headers, &IF_MODIFIED_SINCE),
        if_unmodified_since: date(headers, &IF_UNMODIFIED_SINCE),
        pairing: Pairing::TagFirst,
    };
    Ok(Precondition {
        conditions,
        lease: None,
        if_tags: None,
        encryption: RequestEncryption::Plain,
        open_to: None,
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
