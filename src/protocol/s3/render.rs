//! Replies and refusals to response heads and bodies.

mod acl;
mod attributes;
mod buckets;
mod copies;
mod deletions;
mod document;
mod head;
mod lists;
mod settings;
mod uploads;

use std::ops::Range;

use bytes::Bytes;
use http::Response;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::facts::BlobFacts;
use crate::protocol::model::facts::ContainerFacts;
use crate::protocol::model::reply::Deletion;
use crate::protocol::model::reply::SettingReply;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::encryption;
use crate::protocol::s3::errors::ErrorRow;
use crate::protocol::s3::errors::error_row;
use crate::protocol::s3::form::posted;
use crate::protocol::s3::render::head::begin;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::s3::settings::fixed;
use crate::protocol::s3::settings::not_found;
use crate::protocol::wire::escape;
use crate::protocol::wire::head::Head;

/// Writes a reply. The body of [`Reply::Blob`] is left to the caller; its `Content-Length` is set.
#[must_use]
pub fn render(reply: &Reply, echo: &S3Echo) -> Response<Bytes> {
    let answer = answer(reply, echo);
    match echo.asked.key_md5.as_deref() {
        Some(md5) if answer.status().is_success() => {
            encryption::confirm(Head::of(answer), Some(md5)).bodiless()
        }
        Some(_) | None => answer,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no operation of S3 has the other replies")]
fn answer(reply: &Reply, echo: &S3Echo) -> Response<Bytes> {
    match reply {
        Reply::Containers(page) => begin(200, echo).xml(buckets::list(page, echo)),
        Reply::Blobs(page) => begin(200, echo).xml(lists::objects(page, echo)),
        Reply::ContainerCreated(_) | Reply::ContainerKept(_) => {
            begin(200, echo).set("location", &echo.resource).empty()
        }
        Reply::Container(facts) => bucket(facts, echo),
        Reply::ContainerDeleted => begin(204, echo).bodiless(),
        Reply::BlobDeleted(deletion) => deleted(deletion, echo),
        Reply::BlobPut { change, content_etag, checksum, .. } => {
            let status = echo.form.as_ref().map_or(200, |form| form.status);
            let head = begin(status, echo).shown("etag", format_args!("\"{content_etag}\""));
            let head = head::version(head, change.version);
            let head = head::checksum(head, &checksum.of_whole());
            match &echo.form {
                Some(form) => posted(head, form, content_etag),
                None => head.empty(),
            }
        }
        Reply::BlobTags(tags) => begin(200, echo).xml(settings::tags(tags.iter())),
        Reply::Setting(reply) => setting(reply, echo),
        Reply::Lock(lock) => begin(200, echo).xml(settings::blob_lock(lock)),
        Reply::RetentionSet(_) | Reply::LegalHoldSet(_) => changed(echo),
        Reply::Grants(Some(grants)) => begin(200, echo).xml(acl::grants(grants, echo)),
        Reply::Grants(None) | Reply::BlobTagsSet => changed(echo),
        Reply::Blob { facts, range, .. } => object(facts, range.as_ref(), echo),
        Reply::BlobProperties(facts) => properties(facts, echo),
        Reply::BlobsDeleted(deleted) => begin(200, echo).xml(deletions::deleted(deleted)),
        Reply::BlobAttributes { facts, parts } => begin(200, echo)
            .shown("last-modified", facts.change.last_modified)
            .xml(attributes::attributes(facts, parts.as_ref(), echo.asked.attributes)),
        Reply::BlobRestored { begun } => begin(if *begun { 202 } else { 200 }, echo).empty(),
        Reply::Part(reply, parts) => head::parts_count(answer(reply, echo), *parts),
        Reply::Upload(reply) => uploads::upload(reply, echo),
        Reply::NamedCopied(facts) => {
            let head = head::version(begin(200, echo), facts.version);
            head::source_version(head, facts.source_version).xml(copies::copied(facts, echo))
        }
        Reply::Encrypted(reply, _) => answer(reply, echo),
        Reply::Preflight(headers) => {
            let head = begin(200, echo);
            headers.iter().fold(head, |head, (name, value)| head.set(name, value)).empty()
        }
        _ => render_refusal(&Reason::NotImplemented.into(), echo),
    }
}

/// The answer to a deletion: the new delete marker, or the version that was removed.
fn deleted(deletion: &Deletion, echo: &S3Echo) -> Response<Bytes> {
    let head = head::version(begin(204, echo), deletion.version);
    if deletion.is_marker { head.fixed("x-amz-delete-marker", "true") } else { head }.bodiless()
}

fn setting(reply: &SettingReply, echo: &S3Echo) -> Response<Bytes> {
    match reply {
        SettingReply::Value(setting) => begin(200, echo).xml(settings::setting(setting)),
        SettingReply::Versioning(state) => begin(200, echo).xml(settings::versioning(*state)),
        SettingReply::ObjectLock(lock) => begin(200, echo).xml(settings::object_lock(lock)),
        SettingReply::Fixed => match echo.operation.and_then(fixed) {
            Some(document) => begin(200, echo).xml(settings::fixed(document)),
            None => render_refusal(&Reason::NotImplemented.into(), echo),
        },
        SettingReply::Changed => changed(echo),
    }
}

/// The answer to a change, without a document.
fn changed(echo: &S3Echo) -> Response<Bytes> {
    match echo.operation {
        Some(operation) if operation.name().starts_with("Put") => begin(200, echo).empty(),
        Some(_) | None => begin(204, echo).bodiless(),
    }
}

/// The answer to a HEAD. A range changes the length that it shows.
fn properties(facts: &BlobFacts, echo: &S3Echo) -> Response<Bytes> {
    let Some(range) = echo.asked.range else { return object(facts, None, echo) };
    match range.within(facts.len) {
        Some(range) => object(facts, Some(&range), echo),
        None => {
            let refusal = Refusal::new(Reason::InvalidRange).satisfiable(facts.len);
            render_refusal(&refusal, echo)
        }
    }
}

fn bucket(facts: &ContainerFacts, echo: &S3Echo) -> Response<Bytes> {
    let region = facts.region.as_deref().unwrap_or(&echo.region);
    match echo.operation {
        Some(S3Operation::GetBucketLocation) => begin(200, echo).xml(buckets::location(region)),
        Some(_) | None => begin(200, echo).set("x-amz-bucket-region", region).bodiless(),
    }
}

fn object(facts: &BlobFacts, range: Option<&Range<u64>>, echo: &S3Echo) -> Response<Bytes> {
    let Some(range) = range else {
        let head = head::object(begin(200, echo), facts, facts.len);
        let checksums = if echo.asked.checksums { facts.content_checksums() } else { Vec::new() };
        return checksums.iter().fold(head, head::checksum).bodiless();
    };
    let (first, last) = (range.start, range.end.saturating_sub(1));
    head::object(begin(206, echo), facts, range.end - range.start)
        .shown("content-range", format_args!("bytes {first}-{last}/{}", facts.len))
        .bodiless()
}

/// Writes a refusal; no body for HEAD and 304.
#[must_use]
pub fn render_refusal(refusal: &Refusal, echo: &S3Echo) -> Response<Bytes> {
    if deletes_nothing(refusal, echo) {
        return begin(204, echo).bodiless();
    }
    let (head, status) = refusal_head(refusal, echo);
    if echo.head || status == 304 {
        return head.bodiless();
    }
    let row = row(refusal, echo);
    let mut body = String::with_capacity(512);
    body.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>");
    escape::element(&mut body, "Code", row.code);
    escape::referenced(&mut body, "Message", refusal.message.as_deref().unwrap_or(row.message));
    for (detail, value) in &refusal.details {
        if let Some(name) = element(*detail) {
            let length = value.strip_prefix("bytes */");
            escape::referenced(&mut body, name, length.unwrap_or(value));
        }
    }
    escape::referenced(&mut body, "Resource", &echo.resource);
    escape::element(&mut body, "RequestId", &echo.request_id);
    escape::element(&mut body, "HostId", HOST_ID);
    body.push_str("</Error>");
    head.xml(body)
}

/// In S3 the deletion of a missing object succeeds.
fn deletes_nothing(refusal: &Refusal, echo: &S3Echo) -> bool {
    matches!(refusal.reason, Reason::BlobNotFound | Reason::VersionNotFound)
        && echo.operation == Some(S3Operation::DeleteObject)
        && !echo.asked.existing
}

/// Writes a refusal without a body.
#[must_use]
pub fn render_refusal_without_text(refusal: &Refusal, echo: &S3Echo) -> Response<Bytes> {
    if deletes_nothing(refusal, echo) {
        return begin(204, echo).bodiless();
    }
    let (head, status) = refusal_head(refusal, echo);
    if echo.head || status == 304 { head.bodiless() } else { head.empty() }
}

/// The code, status and text of a refusal. Each setting that a bucket lacks has a code of its own.
fn row(refusal: &Refusal, echo: &S3Echo) -> ErrorRow {
    match refusal.reason == Reason::SettingNotFound {
        true => not_found(echo.operation).unwrap_or_else(|| error_row(refusal.reason)),
        false => error_row(refusal.reason),
    }
}

/// The second id of an answer; S3 has one for each of its machines.
const HOST_ID: &str = "blockyard";

#[expect(clippy::wildcard_enum_match_arm, reason = "most details are of the body")]
fn refusal_head(refusal: &Refusal, echo: &S3Echo) -> (Head, u16) {
    let row = row(refusal, echo);
    let mut head = begin(row.status, echo).fixed("x-amz-error-code", row.code);
    if let Some(marker) = refusal.marker {
        head = head::version(head, Some(marker)).fixed("x-amz-delete-marker", "true");
        if refusal.reason == Reason::DeleteMarker {
            head = head.shown("last-modified", marker.time).fixed("allow", "DELETE");
        }
    }
    for (detail, value) in &refusal.details {
        match detail {
            Detail::SatisfiableRange => head = head.set("content-range", value),
            Detail::RetryAfter => head = head.set("retry-after", value),
            Detail::ContentEtag => head = head.set("etag", value),
            _ => {}
        }
    }
    (head, row.status)
}

/// The element of a detail in the body.
#[expect(clippy::wildcard_enum_match_arm, reason = "most details are Azure's")]
const fn element(detail: Detail) -> Option<&'static str> {
    match detail {
        Detail::HeaderName | Detail::ParameterName => Some("ArgumentName"),
        Detail::HeaderValue | Detail::ParameterValue => Some("ArgumentValue"),
        Detail::StringToSign => Some("StringToSign"),
        Detail::CanonicalRequest => Some("CanonicalRequest"),
        Detail::AccessKeyId => Some("AWSAccessKeyId"),
        Detail::Limit => Some("MaxSizeAllowed"),
        Detail::SatisfiableRange => Some("ActualObjectSize"),
        Detail::StorageClass => Some("StorageClass"),
        Detail::Condition => Some("Condition"),
        _ => None,
    }
}
