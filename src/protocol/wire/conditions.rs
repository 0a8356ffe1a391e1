//! The `If-*` headers (RFC 9110, section 13).

use http::HeaderMap;
use http::HeaderName;
use http::header::IF_MATCH;
use http::header::IF_MODIFIED_SINCE;
use http::header::IF_NONE_MATCH;
use http::header::IF_UNMODIFIED_SINCE;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::headers;
use crate::types::Conditions;
use crate::types::Etag;
use crate::types::EtagMatch;
use crate::types::Pairing;
use crate::types::Timestamp;

/// All conditions of a head.
pub(in crate::protocol) fn conditions(all: &HeaderMap) -> Result<Conditions, Refusal> {
    Ok(Conditions {
        if_match: etags(all, &IF_MATCH)?,
        if_none_match: etags(all, &IF_NONE_MATCH)?,
        if_modified_since: date(all, &IF_MODIFIED_SINCE)?,
        if_unmodified_since: date(all, &IF_UNMODIFIED_SINCE)?,
        if_modified_at: None,
        if_len: None,
        pairing: Pairing::Both,
    })
}

fn date(all: &HeaderMap, name: &HeaderName) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = headers::text(all, name)? else { return Ok(None) };
    let time = httpdate::parse_http_date(text).ok();
    let since_epoch = time.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    // Ignoring a date that cannot be read would turn a conditional request into an unconditional
    // one.
    since_epoch
        .map(|d| Some(Timestamp::from_unix(d)))
        .ok_or_else(|| headers::invalid(name.as_str(), text))
}

fn etags(all: &HeaderMap, name: &HeaderName) -> Result<Option<EtagMatch>, Refusal> {
    let mut tags = Vec::new();
    let mut any = false;
    for value in all.get_all(name) {
        let text = value.to_str().map_err(|_| headers::invalid(name.as_str(), ""))?;
        for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            any |= tag == "*";
            tags.push(Etag::parse(tag));
        }
    }
    match (any, tags.len()) {
        (_, 0) => Ok(None),
        (true, 1) => Ok(Some(EtagMatch::Any)),
        // "*" among tags matches everything and says nothing.
        (true, _) => Err(Reason::MultipleConditionHeadersNotSupported.into()),
        (false, _) => Ok(Some(EtagMatch::Tags(tags))),
    }
}
