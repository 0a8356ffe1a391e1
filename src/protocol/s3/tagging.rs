//! Tags of objects and of buckets.
//!
//! Source: S3, "Tagging objects", `PutObjectTagging`, `PutBucketTagging`.

use http::HeaderMap;

use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::SettingAction;
use crate::protocol::model::operation::SettingOperation;
use crate::protocol::s3::documents;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::settings;
use crate::protocol::wire::headers;
use crate::protocol::wire::percent;
use crate::protocol::wire::xml;
use crate::types::ContainerTags;
use crate::types::Setting;
use crate::types::SettingKind;
use crate::types::Tags;
use crate::types::TagsError;

/// The longest document of tags, bytes: 50 tags of the greatest length, all escaped.
const DOCUMENT_BYTES_MAX: u64 = 256 * 1024;
/// The reserved prefix of tag keys.
const RESERVED: &str = "aws:";
const HEADER: &str = "x-amz-tagging";

/// `GetObjectTagging`.
pub(super) fn get_object(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (path, precondition) = (request.object()?, Precondition::default());
    Ok(Parsed::ready(BlobOperation::GetBlobTags { path, precondition }.into()))
}

/// `PutObjectTagging`.
pub(super) fn put_object(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let set = set_of_object(request, Tags::default())?;
    documents::completed_by(request, set, DOCUMENT_BYTES_MAX, decode_object)
}

/// `DeleteObjectTagging`.
pub(super) fn delete_object(request: &Request<'_>) -> Result<Parsed, Refusal> {
    Ok(Parsed::ready(set_of_object(request, Tags::default())?.into()))
}

/// `GetBucketTagging`.
pub(super) fn get_bucket(request: &Request<'_>) -> Result<Parsed, Refusal> {
    settings::operation(request, SettingAction::Get(SettingKind::Tags))
}

/// `PutBucketTagging`.
pub(super) fn put_bucket(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let action = SettingAction::Set(Setting::Tags(ContainerTags::default()));
    let set =
        ContainerOperation::Setting(SettingOperation { container: request.bucket()?, action });
    documents::completed_by(request, set, DOCUMENT_BYTES_MAX, decode_bucket)
}

/// `DeleteBucketTagging`.
pub(super) fn delete_bucket(request: &Request<'_>) -> Result<Parsed, Refusal> {
    settings::operation(request, SettingAction::Remove(SettingKind::Tags))
}

fn set_of_object(request: &Request<'_>, tags: Tags) -> Result<BlobOperation, Refusal> {
    let (path, precondition) = (request.object()?, Precondition::default());
    Ok(BlobOperation::SetBlobTags { path, precondition, tags })
}

/// `x-amz-tagging`: pairs as in a query string.
///
/// # Errors
/// `InvalidHeaderValue`, `InvalidTag`, `TagsTooLarge`.
pub(super) fn header(all: &HeaderMap) -> Result<Tags, Refusal> {
    let Some(text) = headers::text(all, HEADER)? else { return Ok(Tags::default()) };
    let refused = || {
        headers::invalid(HEADER, text).message(
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query \
             parameters without tag name duplicates.",
        )
    };
    let decode = |raw: &str| percent::decode(&raw.replace('+', " ")).ok_or_else(refused);
    let pair = |piece: &str| {
        let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
        Ok((decode(key)?, decode(value)?))
    };
    let pieces = text.split('&').filter(|piece| !piece.is_empty());
    of_object(pieces.map(pair).collect::<Result<_, Refusal>>()?).map_err(|refusal| {
        match refusal.reason == Reason::DuplicateTagNames {
            true => refused(),
            false => refusal,
        }
    })
}

fn decode_object(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Blob(BlobOperation::SetBlobTags { tags, .. }) = operation {
        *tags = of_object(read(document.bytes)?)?;
        return Ok(());
    }
    Err(Reason::InternalError.into())
}

/// An empty set of tags is none.
fn decode_bucket(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Container(ContainerOperation::Setting(setting)) = operation {
        let tags = of_bucket(read(document.bytes)?)?;
        let is_empty = tags.iter().next().is_none();
        setting.action = match is_empty {
            true => SettingAction::Remove(SettingKind::Tags),
            false => SettingAction::Set(Setting::Tags(tags)),
        };
        return Ok(());
    }
    Err(Reason::InternalError.into())
}

