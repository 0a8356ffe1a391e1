//! Answers to operations on uploads in parts.

use bytes::Bytes;
use http::Response;

use crate::protocol::model::upload_reply::PartFacts;
use crate::protocol::model::upload_reply::UploadFacts;
use crate::protocol::model::upload_reply::UploadItem;
use crate::protocol::model::upload_reply::UploadPosition;
use crate::protocol::model::upload_reply::UploadReply;
use crate::protocol::s3::arguments;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::render::document;
use crate::protocol::s3::render::document::Keys;
use crate::protocol::s3::render::head;
use crate::protocol::s3::render::head::begin;
use crate::protocol::s3::upload_checksums::coverage_word;
use crate::protocol::wire::escape;
use crate::protocol::wire::query::Query;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::StorageClass;
use crate::types::UploadChecksum;
use crate::types::UploadId;

/// Writes the answer to an operation on an upload.
pub(super) fn upload(reply: &UploadReply, echo: &S3Echo) -> Response<Bytes> {
    match reply {
        UploadReply::Created(id, checksum) => created(*id, *checksum, echo),
        UploadReply::PartUploaded(part) => {
            let head = begin(200, echo).shown("etag", format_args!("\"{}\"", part.tag));
            part.checksum.iter().fold(head, head::checksum).empty()
        }
        UploadReply::Completed { change, tag, checksums } => {
            head::version(begin(200, echo), change.version).xml(completed(*tag, checksums, echo))
        }
        UploadReply::Aborted => begin(204, echo).bodiless(),
        UploadReply::Parts { upload, parts, is_truncated } => {
            begin(200, echo).xml(part_list(upload, parts, *is_truncated, echo))
        }
        UploadReply::Uploads { items, next } => {
            begin(200, echo).xml(upload_list(items, next.as_ref(), echo))
        }
    }
}

fn created(id: UploadId, checksum: Option<UploadChecksum>, echo: &S3Echo) -> Response<Bytes> {
    let mut head = begin(200, echo);
    if let Some(UploadChecksum { algorithm, coverage }) = checksum {
        let word = checksums::name(algorithm);
        head = head
            .optional("x-amz-checksum-algorithm", word)
            .fixed("x-amz-checksum-type", coverage_word(coverage));
    }
    let mut out = document::begin("InitiateMultipartUploadResult");
    escape::element(&mut out, "Bucket", &echo.bucket);
    escape::referenced(&mut out, "Key", &echo.key);
    escape::plain(&mut out, "UploadId", id);
    out.push_str("</InitiateMultipartUploadResult>");
    head.xml(out)
}

fn checksum_kind(out: &mut String, checksum: UploadChecksum) {
    if let Some(word) = checksums::name(checksum.algorithm) {
        escape::plain(out, "ChecksumAlgorithm", word);
        escape::plain(out, "ChecksumType", coverage_word(checksum.coverage));
    }
}

fn completed(tag: ContentEtag, checksums: &[ContentChecksum], echo: &S3Echo) -> String {
    let mut out = document::begin("CompleteMultipartUploadResult");
    escape::element(&mut out, "Location", &echo.resource);
    escape::element(&mut out, "Bucket", &echo.bucket);
    escape::referenced(&mut out, "Key", &echo.key);
    document::etag(&mut out, tag);
    for checksum in checksums {
        document::checksum(&mut out, checksum);
        escape::plain(&mut out, "ChecksumType", checksums::kind_name(checksum.kind));
    }
    out.push_str("</CompleteMultipartUploadResult>");
    out
}

/// Writes the initiator of an upload, the owner of its object and the storage class.
fn owners_and_class(out: &mut String, upload: &UploadFacts, echo: &S3Echo) {
    for (tag, id) in [("Initiator", &upload.initiator), ("Owner", &upload.owner)] {
        let id = id.as_deref().unwrap_or(&echo.owner);
        out.push('<');
        out.push_str(tag);
        out.push('>');
        document::person(out, id, echo);
        out.push_str("</");
        out.push_str(tag);
        out.push('>');
    }
    let class = upload.tier.map_or(StorageClass::Standard, |tier| {
        StorageClass::shown(upload.storage_class.as_deref(), tier)
    });
    escape::element(out, "StorageClass", class.as_str());
}

