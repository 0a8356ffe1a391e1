//! Blob index tags: the header, the XML body both ways, conditions, searches and their pages.
//!
//! Source: "Set Blob Tags", "Get Blob Tags", "Find Blobs by Tags", "Find Blobs by Tags in
//! Container".

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::protocol::azure::headers;
use crate::protocol::azure::lists;
use crate::protocol::azure::names;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::FindBlobs;
use crate::protocol::model::reply::FoundBlobs;
use crate::protocol::wire::escape;
use crate::protocol::wire::percent::escapes_are_whole;
use crate::protocol::wire::query;
use crate::protocol::wire::query::Query;
use crate::protocol::wire::xml;
use crate::types::ContainerName;
use crate::types::TagCondition;
use crate::types::TagFilterError;
use crate::types::TagQuery;
use crate::types::Tags;
use crate::types::TagsError;

/// Bytes of a Set Blob Tags body: ten tags of the longest kind, with room for white space.
pub(super) const TAGS_BYTES_MAX: u64 = 64 * 1024;

fn tags(pairs: Vec<(String, String)>) -> Result<Tags, Refusal> {
    if pairs.iter().any(|(key, _)| key.is_empty()) {
        return Err(Reason::EmptyTagName.into());
    }
    if pairs.iter().any(|(key, value)| !key.chars().chain(value.chars()).all(is_allowed)) {
        return Err(Reason::InvalidTag.into());
    }
    Tags::new(pairs).map_err(|error| match error {
        TagsError::TooMany => Reason::TagsTooLarge.into(),
        TagsError::Invalid => Reason::InvalidTag.into(),
        TagsError::Duplicate => Reason::DuplicateTagNames.into(),
    })
}

/// The characters of keys and values. Tags that other protocols set may have more.
fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || " +-./:=_".contains(c)
}

/// `x-ms-tags`: pairs as in a query string.
pub(super) fn header(all: &HeaderMap) -> Result<Tags, Refusal> {
    let Some(text) = headers::text(all, &names::TAGS)? else { return Ok(Tags::default()) };
    let refused = || headers::invalid("x-ms-tags", text);
    let decode = |raw: &str| {
        let spaced = raw.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().ok()?.into_owned();
        escapes_are_whole(raw).then_some(decoded)
    };
    let pair = |piece: &str| {
        let (key, value) = piece.split_once('=').ok_or_else(refused)?;
        Ok((decode(key).ok_or_else(refused)?, decode(value).ok_or_else(refused)?))
    };
    tags(text.split('&').map(pair).collect::<Result<_, Refusal>>()?)
}

/// `x-ms-if-tags`.
pub(super) fn condition(all: &HeaderMap) -> Result<Option<TagCondition>, Refusal> {
    let Some(text) = headers::text(all, &names::IF_TAGS)? else { return Ok(None) };
    let parsed = TagCondition::parse(text);
    parsed.map(Some).map_err(|error| {
        headers::invalid("x-ms-if-tags", text).detail(Detail::Explanation, error.to_string())
    })
}

/// Reads the body of Set Blob Tags.
///
/// # Errors
/// `InvalidXmlDocument`, `UnsupportedXmlNode`, `MissingRequiredXmlNode`; `EmptyTagName`,
/// `InvalidTag`, `TagsTooLarge`, `DuplicateTagNames`.
pub(super) fn read_tags(body: &[u8]) -> Result<Tags, Refusal> {
    let root = xml::parse(body, "Tags")?;
    root.only(&["TagSet"])?;
    let set = root.child("TagSet").ok_or_else(|| xml::missing("TagSet"))?;
    let pair = |tag: &xml::Element| {
        if tag.name != "Tag" {
            return Err(Refusal::new(Reason::UnsupportedElement)
                .detail(Detail::ElementName, tag.name.as_str()));
        }
        tag.only(&["Key", "Value"])?;
        let text = |name| match tag.child(name) {
            Some(found) => Ok(found.text.clone()),
            None => Err(xml::missing(name)),
        };
        Ok((text("Key")?, text("Value")?))
    };
    tags(set.children.iter().map(pair).collect::<Result<_, Refusal>>()?)
}

/// Appends `<Tags>..</Tags>`.
pub(super) fn write_tags(out: &mut String, pairs: &Tags) {
    out.push_str("<Tags><TagSet>");
    for (key, value) in pairs.iter() {
        out.push_str("<Tag>");
        escape::element(out, "Key", key);
        escape::element(out, "Value", value);
        out.push_str("</Tag>");
    }
    out.push_str("</TagSet></Tags>");
}

/// The body of Get Blob Tags.
pub(super) fn write_document(pairs: &Tags) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned();
    write_tags(&mut out, pairs);
    out
}