/// The pairs of a `Tagging` document.
pub(super) fn read(body: &[u8]) -> Result<Vec<(String, String)>, Refusal> {
    let root = xml::parse(body, "Tagging")?;
    root.only(&["TagSet"])?;
    let set = root.child("TagSet").ok_or_else(|| xml::missing("TagSet"))?;
    let pair = |tag: &xml::Element| {
        tag.only(&["Key", "Value"])?;
        let text = |name| documents::needed(tag, name).map(str::to_owned);
        Ok((text("Key")?, text("Value")?))
    };
    documents::items(set, "Tag")?.iter().map(pair).collect()
}

pub(super) fn of_object(pairs: Vec<(String, String)>) -> Result<Tags, Refusal> {
    check_reserved(&pairs)?;
    Tags::new(pairs).map_err(refusal)
}

pub(super) fn of_bucket(pairs: Vec<(String, String)>) -> Result<ContainerTags, Refusal> {
    check_reserved(&pairs)?;
    ContainerTags::new(pairs).map_err(|error| match error {
        TagsError::TooMany => refusal(error).message("Bucket tag count cannot be greater than 50"),
        TagsError::Invalid | TagsError::Duplicate => refusal(error),
    })
}

fn check_reserved(pairs: &[(String, String)]) -> Result<(), Refusal> {
    let begins_so = |key: &str| key.get(..RESERVED.len()).is_some_and(is_reserved);
    match pairs.iter().any(|(key, _)| begins_so(key)) {
        true => Err(Refusal::new(Reason::InvalidTag)
            .message("System tags cannot be added/updated by requester")),
        false => Ok(()),
    }
}

fn is_reserved(begin: &str) -> bool {
    begin.eq_ignore_ascii_case(RESERVED)
}

fn refusal(error: TagsError) -> Refusal {
    match error {
        TagsError::TooMany => Reason::TagsTooLarge.into(),
        TagsError::Invalid => Refusal::new(Reason::InvalidTag)
            .message("The TagKey or TagValue you have provided is invalid"),
        TagsError::Duplicate => Reason::DuplicateTagNames.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_header(text: &str) -> Result<Vec<(String, String)>, Reason> {
        let all = HeaderMap::from_iter([(HEADER.parse().unwrap(), text.parse().unwrap())]);
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        header(&all).map(|tags| tags.iter().map(owned).collect()).map_err(|error| error.reason)
    }

    #[test]
    fn the_header_is_read_as_a_query_string() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            of_header("b=2&a=x%20y+z&c"),
            Ok(vec![pair("a", "x y z"), pair("b", "2"), pair("c", "")])
        );
        assert_eq!(of_header("k%40h=%C3%A4"), Ok(vec![pair("k@h", "ä")]));
        for (text, reason) in [
            ("a=1&a=2", Reason::InvalidHeaderValue),
            ("a=%2", Reason::InvalidHeaderValue),
            ("a=%FF", Reason::InvalidHeaderValue),
            ("=1", Reason::InvalidTag),
            ("a=%3C", Reason::InvalidTag),
            ("AWS:a=1", Reason::InvalidTag),
            ("a&b&c&d&e&f&g&h&i&j&k", Reason::TagsTooLarge),
        ] {
            assert_eq!(of_header(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn documents_hold_pairs_and_nothing_else() {
        let read = |inner: &str| read(format!("<Tagging>{inner}</Tagging>").as_bytes());
        let tag = "<TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet>";
        assert_eq!(read(tag).unwrap(), [("a".to_owned(), "b".to_owned())]);
        assert_eq!(read("<TagSet/>").unwrap(), []);
        for wrong in [
            "",
            "<TagSet/><TagSet/>",
            "<TagSet>x</TagSet>",
            "<TagSet><Other/></TagSet>",
            "<TagSet><Tag><Key>a</Key></Tag></TagSet>",
            "<TagSet><Tag><Value>a</Value></Tag></TagSet>",
            "<TagSet><Tag><Key>a</Key><Key>b</Key><Value/></Tag></TagSet>",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
