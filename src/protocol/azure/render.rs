//! Replies and errors to response heads and bodies.

mod head;

use std::ops::Range;

use bytes::Bytes;
use http::Response;
use uuid::Uuid;

use crate::protocol::azure::acl;
use crate::protocol::azure::delegation;
use crate::protocol::azure::echo::Listing;
use crate::protocol::azure::echo::Parameters;
use crate::protocol::azure::echo::RequestEcho;
use crate::protocol::azure::encryption;
use crate::protocol::azure::errors;
use crate::protocol::azure::errors::Place;
use crate::protocol::azure::errors::error_row;
use crate::protocol::azure::listing;
#[cfg(feature = "query")]
use crate::protocol::azure::listing_columns;
#[cfg(feature = "query")]
use crate::protocol::azure::lists;
use crate::protocol::azure::render::head::begin;
use crate::protocol::azure::service;
use crate::protocol::azure::tags;
use crate::protocol::azure::words::public_access_name;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::copy::CopyState;
use crate::protocol::model::list_reply::BlobListing;
use crate::protocol::model::list_reply::ContainerListing;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::reply::BlobFacts;
use crate::protocol::model::reply::Change;
use crate::protocol::model::reply::FoundBlobs;
use crate::protocol::model::reply::LeaseOutcome;
use crate::protocol::wire::escape;
use crate::protocol::wire::head::Head;
use crate::types::AccountType;
use crate::types::Encryption;

