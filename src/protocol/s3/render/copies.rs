//! Answers to copies.

use crate::protocol::model::named_copy::CopiedFacts;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::render::document;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::wire::escape;

/// The document of `CopyObject` and `UploadPartCopy`.
pub(super) fn copied(facts: &CopiedFacts, echo: &S3Echo) -> String {
    let is_part = echo.operation == Some(S3Operation::UploadPartCopy);
    let root = if is_part { "CopyPartResult" } else { "CopyObjectResult" };
    let mut out = document::begin(root);
    escape::plain(&mut out, "LastModified", facts.last_modified.to_iso_millis());
    document::etag(&mut out, facts.content_etag);
    for checksum in &facts.checksums {
        document::checksum(&mut out, checksum);
        if !is_part {
            escape::plain(&mut out, "ChecksumType", checksums::kind_name(checksum.kind));
        }
    }
    out.push_str("</");
    out.push_str(root);
    out.push('>');
    out
}
