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
use crate::types::ContentEtag;
use crate::types::Etag;
use crate::types::EtagMatch;
use crate::types::Pairing;
use crate::types::Timestamp;

/// All conditions of a head.
pub(in crate::protocol) fn conditions(all: &HeaderMap) -> Result<Conditions, Refusal> {
    Ok(Conditions {
        if_match: tags(all, &IF_MATCH, Etag::parse)?.map(of_commit),
        if_none_match: tags(all, &IF_NONE_MATCH, Etag::parse)?.map(of_commit),
        if_modified_since: date(all, &IF_MODIFIED_SINCE)?,
        if_unmodified_since: date(all, &IF_UNMODIFIED_SINCE)?,
        pairing: Pairing::Both,
    })
}

/// As [`conditions`], with tags of content, which decide as RFC 9110 says.
pub(in crate::protocol) fn conditions_of_content(all: &HeaderMap) -> Result<Conditions, Refusal> {
    let content = |name| tags(all, name, ContentEtag::parse);
    Ok(Conditions {
        if_match: content(&IF_MATCH)?.map(of_content),
        if_none_match: content(&IF_NONE_MATCH)?.map(of_content),
        if_modified_since: date(all, &IF_MODIFIED_SINCE)?,
        if_unmodified_since: date(all, &IF_UNMODIFIED_SINCE)?,
        pairing: Pairing::TagFirst,
    })
}

fn of_content(tags: Tags<ContentEtag>) -> EtagMatch {
    match tags {
        Tags::Any => EtagMatch::Any,
        Tags::These(tags) => EtagMatch::Content(tags.into_iter().flatten().collect()),
    }
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

/// The tags of a header. `None` is one that this server never returns.
enum Tags<T> {
    Any,
    These(Vec<Option<T>>),
}

fn of_commit(tags: Tags<Etag>) -> EtagMatch {
    match tags {
        Tags::Any => EtagMatch::Any,
        Tags::These(tags) => EtagMatch::Tags(tags),
    }
}

fn tags<T>(
    all: &HeaderMap,
    name: &HeaderName,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<Tags<T>>, Refusal> {
    let mut tags = Vec::new();
    let mut any = false;
    for value in all.get_all(name) {
        let text = value.to_str().map_err(|_| headers::invalid(name.as_str(), ""))?;
        for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            any |= tag == "*";
            tags.push(parse(tag));
        }
    }
    match (any, tags.len()) {
        (_, 0) => Ok(None),
        (true, 1) => Ok(Some(Tags::Any)),
        // "*" among tags matches everything and says nothing.
        (true, _) => Err(Reason::MultipleConditionHeadersNotSupported.into()),
        (false, _) => Ok(Some(Tags::These(tags))),
    }
}