/// Writes a reply. The body of [`Reply::Blob`] is left to the caller; its `Content-Length` is set.
#[must_use]
#[expect(clippy::too_many_lines, reason = "one arm for each reply")]
pub fn render(reply: &Reply, echo: &RequestEcho) -> Response<Bytes> {
    let head = |status| begin(status, echo);
    match reply {
        Reply::AccountInformation(account_type) => account_information(*account_type, echo),
        Reply::ServiceProperties { properties, permanent_delete } => {
            head(200).xml(service::write_properties(properties, *permanent_delete))
        }
        Reply::ServicePropertiesSet | Reply::ContainerDeleted => head(202).empty(),
        Reply::ServiceStats { last_sync } => head(200).xml(service::write_stats(*last_sync)),
        Reply::Containers(page) => containers(page, echo),
        Reply::Blobs(page) => blobs(page, echo),
        Reply::FoundBlobs(page) => found_blobs(page, echo),
        Reply::ContainerCreated(change) | Reply::ContainerKept(change) => {
            head(201).change(change).empty()
        }
        Reply::ContainerChanged(change) | Reply::BlobPropertiesSet(change) => {
            head(200).change(change).empty()
        }
        Reply::ContainerAcl { change, public_access, policies } => head(200)
            .change(change)
            .optional("x-ms-blob-public-access", public_access_name(*public_access))
            .xml(acl::write_policies(policies)),
        Reply::UserDelegationKey(key) => head(200).xml(delegation::write_key(key)),
        Reply::Container(facts) => head(200).container(facts).empty(),
        Reply::BlobPut { change, checksums, .. } => blob_put(change, checksums.as_ref(), echo),
        Reply::BlockAppended { change, offset, blocks, checksums } => {
            block_appended(head(201).change(change).written(checksums, echo), *offset, *blocks)
        }
        Reply::PagesPut { change, sequence, checksums } => {
            pages_put(head(201).change(change).written_if_any(checksums.as_ref(), echo), *sequence)
        }
        Reply::PagePropertiesSet { change, sequence } => {
            head(200).change(change).shown("x-ms-blob-sequence-number", sequence).empty()
        }
        Reply::PageRanges { change, len, items, next } => {
            let head = head(200).change(change).shown("x-ms-blob-content-length", len);
            head.xml(listing::page_list(items, *next))
        }
        Reply::BlobSealed(change) => {
            head(200).change(change).fixed("x-ms-blob-sealed", "true").empty()
        }
        Reply::BlobCopied { change, id, state, checksums } => {
            let head = head(202).change(change).written_if_any(checksums.as_ref(), echo);
            // Only a copy that was waited for has checksums.
            let head = if checksums.is_some() { head.encrypted() } else { head };
            blob_copied(head, *id, *state)
        }
        Reply::CopyAborted | Reply::BlobTagsSet => head(204).bodiless(),
        Reply::BlockPut(checksums) => head(201).written(checksums, echo).encrypted().empty(),
        Reply::BlockListPut(change, checksum) => {
            head(201).change(change).checksum(checksum).encrypted().empty()
        }
        Reply::BlockList { committed_blob, committed, uncommitted } => head(200)
            .committed_blob(committed_blob.as_ref())
            .xml(listing::block_list(committed.as_deref(), uncommitted.as_deref())),
        Reply::Blob { facts, range, checksum } => {
            blob(facts, range.as_ref(), checksum.as_ref(), echo)
        }
        Reply::BlobProperties(facts) => blob_properties(facts, echo),
        Reply::BlobMetadata(facts) => blob_metadata(facts, echo),
        Reply::BlobMetadataSet(change) => head(200).change(change).encrypted().empty(),
        Reply::Snapshotted { snapshot, change } => {
            // `false` in recorded answers of the service (2021-08-06), with a scope and without.
            head(201)
                .change(change)
                .fixed("x-ms-request-server-encrypted", "false")
                .set("x-ms-snapshot", &snapshot.to_iso())
                .empty()
        }
        Reply::TierSet { pending } => head(if *pending { 202 } else { 200 }).empty(),
        Reply::BlobQueried(facts) => head(200).queried(facts).bodiless(),
        Reply::BlobUndeleted => head(200).empty(),
        Reply::RetentionSet(retention) => head(200).retention(*retention).empty(),
        Reply::LegalHoldSet(on) => head(200).legal_hold(Some(*on)).empty(),
        Reply::Leased { change, outcome } => leased(change, *outcome, echo),
        Reply::BlobTags(pairs) => head(200).xml(tags::write_document(pairs)),
        Reply::Preflight(headers) => preflight(headers, echo),
        Reply::Batch { boundary, body } => batch(boundary, body, echo),
        Reply::Encrypted(reply, encryption) => encrypted(render(reply, echo), encryption),
        // No request of Azure is answered so.
        Reply::Part(..) | Reply::Upload(_) | Reply::Setting(_) | Reply::Grants(_) => other(echo),
        Reply::NamedCopied(_) | Reply::Lock(_) => other(echo),
        Reply::BlobsDeleted(_) | Reply::BlobAttributes { .. } | Reply::BlobRestored { .. } => {
            other(echo)
        }
        Reply::BlobDeleted(deletion) => {
            let is_permanent = if deletion.is_kept { "false" } else { "true" };
            head(202).fixed("x-ms-delete-type-permanent", is_permanent).empty()
        }
    }
}

/// No request of Azure has this reply.
fn other(echo: &RequestEcho) -> Response<Bytes> {
    render_error(&Reason::InternalError.into(), echo)
}

fn account_information(account_type: AccountType, echo: &RequestEcho) -> Response<Bytes> {
    begin(200, echo)
        .fixed("x-ms-sku-name", account_type.sku().as_str())
        .fixed("x-ms-account-kind", account_type.kind().as_str())
        .fixed("x-ms-is-hns-enabled", "false")
        .empty()
}

fn containers(page: &ContainerListing, echo: &RequestEcho) -> Response<Bytes> {
    let body = match &echo.listing {
        Some(Listing { endpoint, parameters: Parameters::Containers(request) }) => {
            listing::containers(page, endpoint, request)
        }
        _ => listing::containers(page, "", &ListContainers::default()),
    };
    begin(200, echo).xml(body)
}

