//! Answers to copies.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::protocol::model::named_copy::CopiedFacts;
use crate::protocol::s3::checksums;
use crate::protocol::wire::escape;
use crate::types::ChecksumKind;

/// The document of `CopyObject` and `UploadPartCopy`. `root` is its element.
pub(super) fn copied(root: &str, facts: &CopiedFacts) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    );
    escape::plain(&mut out, "LastModified", facts.last_modified.to_iso_millis());
    escape::plain(&mut out, "ETag", format_args!("&quot;{}&quot;", facts.content_etag));
    for checksum in &facts.checksums {
        let Some(name) = checksums::name(checksum.algorithm) else { continue };
        escape::plain(&mut out, "ChecksumType", checksums::kind_name(checksum.kind));
        let (tag, digest) = (format!("Checksum{name}"), STANDARD.encode(&checksum.digest));
        match checksum.kind {
            ChecksumKind::FullObject => escape::plain(&mut out, &tag, digest),
            ChecksumKind::Composite(parts) => {
                escape::plain(&mut out, &tag, format_args!("{digest}-{parts}"));
            }
        }
    }
    out.push_str("</");
    out.push_str(root);
    out.push('>');
    out
}
