//! Documents of lists.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::protocol::model::facts::BlobFacts;
use crate::protocol::model::reply::BlobItem;
use crate::protocol::model::reply::BlobListing;
use crate::protocol::model::reply::ContainerListing;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::render::head::class;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::wire::escape;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;

/// The name space of every document.
const BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// The beginning of a document.
pub(super) fn begin(root: &str) -> String {
    format!("{BEGIN}<{root} xmlns=\"{NAMESPACE}\">")
}

/// `ListBuckets`.
pub(super) fn buckets(page: &ContainerListing, echo: &S3Echo) -> String {
    let mut out = begin("ListAllMyBucketsResult");
    owner(&mut out, &echo.owner, &echo.owner_name);
    out.push_str("<Buckets>");
    for item in page.items.iter().filter(|item| !item.name.starts_with('$')) {
        out.push_str("<Bucket>");
        escape::element(&mut out, "Name", &item.name);
        escape::plain(&mut out, "CreationDate", item.facts.change.last_modified.to_iso_millis());
        out.push_str("</Bucket>");
    }
    out.push_str("</Buckets></ListAllMyBucketsResult>");
    out
}

/// An owner: the canonical id and the name.
pub(super) fn owner(out: &mut String, id: &str, name: &str) {
    out.push_str("<Owner>");
    escape::element(out, "ID", id);
    escape::element(out, "DisplayName", name);
    out.push_str("</Owner>");
}

/// `ListObjects` and `ListObjectsV2`.
pub(super) fn objects(page: &BlobListing, echo: &S3Echo) -> String {
    let is_v2 = echo.operation == Some(S3Operation::ListObjectsV2);
    let mut out = begin("ListBucketResult");
    escape::element(&mut out, "Name", &echo.bucket);
    for (parameter, tag) in [("prefix", "Prefix"), ("delimiter", "Delimiter")] {
        escape::referenced(&mut out, tag, &echo.parameter(parameter).unwrap_or_default());
    }
    let max_keys = echo.parameter("max-keys").unwrap_or_else(|| "1000".to_owned());
    escape::element(&mut out, "MaxKeys", &max_keys);
    escape::plain(&mut out, "IsTruncated", page.next.is_some());
    if is_v2 {
        escape::plain(&mut out, "KeyCount", page.items.len());
    }
    if let Some(next) = &page.next {
        let tag = if is_v2 { "NextContinuationToken" } else { "NextMarker" };
        escape::element(&mut out, tag, &URL_SAFE_NO_PAD.encode(next));
    }
    for item in &page.items {
        match item {
            BlobItem::Blob { name, facts, .. } => object(&mut out, name, facts),
            BlobItem::Prefix { name } => {
                out.push_str("<CommonPrefixes>");
                escape::referenced(&mut out, "Prefix", name);
                out.push_str("</CommonPrefixes>");
            }
            BlobItem::Uncommitted { .. } => {}
        }
    }
    out.push_str("</ListBucketResult>");
    out
}

/// How the checksum of an object is computed. Its value is only in the head of the object.
fn checksum(out: &mut String, facts: &BlobFacts) {
    let derived = facts.crc64.map(|_| (ChecksumAlgorithm::Crc64Nvme, ChecksumKind::FullObject));
    let kept = facts.checksums.first().map(|checksum| (checksum.algorithm, checksum.kind));
    let Some((algorithm, kind)) = kept.or(derived) else { return };
    let Some(name) = checksums::name(algorithm) else { return };
    escape::element(out, "ChecksumAlgorithm", name);
    escape::element(out, "ChecksumType", checksums::kind_name(kind));
}

fn object(out: &mut String, name: &str, facts: &BlobFacts) {
    out.push_str("<Contents>");
    escape::referenced(out, "Key", name);
    escape::plain(out, "LastModified", facts.change.last_modified.to_iso_millis());
    escape::plain(out, "ETag", format_args!("&quot;{}&quot;", facts.content_etag));
    checksum(out, facts);
    escape::plain(out, "Size", facts.len);
    escape::plain(out, "StorageClass", class(facts).as_str());
    out.push_str("</Contents>");
}