/// The parameters of Find Blobs by Tags.
pub(super) fn find(query: &Query, container: Option<ContainerName>) -> Result<FindBlobs, Refusal> {
    let text = query.get("where")?.ok_or_else(|| query::missing("where"))?;
    let refused = |error: TagFilterError| query::invalid("where", text).message(error.to_string());
    let parsed = TagQuery::parse(text).map_err(refused)?;
    if container.is_some() && parsed.container.is_some() {
        return Err(refused(TagFilterError::ContainerTwice));
    }
    Ok(FindBlobs {
        container,
        text: text.to_owned(),
        query: parsed,
        marker: lists::owned(query, "marker")?,
        max_results: lists::max_results(query)?,
    })
}

/// The body of Find Blobs by Tags.
pub(super) fn write_found(found: &FoundBlobs, endpoint: &str, asked: &FindBlobs) -> String {
    let mut out = String::with_capacity(512 + found.items.len() * 256);
    out.push_str(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"",
    );
    escape::text(&mut out, endpoint);
    out.push_str("\">");
    escape::name(&mut out, "Where", &asked.text);
    out.push_str("<Blobs>");
    for item in &found.items {
        out.push_str("<Blob>");
        escape::name(&mut out, "Name", &item.name);
        escape::element(&mut out, "ContainerName", &item.container);
        write_tags(&mut out, &item.tags);
        out.push_str("</Blob>");
    }
    out.push_str("</Blobs>");
    match &found.next_marker {
        Some(marker) => escape::element(&mut out, "NextMarker", marker),
        None => out.push_str("<NextMarker/>"),
    }
    out.push_str("</EnumerationResults>");
    out
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headed(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )])
    }

    fn pairs(tags: &Tags) -> Vec<(&str, &str)> {
        tags.iter().collect()
    }

    #[test]
    fn header_is_read_like_a_query_string() {
        let read = |value: &str| header(&headed("x-ms-tags", value));
        assert_eq!(pairs(&read("b=2&a%20c=x%2Fy+z").unwrap()), [("a c", "x/y z"), ("b", "2")]);
        assert_eq!(pairs(&read("empty=").unwrap()), [("empty", "")]);
        assert!(header(&HeaderMap::new()).unwrap().is_empty());
        let many: Vec<String> = (0..11).map(|n| format!("k{n}=v")).collect();
        for (value, code) in [
            ("a", Reason::InvalidHeaderValue),
            ("a=%2", Reason::InvalidHeaderValue),
            ("a=%FF", Reason::InvalidHeaderValue),
            ("=1", Reason::EmptyTagName),
            ("a=1&a=2", Reason::DuplicateTagNames),
            ("a=%26", Reason::InvalidTag),
            (&format!("{}=1", "k".repeat(129)), Reason::InvalidTag),
            (&many.join("&"), Reason::TagsTooLarge),
        ] {
            assert_eq!(read(value).unwrap_err().reason, code, "{value}");
        }
    }

    #[test]
    fn bodies_survive_writing_and_reading() {
        let tags = header(&headed("x-ms-tags", "a=1&b=+x+&c=")).unwrap();
        assert_eq!(read_tags(write_document(&tags).as_bytes()).unwrap(), tags);
        assert!(read_tags(b"<Tags><TagSet/></Tags>").unwrap().is_empty());
        for (body, code) in [
            ("<Tags/>", Reason::MissingElement),
            ("<TagSet/>", Reason::InvalidDocument),
            ("<Tags><TagSet><Pair/></TagSet></Tags>", Reason::UnsupportedElement),
            ("<Tags><TagSet><Tag/></TagSet></Tags>", Reason::MissingElement),
            ("<Tags><TagSet><Tag><Key></Key><Value/></Tag></TagSet></Tags>", Reason::EmptyTagName),
            (
                "<Tags><TagSet><Tag><Key>a</Key><Value>&lt;</Value></Tag></TagSet></Tags>",
                Reason::InvalidTag,
            ),
        ] {
            assert_eq!(read_tags(body.as_bytes()).unwrap_err().reason, code, "{body}");
        }
    }

    #[test]
    fn conditions_and_searches_name_what_is_wrong() {
        let read = |value: &str| condition(&headed("x-ms-if-tags", value));
        assert!(read("a = '1' OR b <> '2'").unwrap().is_some());
        assert_eq!(read("a = 1").unwrap_err().reason, Reason::InvalidHeaderValue);
        let search = |text: &str| find(&Query::parse(Some(text)).unwrap(), None);
        assert!(search("where=%22a%22%3D'1'").is_ok());
        assert_eq!(search("").unwrap_err().reason, Reason::MissingRequiredQueryParameter);
        assert_eq!(
            search("where=a%3D'1'+or+b%3D'2'").unwrap_err().reason,
            Reason::InvalidQueryParameterValue
        );
    }
}