fn part_list(
    upload: &UploadFacts,
    parts: &[PartFacts],
    is_truncated: bool,
    echo: &S3Echo,
) -> String {
    let query = &echo.parameters();
    let mut out = document::begin("ListPartsResult");
    escape::element(&mut out, "Bucket", &echo.bucket);
    keys(query).element(&mut out, "Key", &echo.key);
    escape::element(&mut out, "UploadId", &echo.parameter("uploadId").unwrap_or_default());
    owners_and_class(&mut out, upload, echo);
    let marker = arguments::number(query, "part-number-marker").ok().flatten().unwrap_or(0);
    escape::plain(&mut out, "PartNumberMarker", marker);
    let last = parts.last().map_or(0, |part| part.number.get());
    escape::plain(&mut out, "NextPartNumberMarker", last);
    escape::plain(&mut out, "MaxParts", page_size(query, "max-parts"));
    escape::plain(&mut out, "IsTruncated", is_truncated);
    if let Some(checksum) = upload.checksum {
        checksum_kind(&mut out, checksum);
    }
    for part in parts {
        out.push_str("<Part>");
        escape::plain(&mut out, "PartNumber", part.number.get());
        escape::plain(&mut out, "LastModified", part.time.to_iso_millis());
        document::etag(&mut out, part.tag);
        escape::plain(&mut out, "Size", part.len);
        part.checksum.iter().for_each(|checksum| document::checksum(&mut out, checksum));
        out.push_str("</Part>");
    }
    out.push_str("</ListPartsResult>");
    out
}

fn upload_list(items: &[UploadItem], next: Option<&UploadPosition>, echo: &S3Echo) -> String {
    let query = &echo.parameters();
    let keys = keys(query);
    let parameter = |name: &str| query.get(name).ok().flatten().unwrap_or_default();
    let mut out = document::begin("ListMultipartUploadsResult");
    escape::element(&mut out, "Bucket", &echo.bucket);
    keys.element(&mut out, "KeyMarker", parameter("key-marker"));
    keys.element(&mut out, "Prefix", parameter("prefix"));
    if !parameter("delimiter").is_empty() {
        keys.element(&mut out, "Delimiter", parameter("delimiter"));
    }
    escape::element(&mut out, "UploadIdMarker", parameter("upload-id-marker"));
    if let Some(UploadPosition { name, upload }) = next {
        keys.element(&mut out, "NextKeyMarker", name);
        let id = upload.as_ref().map(UploadId::to_string).unwrap_or_default();
        escape::plain(&mut out, "NextUploadIdMarker", id);
    }
    if keys.encoded {
        escape::plain(&mut out, "EncodingType", "url");
    }
    escape::plain(&mut out, "MaxUploads", page_size(query, "max-uploads"));
    escape::plain(&mut out, "IsTruncated", next.is_some());
    for item in items {
        if let UploadItem::Upload { name, id, facts } = item {
            out.push_str("<Upload>");
            keys.element(&mut out, "Key", name);
            escape::plain(&mut out, "UploadId", id);
            owners_and_class(&mut out, facts, echo);
            escape::plain(&mut out, "Initiated", facts.started.to_iso_millis());
            if let Some(checksum) = facts.checksum {
                checksum_kind(&mut out, checksum);
            }
            out.push_str("</Upload>");
        }
    }
    for item in items {
        if let UploadItem::Prefix { name } = item {
            out.push_str("<CommonPrefixes>");
            keys.element(&mut out, "Prefix", name);
            out.push_str("</CommonPrefixes>");
        }
    }
    out.push_str("</ListMultipartUploadsResult>");
    out
}

/// The number of entries of a page. S3 shows the number that it serves, not a higher one that was
/// requested.
fn page_size(query: &Query, name: &str) -> u32 {
    arguments::served(arguments::page_size(query, name).unwrap_or_default())
}

/// How the keys of the answer are written.
fn keys(query: &Query) -> Keys {
    Keys { encoded: arguments::is_encoded(query).unwrap_or_default() }
}
