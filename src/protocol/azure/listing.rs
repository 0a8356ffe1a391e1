//! XML bodies: pages of containers and blobs, block lists.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use crate::protocol::azure::block_id;
use crate::protocol::azure::deletions;
use crate::protocol::azure::encryption;
use crate::protocol::azure::errors;
use crate::protocol::azure::tags;
use crate::protocol::azure::words;
use crate::protocol::model::copy::CopyFacts;
use crate::protocol::model::list_reply::BlobItem;
use crate::protocol::model::list_reply::BlobListing;
use crate::protocol::model::list_reply::ContainerListing;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::reply::BlobFacts;
use crate::protocol::model::reply::BlockItem;
use crate::protocol::model::reply::ContainerFacts;
use crate::protocol::model::reply::LeaseFacts;
use crate::protocol::model::reply::PageItem;
use crate::protocol::model::reply::TierFacts;
use crate::protocol::wire::escape;
use crate::types::BlobKind;
use crate::types::Encryption;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::Timestamp;
use crate::types::VersionId;

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
/// A page of more bytes ends early, with a marker. 5,000 blobs with little metadata take 3 MiB;
/// with much of it that is escaped, each entry may take 60 KiB.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes that most entries of blobs stay below: a page that outgrows its space is copied.
const ENTRY_BYTES: usize = 768;

/// List Containers.
pub(super) fn containers(
    listing: &ContainerListing,
    endpoint: &str,
    asked: &ListContainers,
) -> String {
    let mut out =
        String::with_capacity((512 + listing.items.len() * ENTRY_BYTES).min(PAGE_BYTES_MAX));
    begin(&mut out, endpoint, None);
    optional(&mut out, "Prefix", asked.prefix.as_deref());
    optional(&mut out, "Marker", asked.marker.as_deref());
    max_results(&mut out, asked.max_results);
    out.push_str("<Containers>");
    let mut page = Page::new(&listing.after, listing.next.as_ref());
    for item in &listing.items {
        if page.is_over(&out) {
            break;
        }
        out.push_str("<Container>");
        escape::element(&mut out, "Name", &item.name);
        if let Some(deleted) = item.facts.deleted {
            out.push_str("<Deleted>true</Deleted>");
            escape::plain(&mut out, "Version", deletions::version_of(deleted.since));
        }
        container(&mut out, &item.facts);
        if asked.metadata {
            metadata(&mut out, &item.facts.metadata);
        }
        out.push_str("</Container>");
    }
    out.push_str("</Containers>");
    end(&mut out, page.marker().as_deref());
    out
}

/// Where a page ends.
struct Page<'a> {
    after: &'a [Bytes],
    next: Option<&'a Bytes>,
    shown: usize,
}

impl<'a> Page<'a> {
    const fn new(after: &'a [Bytes], next: Option<&'a Bytes>) -> Self {
        Self { after, next, shown: 0 }
    }

    /// Whether no further entry is shown, though there is one; else one is.
    fn is_over(&mut self, out: &str) -> bool {
        if out.len() >= PAGE_BYTES_MAX
            && let Some(next) = self.shown.checked_sub(1).and_then(|last| self.after.get(last))
        {
            self.next = Some(next);
            return true;
        }
        self.shown += 1;
        false
    }

    fn marker(&self) -> Option<String> {
        self.next.map(marker)
    }
}

/// Markers are positions in the key space: they hold across splits and restarts.
pub(super) fn marker(position: &Bytes) -> String {
    URL_SAFE_NO_PAD.encode(position)
}

fn container(out: &mut String, facts: &ContainerFacts) {
    out.push_str("<Properties>");
    escape::plain(out, "Last-Modified", facts.change.last_modified);
    escape::plain(out, "Etag", format_args!("&quot;{}&quot;", facts.change.etag));
    match facts.deleted {
        // As the service shows it.
        Some(_) => {
            out.push_str("<LeaseStatus>unlocked</LeaseStatus><LeaseState>expired</LeaseState>");
        }
        None => lease(out, facts.lease),
    }
    match facts.public_access {
        PublicAccess::Private => {}
        PublicAccess::Blob => out.push_str("<PublicAccess>blob</PublicAccess>"),
        PublicAccess::Container => out.push_str("<PublicAccess>container</PublicAccess>"),
    }
    let scope = facts.encryption_scope.as_ref();
    escape::element(out, "DefaultEncryptionScope", encryption::name(scope));
    escape::element(out, "DenyEncryptionScopeOverride", encryption::denies(scope));
    out.push_str(
        "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>",
    );
    escape::plain(out, "ImmutableStorageWithVersioningEnabled", facts.has_object_lock);
    if let Some(deleted) = facts.deleted {
        escape::plain(out, "DeletedTime", deleted.since);
        escape::plain(out, "RemainingRetentionDays", deleted.days_left);
    }
    out.push_str("</Properties>");
}