fn blobs(page: &BlobListing, echo: &RequestEcho) -> Response<Bytes> {
    match &echo.listing {
        Some(Listing { endpoint, parameters: Parameters::Blobs(request) }) => {
            columns(page, request, echo)
                .unwrap_or_else(|| begin(200, echo).xml(listing::blobs(page, endpoint, request)))
        }
        _ => render_error(&Reason::InternalError.into(), echo),
    }
}

/// A page in columns, if the request asked for that.
#[cfg(feature = "query")]
fn columns(page: &BlobListing, asked: &ListBlobs, echo: &RequestEcho) -> Option<Response<Bytes>> {
    let body = asked.columns.then(|| listing_columns::blobs(page, asked))?.ok()?;
    let head = begin(200, echo).fixed("content-type", lists::ARROW);
    Some(head.shown("content-length", body.len()).bodiless().map(|_| body))
}

/// This build answers in XML, as the service does where it has no columns.
#[cfg(not(feature = "query"))]
const fn columns(_: &BlobListing, _: &ListBlobs, _: &RequestEcho) -> Option<Response<Bytes>> {
    None
}

fn found_blobs(page: &FoundBlobs, echo: &RequestEcho) -> Response<Bytes> {
    match &echo.listing {
        Some(Listing { endpoint, parameters: Parameters::Find(request) }) => {
            begin(200, echo).xml(tags::write_found(page, endpoint, request))
        }
        _ => render_error(&Reason::InternalError.into(), echo),
    }
}

fn blob_put(
    change: &Change,
    checksums: Option<&WrittenChecksums>,
    echo: &RequestEcho,
) -> Response<Bytes> {
    let head = begin(201, echo).change(change).encrypted();
    // Unlike the other writes, in each version.
    match checksums {
        Some(checksums) => head.both(checksums).empty(),
        None => head.empty(),
    }
}

fn block_appended(head: Head, offset: u64, blocks: u32) -> Response<Bytes> {
    head.encrypted()
        .shown("x-ms-blob-append-offset", offset)
        .shown("x-ms-blob-committed-block-count", blocks)
        .empty()
}

fn pages_put(head: Head, sequence: u64) -> Response<Bytes> {
    let head = head.encrypted().shown("x-ms-blob-sequence-number", sequence);
    head.empty()
}

fn blob_copied(head: Head, id: Uuid, state: CopyState) -> Response<Bytes> {
    let head = head.shown("x-ms-copy-id", id.hyphenated());
    head.fixed("x-ms-copy-status", state.as_str()).empty()
}

fn encrypted(response: Response<Bytes>, encryption: &Encryption) -> Response<Bytes> {
    let (name, value) = encryption::header(encryption);
    Head::of(response).set(name, &value).bodiless()
}

fn blob_properties(facts: &BlobFacts, echo: &RequestEcho) -> Response<Bytes> {
    let md5 = facts.properties.content_md5.to_base64();
    begin(200, echo)
        .blob(facts, facts.len)
        .optional("content-md5", md5.as_deref())
        .tier(facts.tier.as_ref())
        .bodiless()
}

fn blob_metadata(facts: &BlobFacts, echo: &RequestEcho) -> Response<Bytes> {
    begin(200, echo)
        .change(&facts.change)
        .encryption(facts.encryption.as_ref())
        .metadata(&facts.metadata)
        .empty()
}

