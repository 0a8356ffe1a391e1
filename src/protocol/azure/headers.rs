//! Headers that many operations have: lease, metadata, properties.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use http::header::CONTENT_DISPOSITION;
use http::header::CONTENT_ENCODING;
use http::header::CONTENT_LANGUAGE;
use http::header::CONTENT_TYPE;
use uuid::Uuid;

use crate::protocol::azure::names;
use crate::protocol::azure::naming;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::BlobProperties;
use crate::types::ContentMd5;
use crate::types::Metadata;
use crate::types::MetadataError;

pub(super) use crate::protocol::wire::headers::{flag, guid, invalid, md5, number, text};

/// The prefix of headers with metadata.
pub const METADATA_PREFIX: &str = "x-ms-meta-";

/// `x-ms-lease-id`, a GUID.
pub(super) fn lease(headers: &HeaderMap) -> Result<Option<Uuid>, Refusal> {
    guid(headers, &names::LEASE_ID)
}

/// `x-ms-meta-*`, by the rules of Azure: names are identifiers, values are ASCII. Names are in
/// lower case here: the caller knows how they were spelled.
pub(super) fn metadata(headers: &HeaderMap) -> Result<Metadata, Refusal> {
    if pairs(headers).next().is_none() {
        return Ok(Metadata::default());
    }
    if pairs(headers).any(|(_, value)| value.to_str().is_err()) {
        return Err(Reason::InvalidMetadata.into());
    }
    let mut before = None;
    for (key, _) in pairs(headers) {
        if key.is_empty() {
            return Err(Reason::EmptyMetadataKey.into());
        }
        // Headers of one name stand together.
        if before.replace(key) == Some(key) || !naming::is_metadata_name(key) {
            return Err(Reason::InvalidMetadata.into());
        }
    }
    any_metadata(headers).map_err(|error| match error {
        MetadataError::EmptyKey => Reason::EmptyMetadataKey.into(),
        MetadataError::Invalid => Reason::InvalidMetadata.into(),
        MetadataError::TooLarge => Reason::MetadataTooLarge.into(),
    })
}

/// Metadata by the rules of the store, without those of Azure.
fn any_metadata(headers: &HeaderMap) -> Result<Metadata, MetadataError> {
    let value = |value: &HeaderValue| Bytes::copy_from_slice(value.as_bytes().trim_ascii());
    Metadata::new(pairs(headers).map(|(key, given)| (key.to_owned(), value(given))))
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &HeaderValue)> {
    headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix(METADATA_PREFIX)?, value)))
}

/// `x-ms-blob-content-md5`: a property of up to 64 bytes. Beside a customer-provided key it has to
/// be a digest, for only that is stored encrypted.
fn content_md5(headers: &HeaderMap) -> Result<ContentMd5, Refusal> {
    let Some(value) = text(headers, &names::BLOB_CONTENT_MD5)? else {
        return Ok(ContentMd5::Absent);
    };
    let by_key = headers.contains_key(&names::ENCRYPTION_KEY);
    match ContentMd5::from_base64(value) {
        Some(ContentMd5::Other(_)) if by_key => Err(Reason::InvalidMd5.into()),
        read => read.ok_or(Reason::InvalidMd5.into()),
    }
}

/// The `x-ms-blob-*` properties; with `standard`, the plain headers stand in for absent ones (Put
/// Blob only: other operations' plain headers describe the request's own body).
pub(super) fn properties(headers: &HeaderMap, standard: bool) -> Result<BlobProperties, Refusal> {
    let read = |own: &HeaderName, plain: &HeaderName| -> Result<Option<String>, Refusal> {
        let value = match text(headers, own)? {
            None if standard => text(headers, plain)?,
            value => value,
        };
        Ok(value.map(str::to_owned))
    };
    Ok(BlobProperties {
        content_type: read(&names::BLOB_CONTENT_TYPE, &CONTENT_TYPE)?,
        content_encoding: read(&names::BLOB_CONTENT_ENCODING, &CONTENT_ENCODING)?,
        content_language: read(&names::BLOB_CONTENT_LANGUAGE, &CONTENT_LANGUAGE)?,
        content_disposition: read(&names::BLOB_CONTENT_DISPOSITION, &CONTENT_DISPOSITION)?,
        cache_control: read(&names::BLOB_CACHE_CONTROL, &CACHE_CONTROL)?,
        content_md5: content_md5(headers)?,
    })
}