/// List Blobs.
pub(super) fn blobs(listing: &BlobListing, endpoint: &str, asked: &ListBlobs) -> String {
    let mut out =
        String::with_capacity((512 + listing.items.len() * ENTRY_BYTES).min(PAGE_BYTES_MAX));
    begin(&mut out, endpoint, Some(asked.container.as_str()));
    optional(&mut out, "Prefix", asked.prefix.as_deref());
    optional(&mut out, "Marker", asked.marker.as_deref());
    max_results(&mut out, asked.max_results);
    optional(&mut out, "Delimiter", asked.delimiter.as_deref());
    out.push_str("<Blobs>");
    let mut dates = Dates::default();
    let mut page = Page::new(&listing.after, listing.next.as_ref());
    for item in &listing.items {
        if page.is_over(&out) {
            break;
        }
        match item {
            BlobItem::Blob { name, revision, facts } => {
                out.push_str("<Blob>");
                escape::name(&mut out, "Name", name);
                if let Some(snapshot) = revision.snapshot() {
                    escape::plain(&mut out, "Snapshot", snapshot.to_iso());
                } else if asked.versions.is_some() {
                    let is_current = revision.is_current() && facts.deleted.is_none();
                    version(&mut out, is_current, facts.change.version);
                }
                if facts.deleted.is_some() {
                    out.push_str("<Deleted>true</Deleted>");
                }
                blob(&mut out, facts, &mut dates, asked);
                if asked.metadata && is_by_customer(facts) {
                    // Without the key it is not for the reader.
                    out.push_str("<Metadata Encrypted=\"true\"/>");
                } else if asked.metadata {
                    metadata(&mut out, &facts.metadata);
                }
                if asked.tags && !facts.tags.is_empty() {
                    tags::write_tags(&mut out, &facts.tags);
                }
                out.push_str("<OrMetadata/></Blob>");
            }
            BlobItem::VersionsOnly { name, facts } => {
                out.push_str("<Blob>");
                escape::name(&mut out, "Name", name);
                out.push_str("<HasVersionsOnly>true</HasVersionsOnly>");
                blob(&mut out, facts, &mut dates, asked);
                out.push_str("<OrMetadata/></Blob>");
            }
            BlobItem::Uncommitted { name } => {
                out.push_str("<Blob>");
                escape::name(&mut out, "Name", name);
                out.push_str(
                    "<Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>\
                     <LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>\
                     <ServerEncrypted>true</ServerEncrypted></Properties></Blob>",
                );
            }
            BlobItem::Prefix { name } => {
                out.push_str("<BlobPrefix>");
                escape::name(&mut out, "Name", name);
                out.push_str("</BlobPrefix>");
            }
        }
    }
    out.push_str("</Blobs>");
    end(&mut out, page.marker().as_deref());
    out
}

/// The id of a version, and whether it is current.
fn version(out: &mut String, is_current: bool, id: Option<VersionId>) {
    let Some(id) = id else { return };
    if !id.is_null || !is_current {
        escape::plain(out, "VersionId", id.time.to_iso());
    }
    if is_current {
        escape::plain(out, "IsCurrentVersion", true);
    }
}

/// The date written last: a blob's two dates are mostly one, and so are those of neighbours.
#[derive(Default)]
struct Dates {
    second: Option<Timestamp>,
    text: String,
}

impl Dates {
    fn text(&mut self, time: Timestamp) -> &str {
        let second = time.whole_seconds();
        if self.second != Some(second) {
            self.second = Some(second);
            self.text = second.to_string();
        }
        &self.text
    }
}

