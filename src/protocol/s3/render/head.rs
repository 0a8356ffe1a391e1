//! Headers of S3's answers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Response;

use crate::protocol::model::facts::BlobFacts;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::wire::head::Head;
use crate::types::ChecksumKind;
use crate::types::ContentChecksum;
use crate::types::StorageClass;

/// What an object is shown as when nothing was set, as S3 does.
const CONTENT_TYPE: &str = "binary/octet-stream";

/// What every answer carries.
pub(super) fn begin(status: u16, echo: &S3Echo) -> Head {
    Head::new(status)
        .fixed("server", concat!("Blockyard/", env!("CARGO_PKG_VERSION")))
        .set("x-amz-request-id", &echo.request_id)
        .shown("date", echo.time)
}

/// The storage class of an object.
pub(super) fn class(facts: &BlobFacts) -> StorageClass {
    let kept = facts.object.as_ref().and_then(|object| object.storage_class.as_deref());
    facts.tier.as_ref().map_or(StorageClass::Standard, |tier| StorageClass::shown(kept, tier.tier))
}

/// A checksum and what it covers.
pub(super) fn checksum(head: Head, checksum: &ContentChecksum) -> Head {
    let Some(name) = checksums::header(checksum.algorithm) else { return head };
    let digest = STANDARD.encode(&checksum.digest);
    let head = match checksum.kind {
        ChecksumKind::FullObject => head.set(name, &digest),
        ChecksumKind::Composite(parts) => head.shown(name, format_args!("{digest}-{parts}")),
    };
    head.fixed("x-amz-checksum-type", checksums::kind_name(checksum.kind))
}

/// The number of parts in which an object was uploaded.
pub(super) fn parts_count(response: Response<Bytes>, parts: Option<u32>) -> Response<Bytes> {
    match parts {
        Some(parts) => Head::of(response).shown("x-amz-mp-parts-count", parts).bodiless(),
        None => response,
    }
}

/// What answers show of an object.
pub(super) fn object(head: Head, facts: &BlobFacts, content_length: u64) -> Head {
    let properties = &facts.properties;
    let mut head = head
        .shown("etag", format_args!("\"{}\"", facts.content_etag))
        .shown("last-modified", facts.change.last_modified)
        .shown("content-length", content_length)
        .set("content-type", properties.content_type.as_deref().unwrap_or(CONTENT_TYPE))
        .optional("content-encoding", properties.content_encoding.as_deref())
        .optional("content-language", properties.content_language.as_deref())
        .optional("content-disposition", properties.content_disposition.as_deref())
        .optional("cache-control", properties.cache_control.as_deref())
        .fixed("accept-ranges", "bytes");
    if let Some(object) = &facts.object {
        head = head
            .optional("expires", object.expires.as_deref())
            .optional("x-amz-website-redirect-location", object.redirect.as_deref());
    }
    // The default class is not shown.
    let class = class(facts);
    if class != StorageClass::Standard {
        head = head.fixed("x-amz-storage-class", class.as_str());
    }
    if !facts.tags.is_empty() {
        head = head.shown("x-amz-tagging-count", facts.tags.len());
    }
    for (name, value) in facts.metadata.iter() {
        head = head.named(&format!("x-amz-meta-{name}"), value);
    }
    head
}
