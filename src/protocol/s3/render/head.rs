//! Headers of S3's answers.

use crate::protocol::model::reply::BlobFacts;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::wire::head::Head;

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
        .shown("etag", format_args!("\"{}\"", facts.change.etag))
        .shown("last-modified", facts.change.last_modified)
        .shown("content-length", content_length)
        .set("content-type", properties.content_type.as_deref().unwrap_or(CONTENT_TYPE))
        .optional("content-encoding", properties.content_encoding.as_deref())
        .optional("content-language", properties.content_language.as_deref())
        .optional("content-disposition", properties.content_disposition.as_deref())
        .optional("cache-control", properties.cache_control.as_deref())
        .fixed("accept-ranges", "bytes");
    if !facts.tags.is_empty() {
        head = head.shown("x-amz-tagging-count", facts.tags.len());
    }
    for (name, value) in facts.metadata.iter() {
        head = head.named(&format!("x-amz-meta-{name}"), value);
    }
    head
}