fn blob(out: &mut String, facts: &BlobFacts, dates: &mut Dates, asked: &ListBlobs) {
    let properties = &facts.properties;
    out.push_str("<Properties>");
    escape::plain(out, "Creation-Time", dates.text(facts.created));
    escape::plain(out, "Last-Modified", dates.text(facts.change.last_modified));
    escape::plain(out, "Etag", facts.change.etag);
    escape::plain(out, "Content-Length", facts.len);
    let content_type = properties.content_type.as_deref().unwrap_or("application/octet-stream");
    or_empty(out, "Content-Type", Some(content_type).filter(|text| !text.is_empty()));
    or_empty(out, "Content-Encoding", properties.content_encoding.as_deref());
    or_empty(out, "Content-Language", properties.content_language.as_deref());
    out.push_str("<Content-CRC64/>");
    // Without the key it is not for the reader.
    match properties.content_md5.to_base64().filter(|_| !is_by_customer(facts)) {
        Some(md5) => escape::plain(out, "Content-MD5", md5),
        None => out.push_str("<Content-MD5/>"),
    }
    or_empty(out, "Cache-Control", properties.cache_control.as_deref());
    or_empty(out, "Content-Disposition", properties.content_disposition.as_deref());
    kind(out, facts.kind);
    tier(out, facts.tier.as_ref());
    if facts.deleted.is_none() {
        lease(out, facts.lease);
    }
    if let Some(copied) = facts.copy.as_deref().filter(|_| asked.copy) {
        copy_state(out, copied);
    }
    out.push_str("<ServerEncrypted>true</ServerEncrypted>");
    protection(out, facts, asked);
    if let Some(time) = facts.last_access {
        escape::plain(out, "LastAccessTime", dates.text(time));
    }
    if !facts.tags.is_empty() {
        escape::plain(out, "TagCount", facts.tags.len());
    }
    match &facts.encryption {
        Some(encryption @ Encryption::Customer(_)) => {
            escape::element(out, "CustomerProvidedKeySha256", &encryption::header(encryption).1);
        }
        Some(Encryption::Scope(name) | Encryption::KeyedScope { name, .. }) => {
            escape::element(out, "EncryptionScope", name);
        }
        None => {}
    }
    if let Some(deleted) = facts.deleted {
        escape::plain(out, "DeletedTime", deleted.since);
        escape::plain(out, "RemainingRetentionDays", deleted.days_left);
    }
    out.push_str("</Properties>");
}

/// Whether only a request with the key may see the values that it protects.
pub(super) fn is_by_customer(facts: &BlobFacts) -> bool {
    facts.encryption.as_ref().is_some_and(Encryption::is_by_customer)
}

/// Writes the protection of a blob, as far as the request asks for it.
fn protection(out: &mut String, facts: &BlobFacts, asked: &ListBlobs) {
    if let Some(retention) = facts.retention.filter(|_| asked.retention) {
        escape::plain(out, "ImmutabilityPolicyUntilDate", retention.until);
        escape::plain(out, "ImmutabilityPolicyMode", words::policy_mode(retention.mode));
    }
    if let Some(on) = facts.legal_hold.filter(|_| asked.legal_hold) {
        escape::plain(out, "LegalHold", on);
    }
}

fn copy_state(out: &mut String, copy: &CopyFacts) {
    escape::plain(out, "CopyId", copy.id.hyphenated());
    escape::element(out, "CopySource", &copy.source);
    escape::plain(out, "CopyStatus", copy.state.as_str());
    escape::plain(out, "CopyProgress", format_args!("{}/{}", copy.copied, copy.total));
    if let Some(completed) = copy.completed {
        escape::plain(out, "CopyCompletionTime", completed);
    }
    if let Some(incremental) = copy.incremental {
        out.push_str("<IncrementalCopy>true</IncrementalCopy>");
        if let Some(snapshot) = incremental.snapshot {
            escape::plain(out, "CopyDestinationSnapshot", snapshot.to_iso());
        }
    }
    optional(
        out,
        "CopyStatusDescription",
        copy.failure.as_ref().map(errors::copy_failure).as_deref(),
    );
}

fn tier(out: &mut String, tier: Option<&TierFacts>) {
    let Some(tier) = tier else { return };
    escape::plain(out, "AccessTier", tier.tier.as_str());
    if tier.inferred {
        out.push_str("<AccessTierInferred>true</AccessTierInferred>");
    }
    if let Some(smart) = tier.tier.smart() {
        escape::plain(out, "SmartAccessTier", smart.as_str());
    }
    if let Some(changed) = tier.changed {
        escape::plain(out, "AccessTierChangeTime", changed);
    }
    if let Some(status) = tier.archive_status() {
        escape::plain(out, "ArchiveStatus", status);
    }
    if let Some(rehydration) = tier.rehydrating {
        escape::plain(out, "RehydratePriority", rehydration.priority.as_str());
    }
}

fn lease(out: &mut String, lease: LeaseFacts) {
    escape::plain(out, "LeaseStatus", words::lease_status(lease.state));
    escape::plain(out, "LeaseState", words::lease_state(lease.state));
    if let Some(duration) = words::lease_duration(lease) {
        escape::plain(out, "LeaseDuration", duration);
    }
}