fn preflight(headers: &[(&'static str, String)], echo: &RequestEcho) -> Response<Bytes> {
    let head = begin(200, echo);
    headers.iter().fold(head, |head, (name, value)| head.set(name, value)).empty()
}

fn batch(boundary: &str, body: &Bytes, echo: &RequestEcho) -> Response<Bytes> {
    let content_type = format!("multipart/mixed; boundary={boundary}");
    let head = begin(202, echo).set("content-type", &content_type);
    head.shown("content-length", body.len()).bodiless().map(|_| body.clone())
}

fn blob(
    facts: &BlobFacts,
    range: Option<&Range<u64>>,
    checksum: Option<&BodyChecksum>,
    echo: &RequestEcho,
) -> Response<Bytes> {
    let Some(range) = range else {
        let head = begin(200, echo).blob(facts, facts.len).tier_of_read(facts, echo);
        let md5 = facts.properties.content_md5.to_base64();
        return head.optional("content-md5", md5.as_deref()).bodiless();
    };
    let (first, last) = (range.start, range.end.saturating_sub(1));
    let mut head = begin(206, echo)
        .blob(facts, range.end - range.start)
        .tier_of_read(facts, echo)
        .shown("content-range", format_args!("bytes {first}-{last}/{}", facts.len));
    // `Content-MD5` is of the sent bytes; the blob's own goes by another name.
    if let Some(md5) = facts.properties.content_md5.to_base64() {
        head = head.set("x-ms-blob-content-md5", &md5);
    }
    match checksum {
        Some(checksum) => head.checksum(checksum).bodiless(),
        None => head.bodiless(),
    }
}

fn leased(change: &Change, outcome: LeaseOutcome, echo: &RequestEcho) -> Response<Bytes> {
    let head = |status| begin(status, echo).change(change);
    let with_id = |status, id: Uuid| head(status).shown("x-ms-lease-id", id).empty();
    match outcome {
        LeaseOutcome::Acquired(id) => with_id(201, id),
        LeaseOutcome::Renewed(id) | LeaseOutcome::Changed(id) => with_id(200, id),
        LeaseOutcome::Released => head(200).empty(),
        LeaseOutcome::Broken { seconds } => head(202).shown("x-ms-lease-time", seconds).empty(),
    }
}

/// Writes a refusal: the code in header and body; no body for HEAD and 304.
#[must_use]
pub fn render_error(refusal: &Refusal, echo: &RequestEcho) -> Response<Bytes> {
    let head = error_head(refusal, echo);
    if is_bodiless(refusal, echo) {
        return head.bodiless();
    }
    let mut body = String::with_capacity(512);
    body.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>");
    escape::element(&mut body, "Code", error_row(refusal.reason).code);
    body.push_str("<Message>");
    escape::text(&mut body, &fitting(errors::message(refusal)));
    body.push_str("\nRequestId:");
    body.push_str(&echo.request_id);
    body.push_str("\nTime:");
    body.push_str(&echo.time.to_iso());
    body.push_str("</Message>");
    for (place, value) in errors::details(refusal) {
        if let Place::Element(name) | Place::Both(name, _) = place {
            escape::element(&mut body, name, &fitting(&value));
        }
    }
    body.push_str("</Error>");
    head.xml(body)
}

/// Writes a refusal with the code in the header and no body.
#[must_use]
pub fn render_error_without_text(refusal: &Refusal, echo: &RequestEcho) -> Response<Bytes> {
    let head = error_head(refusal, echo);
    if is_bodiless(refusal, echo) { head.bodiless() } else { head.empty() }
}

/// An answer to HEAD, or that nothing changed.
fn is_bodiless(refusal: &Refusal, echo: &RequestEcho) -> bool {
    echo.head || errors::status(refusal) == 304
}

fn error_head(refusal: &Refusal, echo: &RequestEcho) -> Head {
    let status = errors::status(refusal);
    // The source of a copy has a code of its own.
    let own = status == 304 && refusal.source.is_none();
    let reason = if own { Reason::ConditionNotMet } else { refusal.reason };
    let mut head = begin(status, echo).fixed("x-ms-error-code", error_row(reason).code);
    for (place, value) in errors::details(refusal) {
        if let Place::Header(name) | Place::Both(_, name) = place {
            head = head.set(name, &value);
        }
    }
    head
}

/// Removes characters that XML cannot contain: clients may have sent them.
fn fitting(text: &str) -> String {
    text.chars().filter(|&c| escape::fits_xml(c)).collect()
}

#[cfg(test)]
mod tests;
