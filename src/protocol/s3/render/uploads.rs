//! Answers to operations on uploads in parts.

use bytes::Bytes;
use http::Response;
use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;

use crate::protocol::model::upload_reply::PartFacts;
use crate::protocol::model::upload_reply::UploadFacts;
use crate::protocol::model::upload_reply::UploadItem;
use crate::protocol::model::upload_reply::UploadPosition;
use crate::protocol::model::upload_reply::UploadReply;
use crate::protocol::s3::checksums;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::render::document::person;
use crate::protocol::s3::render::head;
use crate::protocol::s3::render::head::begin;
use crate::protocol::s3::upload_checksums;
use crate::protocol::s3::upload_checksums::coverage_word;
use crate::protocol::wire::escape;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::StorageClass;
use crate::types::UploadChecksum;
use crate::types::UploadId;

/// What stays readable in a key that is percent-encoded.
const KEY: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

fn document(root: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    )
}

/// Writes the answer to an operation on an upload.
pub(super) fn upload(reply: &UploadReply, echo: &S3Echo) -> Response<Bytes> {
    match reply {
        UploadReply::Created(id, checksum) => created(*id, *checksum, echo),
        UploadReply::PartUploaded(part) => {
            let head = begin(200, echo).shown("etag", format_args!("\"{}\"", part.tag));
            part.checksum.iter().fold(head, head::checksum).empty()
        }
        UploadReply::Completed { tag, checksums, .. } => {
            begin(200, echo).xml(completed(*tag, checksums, echo))
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
    let mut out = document("InitiateMultipartUploadResult");
    escape::element(&mut out, "Bucket", &echo.bucket);
    escape::referenced(&mut out, "Key", &echo.key);
    escape::plain(&mut out, "UploadId", id);
    out.push_str("</InitiateMultipartUploadResult>");
    head.xml(out)
}

fn checksum_element(out: &mut String, checksum: &ContentChecksum) {
    if let Some(name) = upload_checksums::element(checksum.algorithm) {
        escape::plain(out, &name, upload_checksums::value(checksum));
    }
}

fn checksum_kind(out: &mut String, checksum: UploadChecksum) {
    if let Some(word) = checksums::name(checksum.algorithm) {
        escape::plain(out, "ChecksumAlgorithm", word);
        escape::plain(out, "ChecksumType", coverage_word(checksum.coverage));
    }
}

fn completed(tag: ContentEtag, checksums: &[ContentChecksum], echo: &S3Echo) -> String {
    let mut out = document("CompleteMultipartUploadResult");
    escape::element(&mut out, "Location", &echo.resource);
    escape::element(&mut out, "Bucket", &echo.bucket);
    escape::referenced(&mut out, "Key", &echo.key);
    etag(&mut out, tag);
    for checksum in checksums {
        checksum_element(&mut out, checksum);
        escape::plain(&mut out, "ChecksumType", checksums::kind_name(checksum.kind));
    }
    out.push_str("</CompleteMultipartUploadResult>");
    out
}

fn etag(out: &mut String, tag: ContentEtag) {
    escape::plain(out, "ETag", format_args!("&quot;{tag}&quot;"));
}

/// Who started the upload and who owns the object.
fn people(out: &mut String, upload: &UploadFacts, echo: &S3Echo) {
    for (tag, id) in [("Initiator", &upload.initiator), ("Owner", &upload.owner)] {
        let id = id.as_deref().unwrap_or(&echo.owner);
        out.push('<');
        out.push_str(tag);
        out.push('>');
        person(out, id, echo);
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
    let mut out = document("ListPartsResult");
    escape::element(&mut out, "Bucket", &echo.bucket);
    key(&mut out, "Key", &echo.key, echo);
    escape::element(&mut out, "UploadId", &echo.parameter("uploadId").unwrap_or_default());
    people(&mut out, upload, echo);
    let marker = number(echo, "part-number-marker").unwrap_or(0);
    escape::plain(&mut out, "PartNumberMarker", marker);
    let last = parts.last().map_or(0, |part| part.number.get());
    escape::plain(&mut out, "NextPartNumberMarker", last);
    escape::plain(&mut out, "MaxParts", number(echo, "max-parts").unwrap_or(1_000).min(1_000));
    escape::plain(&mut out, "IsTruncated", is_truncated);
    if let Some(checksum) = upload.checksum {
        checksum_kind(&mut out, checksum);
    }
    for part in parts {
        out.push_str("<Part>");
        escape::plain(&mut out, "PartNumber", part.number.get());
        escape::plain(&mut out, "LastModified", part.time.to_iso_millis());
        etag(&mut out, part.tag);
        escape::plain(&mut out, "Size", part.len);
        part.checksum.iter().for_each(|checksum| checksum_element(&mut out, checksum));
        out.push_str("</Part>");
    }
    out.push_str("</ListPartsResult>");
    out
}

fn upload_list(items: &[UploadItem], next: Option<&UploadPosition>, echo: &S3Echo) -> String {
    let mut out = document("ListMultipartUploadsResult");
    escape::element(&mut out, "Bucket", &echo.bucket);
    for (parameter, tag) in [("key-marker", "KeyMarker"), ("prefix", "Prefix")] {
        key(&mut out, tag, &echo.parameter(parameter).unwrap_or_default(), echo);
    }
    if let Some(delimiter) = echo.parameter("delimiter").filter(|text| !text.is_empty()) {
        key(&mut out, "Delimiter", &delimiter, echo);
    }
    escape::element(
        &mut out,
        "UploadIdMarker",
        &echo.parameter("upload-id-marker").unwrap_or_default(),
    );
    if let Some(UploadPosition { name, upload }) = next {
        key(&mut out, "NextKeyMarker", name, echo);
        let id = upload.as_ref().map(UploadId::to_string).unwrap_or_default();
        escape::plain(&mut out, "NextUploadIdMarker", id);
    }
    if is_encoded(echo) {
        escape::plain(&mut out, "EncodingType", "url");
    }
    escape::plain(&mut out, "MaxUploads", number(echo, "max-uploads").unwrap_or(1_000).min(1_000));
    escape::plain(&mut out, "IsTruncated", next.is_some());
    for item in items {
        if let UploadItem::Upload { name, id, facts } = item {
            out.push_str("<Upload>");
            key(&mut out, "Key", name, echo);
            escape::plain(&mut out, "UploadId", id);
            people(&mut out, facts, echo);
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
            key(&mut out, "Prefix", name, echo);
            out.push_str("</CommonPrefixes>");
        }
    }
    out.push_str("</ListMultipartUploadsResult>");
    out
}

/// A number of the query, which the parser has checked.
fn number(echo: &S3Echo, name: &str) -> Option<u32> {
    echo.parameter(name)?.parse().ok()
}

fn is_encoded(echo: &S3Echo) -> bool {
    echo.parameter("encoding-type").as_deref() == Some("url")
}

/// An element with a key or a part of one.
fn key(out: &mut String, tag: &str, value: &str, echo: &S3Echo) {
    if is_encoded(echo) {
        escape::element(out, tag, &utf8_percent_encode(value, &KEY).to_string());
    } else {
        escape::referenced(out, tag, value);
    }
}