/// The type, and what only it has.
fn kind(out: &mut String, kind: BlobKind) {
    if let BlobKind::Page { sequence } = kind {
        escape::plain(out, "x-ms-blob-sequence-number", sequence);
    }
    escape::plain(out, "BlobType", kind.as_str());
    match kind {
        BlobKind::Append { sealed: true, .. } => out.push_str("<Sealed>true</Sealed>"),
        BlobKind::Block | BlobKind::Append { .. } | BlobKind::Page { .. } => {}
    }
}

/// Get Page Ranges; ends are inclusive there.
pub(super) fn page_list(items: &[PageItem], next: Option<u64>) -> String {
    let mut out = String::with_capacity(128 + items.len() * 80);
    out.push_str(DECLARATION);
    out.push_str("<PageList>");
    for item in items {
        let tag = if item.cleared { "ClearRange" } else { "PageRange" };
        let (start, end) = (item.range.start, item.range.end.saturating_sub(1));
        out.push_str(&format!("<{tag}><Start>{start}</Start><End>{end}</End></{tag}>"));
    }
    if let Some(next) = next {
        escape::plain(&mut out, "NextMarker", next);
    }
    out.push_str("</PageList>");
    out
}

/// Get Block List.
pub(super) fn block_list(
    committed: Option<&[BlockItem]>,
    uncommitted: Option<&[BlockItem]>,
) -> String {
    let count = committed.map_or(0, <[_]>::len) + uncommitted.map_or(0, <[_]>::len);
    let mut out = String::with_capacity(128 + count * 96);
    out.push_str(DECLARATION);
    out.push_str("<BlockList>");
    blocks(&mut out, "CommittedBlocks", committed);
    blocks(&mut out, "UncommittedBlocks", uncommitted);
    out.push_str("</BlockList>");
    out
}

fn blocks(out: &mut String, tag: &str, blocks: Option<&[BlockItem]>) {
    let Some(blocks) = blocks else { return };
    out.push('<');
    out.push_str(tag);
    out.push('>');
    for block in blocks {
        out.push_str("<Block>");
        escape::plain(out, "Name", block_id::write(&block.id));
        escape::plain(out, "Size", block.len);
        out.push_str("</Block>");
    }
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
}

fn begin(out: &mut String, endpoint: &str, container: Option<&str>) {
    out.push_str(DECLARATION);
    out.push_str("<EnumerationResults ServiceEndpoint=\"");
    escape::text(out, endpoint);
    if let Some(container) = container {
        out.push_str("\" ContainerName=\"");
        escape::text(out, container);
    }
    out.push_str("\">");
}

fn end(out: &mut String, next_marker: Option<&str>) {
    match next_marker {
        Some(marker) => escape::element(out, "NextMarker", marker),
        None => out.push_str("<NextMarker/>"),
    }
    out.push_str("</EnumerationResults>");
}

/// Text of a client may contain characters that XML cannot.
fn optional(out: &mut String, tag: &str, value: Option<&str>) {
    if let Some(value) = value {
        escape::name(out, tag, value);
    }
}

fn or_empty(out: &mut String, tag: &str, value: Option<&str>) {
    match value {
        Some(value) => escape::element(out, tag, value),
        None => {
            out.push('<');
            out.push_str(tag);
            out.push_str("/>");
        }
    }
}

fn max_results(out: &mut String, max_results: Option<u32>) {
    if let Some(max_results) = max_results {
        escape::plain(out, "MaxResults", max_results);
    }
}

/// In the place of a metadata name that XML cannot hold, or whose value it cannot: the name is its
/// text. Source: "List Blobs".
const INVALID_NAME: &str = "x-ms-invalid-name";

/// Whether a metadata name, which is a header name, is an XML name that means itself.
fn is_element(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        && !name.eq_ignore_ascii_case(INVALID_NAME)
}

fn metadata(out: &mut String, metadata: &Metadata) {
    if metadata.is_empty() {
        out.push_str("<Metadata/>");
        return;
    }
    out.push_str("<Metadata>");
    for (name, value) in metadata.iter() {
        match std::str::from_utf8(value) {
            Ok(value) if is_element(name) && value.chars().all(escape::fits_xml) => {
                escape::element(out, name, value);
            }
            // The service says no more of it either; Get Blob Properties shows the value.
            Ok(_) | Err(_) => escape::element(out, INVALID_NAME, name),
        }
    }
    out.push_str("</Metadata>");
}
