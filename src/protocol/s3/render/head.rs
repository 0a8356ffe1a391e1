//! Headers of S3's answers.

use bytes::Bytes;
use http::HeaderName;
use http::HeaderValue;
use http::Response;

use crate::protocol::model::facts::BlobFacts;
use crate::protocol::model::reply::TierFacts;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::locks;
use crate::protocol::s3::upload_checksums;
use crate::protocol::s3::versions;
use crate::protocol::wire::head::Head;
use crate::types::ContentChecksum;
use crate::types::Metadata;
use crate::types::Retention;
use crate::types::StorageClass;
use crate::types::VersionId;

/// The Content-Type of an object for which none was set, as in S3.
const CONTENT_TYPE: &str = "binary/octet-stream";

/// Begins a head with the headers of every answer.
pub(super) fn begin(status: u16, echo: &S3Echo) -> Head {
    Head::new(status)
        .fixed("server", concat!("Blockyard/", env!("CARGO_PKG_VERSION")))
        .set("x-amz-request-id", &echo.request_id)
        .shown("date", echo.time)
}

/// A checksum and its type.
pub(super) fn checksum(head: Head, checksum: &ContentChecksum) -> Head {
    let Some(name) = checksums::header(checksum.algorithm) else { return head };
    head.set(name, &upload_checksums::value(checksum))
        .fixed("x-amz-checksum-type", checksums::kind_name(checksum.kind))
}

/// The version of an object, if its bucket keeps versions.
pub(super) fn version(head: Head, version: Option<VersionId>) -> Head {
    match version {
        Some(version) => head.set("x-amz-version-id", &versions::id(version)),
        None => head,
    }
}

/// The version of the source of a copy.
pub(super) fn source_version(head: Head, version: Option<VersionId>) -> Head {
    match version {
        Some(version) => head.set("x-amz-copy-source-version-id", &versions::id(version)),
        None => head,
    }
}

/// The number of parts in which an object was uploaded.
pub(super) fn parts_count(response: Response<Bytes>, parts: Option<u32>) -> Response<Bytes> {
    match parts {
        Some(parts) => Head::of(response).shown("x-amz-mp-parts-count", parts).bodiless(),
        None => response,
    }
}

/// Adds the headers that describe an object.
pub(super) fn object(head: Head, facts: &BlobFacts, content_length: u64) -> Head {
    let properties = &facts.properties;
    let content_type = properties.content_type.as_deref().filter(|text| !text.is_empty());
    let mut head = version(head, facts.change.version)
        .shown("etag", format_args!("\"{}\"", facts.content_etag))
        .shown("last-modified", facts.change.last_modified)
        .shown("content-length", content_length)
        .set("content-type", content_type.unwrap_or(CONTENT_TYPE))
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
    let class = facts.storage_class();
    if class != StorageClass::Standard {
        head = head.fixed("x-amz-storage-class", class.as_str());
    }
    if !facts.tags.is_empty() {
        head = head.shown("x-amz-tagging-count", facts.tags.len());
    }
    if let Some(restore) = facts.tier.as_ref().and_then(restore) {
        head = head.fixed("x-amz-restore", restore);
    }
    metadata(lock(head, facts), &facts.metadata)
}

/// Adds the headers of object lock.
fn lock(mut head: Head, facts: &BlobFacts) -> Head {
    if let Some(Retention { mode, until }) = facts.retention {
        head = head
            .fixed("x-amz-object-lock-mode", locks::mode_word(mode))
            .set("x-amz-object-lock-retain-until-date", &until.to_iso_millis());
    }
    match facts.legal_hold {
        Some(on) => head.fixed("x-amz-object-lock-legal-hold", locks::hold_word(on)),
        None => head,
    }
}

/// Adds the metadata, and the number of entries that no header can hold.
fn metadata(mut head: Head, metadata: &Metadata) -> Head {
    let mut missing = 0usize;
    for (name, value) in metadata.iter() {
        let name = format!("x-amz-meta-{name}");
        let fits = HeaderName::from_bytes(name.as_bytes()).is_ok()
            && HeaderValue::from_bytes(value).is_ok();
        match fits {
            true => head = head.named(&name, value),
            false => missing += 1,
        }
    }
    if missing > 0 { head.shown("x-amz-missing-meta", missing) } else { head }
}

/// The state of the restore of an object. A restored object stays restored: its restore has no end
/// date (ADR 0014).
const fn restore(tier: &TierFacts) -> Option<&'static str> {
    match tier {
        TierFacts { rehydrating: Some(_), .. } => Some("ongoing-request=\"true\""),
        TierFacts { rehydrated: true, .. } => Some("ongoing-request=\"false\""),
        TierFacts { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_that_no_header_can_hold_is_counted() {
        // Rows of earlier releases may have it.
        let pairs = serde_json::json!([["ok", [49]], ["no name", [49]], ["no-value", [10]]]);
        let stored: Metadata = serde_json::from_value(pairs).unwrap();
        let head = metadata(Head::new(200), &stored).bodiless();
        let shown = |name: &str| head.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(shown("x-amz-meta-ok"), Some("1"));
        assert_eq!(shown("x-amz-missing-meta"), Some("2"));
        assert_eq!(head.headers().len(), 2);
        let all = Metadata::new([("a".to_owned(), "1")]).unwrap();
        let head = metadata(Head::new(200), &all).bodiless();
        assert!(!head.headers().contains_key("x-amz-missing-meta"));
    }
}
