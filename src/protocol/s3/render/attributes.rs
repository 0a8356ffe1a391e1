//! The answer to GetObjectAttributes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::protocol::model::reply::BlobFacts;
use crate::protocol::model::reply::BlobParts;
use crate::protocol::s3::attributes::Attributes;
use crate::protocol::s3::checksums;
use crate::protocol::s3::render::document;
use crate::protocol::wire::escape;
use crate::types::ContentChecksum;

/// `GetObjectAttributesResponse`.
pub(super) fn attributes(
    facts: &BlobFacts,
    parts: Option<&BlobParts>,
    wanted: Attributes,
) -> String {
    let mut out = document::begin("GetObjectAttributesResponse");
    if wanted.etag {
        // Here without quotes.
        escape::plain(&mut out, "ETag", facts.content_etag);
    }
    let checksums = if wanted.checksum { facts.content_checksums() } else { Vec::new() };
    if let Some(first) = checksums.first() {
        out.push_str("<Checksum>");
        checksums.iter().for_each(|checksum| value(&mut out, checksum));
        escape::plain(&mut out, "ChecksumType", checksums::kind_name(first.kind));
        out.push_str("</Checksum>");
    }
    if let Some(parts) = parts.filter(|_| wanted.parts) {
        parts_of(&mut out, parts);
    }
    if wanted.class {
        escape::plain(&mut out, "StorageClass", facts.storage_class().as_str());
    }
    if wanted.size {
        escape::plain(&mut out, "ObjectSize", facts.len);
    }
    out.push_str("</GetObjectAttributesResponse>");
    out
}

/// `ObjectParts`.
fn parts_of(out: &mut String, parts: &BlobParts) {
    let BlobParts { wanted, total, items, more } = parts;
    out.push_str("<ObjectParts>");
    escape::plain(out, "IsTruncated", more);
    escape::plain(out, "MaxParts", wanted.limit);
    escape::plain(out, "PartNumberMarker", wanted.after);
    let last = items.last().map_or(wanted.after, |part| part.number);
    escape::plain(out, "NextPartNumberMarker", last);
    for part in items {
        out.push_str("<Part>");
        part.checksums.iter().for_each(|checksum| value(out, checksum));
        escape::plain(out, "PartNumber", part.number);
        escape::plain(out, "Size", part.len);
        out.push_str("</Part>");
    }
    escape::plain(out, "PartsCount", total);
    out.push_str("</ObjectParts>");
}

/// Writes a checksum without the number of parts, which is only in its header.
fn value(out: &mut String, checksum: &ContentChecksum) {
    if let Some(name) = checksums::name(checksum.algorithm) {
        escape::plain(out, &format!("Checksum{name}"), STANDARD.encode(&checksum.digest));
    }
}
