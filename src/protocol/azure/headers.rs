//! Reading single request headers.

use http::HeaderMap;
use http::HeaderName;
use http::header::AsHeaderName;
use http::header::CACHE_CONTROL;
use http::header::CONTENT_DISPOSITION;
use http::header::CONTENT_ENCODING;
use http::header::CONTENT_LANGUAGE;
use http::header::CONTENT_TYPE;
use uuid::Uuid;

use crate::protocol::azure::names;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::BlobProperties;
use crate::types::Md5;
use crate::types::Metadata;
use crate::types::MetadataError;

/// A refused header value, named in the body.
pub(super) fn invalid(name: &str, value: &str) -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue)
        .detail(Detail::HeaderName, name)
        .detail(Detail::HeaderValue, value)
}

/// A header's name: a text, or a parsed name, which is found faster.
pub(super) trait Name: AsHeaderName + AsRef<str> + Copy {}

impl<T: AsHeaderName + AsRef<str> + Copy> Name for T {}

/// A header's text; empty counts as absent. Given twice or beyond ASCII is `InvalidHeaderValue`.
pub(super) fn text(headers: &HeaderMap, name: impl Name) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value
        .to_str()
        .map_err(|_| invalid(name.as_ref(), &String::from_utf8_lossy(value.as_bytes())))?;
    if values.next().is_some() {
        return Err(invalid(name.as_ref(), text));
    }
    let text = text.trim();
    Ok(if text.is_empty() { None } else { Some(text) })
}

/// `true` or `false`; absent is false.
pub(super) fn flag(headers: &HeaderMap, name: impl Name) -> Result<bool, Refusal> {
    match text(headers, name)? {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(invalid(name.as_ref(), value)),
    }
}

/// A whole number, 0 or more.
pub(super) fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| value.parse().ok()).flatten();
    number.map(Some).ok_or_else(|| invalid(name, value))
}

/// `x-ms-lease-id`, a GUID.
pub(super) fn lease(headers: &HeaderMap) -> Result<Option<Uuid>, Refusal> {
    guid(headers, &names::LEASE_ID)
}

/// A GUID, in any of its spellings.
pub(super) fn guid(headers: &HeaderMap, name: impl Name) -> Result<Option<Uuid>, Refusal> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    Uuid::try_parse(value).map(Some).map_err(|_| invalid(name.as_ref(), value))
}

/// `x-ms-meta-*`. Names arrive in lower case: HTTP names have no case, and hyper keeps none.
pub(super) fn metadata(headers: &HeaderMap) -> Result<Metadata, Refusal> {
    let mut pairs = Vec::new();
    for (name, value) in headers {
        let Some(key) = name.as_str().strip_prefix("x-ms-meta-") else { continue };
        let value = value.to_str().map_err(|_| Reason::InvalidMetadata)?;
        pairs.push((key.to_owned(), value.trim().to_owned()));
    }
    Metadata::new(pairs).map_err(|error| match error {
        MetadataError::EmptyKey => Reason::EmptyMetadataKey.into(),
        MetadataError::Invalid => Reason::InvalidMetadata.into(),
        MetadataError::TooLarge => Reason::MetadataTooLarge.into(),
    })
}

/// The `x-ms-blob-*` properties; with `standard`, the plain headers stand in for absent ones (Put
/// Blob only: other operations' plain headers describe the request's own body).
pub(super) fn properties(headers: &HeaderMap, standard: bool) -> Result<BlobProperties, Refusal> {
    let read = |own: &str, plain: &HeaderName| -> Result<Option<String>, Refusal> {
        let value = match text(headers, own)? {
            None if standard => text(headers, plain)?,
            value => value,
        };
        Ok(value.map(str::to_owned))
    };
    Ok(BlobProperties {
        content_type: read("x-ms-blob-content-type", &CONTENT_TYPE)?,
        content_encoding: read("x-ms-blob-content-encoding", &CONTENT_ENCODING)?,
        content_language: read("x-ms-blob-content-language", &CONTENT_LANGUAGE)?,
        content_disposition: read("x-ms-blob-content-disposition", &CONTENT_DISPOSITION)?,
        cache_control: read("x-ms-blob-cache-control", &CACHE_CONTROL)?,
        content_md5: md5(headers, "x-ms-blob-content-md5")?.into(),
    })
}

/// A header that holds an MD5.
pub(super) fn md5(headers: &HeaderMap, name: impl Name) -> Result<Option<Md5>, Refusal> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let refused = || {
        Refusal::new(Reason::InvalidMd5)
            .detail(Detail::HeaderName, name.as_ref())
            .detail(Detail::HeaderValue, value)
    };
    Md5::from_base64(value).map(Some).ok_or_else(refused)
}
