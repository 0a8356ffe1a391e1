//! Headers of S3's answers.

use crate::protocol::model::reply::BlobFacts;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::wire::head::Head;
use crate::types::AccessTier;
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
    let class = storage_class(facts);
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

/// The checksums of a whole object, if the request asks for them.
pub(super) fn checksums(head: Head, facts: &BlobFacts, echo: &S3Echo) -> Head {
    if !echo.shows_checksums {
        return head;
    }
    facts.content_checksums().iter().fold(head, checksums::shown)
}

/// The storage class of an object.
pub(super) fn storage_class(facts: &BlobFacts) -> StorageClass {
    let kept = facts.object.as_ref().and_then(|object| object.storage_class.as_deref());
    let tier = facts.tier.map_or(AccessTier::Hot, |tier| tier.tier);
    StorageClass::shown(kept, tier)
}
