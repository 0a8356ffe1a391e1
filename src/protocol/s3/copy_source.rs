//! The object from which a copy takes its bytes: `x-amz-copy-source` and the headers beside it.
//!
//! Source: S3, `CopyObject` and `UploadPartCopy`.

#![deny(clippy::indexing_slicing)]

use http::HeaderMap;
use http::HeaderName;

use crate::protocol::model::Detail;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::named_copy::NamedSource;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::s3::conditions;
use crate::protocol::s3::conditions::ConditionNames;
use crate::protocol::s3::encryption;
use crate::protocol::s3::encryption::OF_SOURCE;
use crate::protocol::s3::versions;
use crate::protocol::wire::headers;
use crate::protocol::wire::percent::decode;
use crate::types::BlobName;
use crate::types::ByteRange;
use crate::types::ContainerName;
use crate::types::NameError;
use crate::types::Revision;

/// The header that names the source. A PUT of an object or a part that has it is a copy.
pub(super) const HEADER: &str = "x-amz-copy-source";
/// The header with the wanted bytes of the source of a part.
pub(super) const RANGE: &str = "x-amz-copy-source-range";
/// Separates the version from the key.
const VERSION: &str = "?versionId=";

static CONDITIONS: ConditionNames = ConditionNames {
    if_match: HeaderName::from_static("x-amz-copy-source-if-match"),
    if_none_match: HeaderName::from_static("x-amz-copy-source-if-none-match"),
    if_modified_since: HeaderName::from_static("x-amz-copy-source-if-modified-since"),
    if_unmodified_since: HeaderName::from_static("x-amz-copy-source-if-unmodified-since"),
};

/// The source of a copy.
///
/// # Errors
/// `InvalidHeaderValue` when the header names no object; those of its conditions and key.
pub(super) fn source(all: &HeaderMap) -> Result<NamedSource, Refusal> {
    let mut values = all.get_all(HEADER).iter().map(http::HeaderValue::as_bytes);
    let raw = values.next().unwrap_or_default();
    if values.next().is_some() {
        return Err(invalid("A copy has one source.", raw));
    }
    let path = path(raw)?;
    let conditions = conditions::of_names(all, &CONDITIONS)?;
    let encryption = encryption::read(all, &OF_SOURCE)?;
    let precondition = Precondition { encryption, ..conditions };
    Ok(NamedSource { path, precondition, range: None })
}

/// The range that a copy of a part takes; `None` for all bytes.
///
/// # Errors
/// `InvalidHeaderValue` unless it is `bytes=FIRST-LAST`.
pub(super) fn range(all: &HeaderMap) -> Result<Option<ByteRange>, Refusal> {
    let Some(text) = headers::text(all, RANGE)? else { return Ok(None) };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    let ends = text.strip_prefix("bytes=").and_then(|ends| ends.split_once('-'));
    let range = ends
        .and_then(|(first, last)| Some((number(first)?, number(last)?)))
        .and_then(|(first, last)| ByteRange::new(first, Some(last)));
    range.map(Some).ok_or_else(|| {
        headers::invalid(RANGE, text).message(
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first \
             and last are the zero-based offsets of the first and last bytes to copy",
        )
    })
}

/// Bucket and key: `BUCKET/KEY` or `/BUCKET/KEY`, with escapes that are decoded once. `+` is a
/// space. The version stands behind the key and has no escapes.
fn path(raw: &[u8]) -> Result<BlobPath, Refusal> {
    let text =
        std::str::from_utf8(raw).map_err(|_| invalid("Invalid copy source encoding", raw))?;
    let (text, revision) = match text.split_once(VERSION) {
        None => (text, Revision::Current),
        Some((_, "")) => return Err(invalid("Version id cannot be the empty string", raw)),
        Some((text, id)) => {
            let of_id = versions::of_id(id);
            (text, of_id.ok_or_else(|| invalid("Invalid version id specified", raw))?)
        }
    };
    let decoded = decode(&text.replace('+', " "))
        .ok_or_else(|| invalid("Invalid copy source encoding", raw))?;
    let decoded = decoded.strip_prefix('/').unwrap_or(&decoded);
    let Some((bucket, key)) = decoded.split_once('/') else {
        return Err(invalid(
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
            raw,
        ));
    };
    let container = ContainerName::new(bucket).ok().filter(|name| !name.as_str().starts_with('$'));
    let container = container.ok_or_else(|| invalid("Invalid copy source bucket name", raw))?;
    let blob = BlobName::new(key).map_err(|error| match error {
        NameError::Length if !key.is_empty() => Reason::OutOfRangeInput.into(),
        NameError::Length | NameError::Invalid => invalid("Invalid copy source object key", raw),
    })?;
    Ok(BlobPath { container, blob, revision })
}

fn invalid(message: &str, raw: &[u8]) -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue)
        .message(message)
        .detail(Detail::HeaderName, HEADER)
        .detail(Detail::HeaderValue, String::from_utf8_lossy(raw))
}

#[cfg(test)]
mod tests;
