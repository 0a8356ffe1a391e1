//! The `If-*` headers (RFC 9110, section 13).

use http::HeaderMap;
use http::HeaderName;
use http::header::IF_MATCH;
use http::header::IF_MODIFIED_SINCE;
use http::header::IF_NONE_MATCH;
use http::header::IF_UNMODIFIED_SINCE;

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
        pairing: Pairing::Both,
        ..Conditions::default()
    })
}

/// The date of a condition.
pub(in crate::protocol) fn date(
    all: &HeaderMap,
    name: &HeaderName,
) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = headers::text(all, name)? else { return Ok(None) };
    let time = httpdate::parse_http_date(text).ok();
    let since_epoch = time.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    // Ignoring a date that cannot be read would turn a conditional request into an unconditional
    // one.
    since_epoch
        .map(|d| Some(Timestamp::from_unix(d)))
        .ok_or_else(|| headers::invalid(name.as_str(), text))
}

/// The tags of a condition. `*` among tags matches what `*` alone does.
pub(in crate::protocol) fn etags(
    all: &HeaderMap,
    name: &HeaderName,
) -> Result<Option<EtagMatch>, Refusal> {
    let mut tags = Vec::new();
    let mut any = false;
    for tag in texts(all, name) {
        let tag = tag.map_err(|()| headers::invalid(name.as_str(), ""))?;
        any |= tag == "*";
        tags.push(Etag::parse(tag));
    }
    if tags.is_empty() {
        return Ok(None);
    }
    Ok(Some(if any { EtagMatch::Any } else { EtagMatch::Tags(tags) }))
}

/// Whether a condition has several tags.
pub(in crate::protocol) fn has_several(all: &HeaderMap, name: &HeaderName) -> bool {
    texts(all, name).nth(1).is_some()
}

/// The tags of all lines of a header.
fn texts<'a>(all: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = Result<&'a str, ()>> {
    all.get_all(name).into_iter().flat_map(|value| {
        let (text, is_broken) = value.to_str().map_or(("", true), |text| (text, false));
        let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(Ok);
        tags.chain(is_broken.then_some(Err(())))
    })
}
