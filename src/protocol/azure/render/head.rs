//! Headers of Azure's answers.

use crate::protocol::azure::ServiceVersion;
use crate::protocol::azure::echo::RequestEcho;
use crate::protocol::azure::encryption;
use crate::protocol::azure::errors;
use crate::protocol::azure::words::lease_duration;
use crate::protocol::azure::words::lease_state;
use crate::protocol::azure::words::lease_status;
use crate::protocol::azure::words::policy_mode;
use crate::protocol::azure::words::public_access_name;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::copy::CopyFacts;
use crate::protocol::model::reply::BlobFacts;
use crate::protocol::model::reply::Change;
use crate::protocol::model::reply::ContainerFacts;
use crate::protocol::model::reply::LeaseFacts;
use crate::protocol::model::reply::TierFacts;
use crate::protocol::wire::head::Head;
use crate::types::AccessTier;
use crate::types::BlobKind;
use crate::types::Encryption;
use crate::types::Metadata;
use crate::types::Retention;
use crate::types::VersionId;

/// From this version on an answer has both checksums where the request brought an MD5.
const BOTH_SINCE: ServiceVersion = ServiceVersion::new(2026, 10, 6);

/// From this version on Get Blob shows the access tier.
const TIER_SINCE: ServiceVersion = ServiceVersion::new(2026, 10, 6);

/// Begins a head with the headers of every answer.
pub(super) fn begin(status: u16, echo: &RequestEcho) -> Head {
    let head = Head::new(status)
        .fixed("server", concat!("Blockyard/", env!("CARGO_PKG_VERSION")))
        .set("x-ms-request-id", &echo.request_id)
        .shown("x-ms-version", echo.version)
        .shown("date", echo.time);
    match &echo.client_request_id {
        Some(id) => head.insert("x-ms-client-request-id", id.clone()),
        None => head,
    }
}

impl Head {
    pub(super) fn change(self, change: &Change) -> Self {
        self.shown("etag", format_args!("\"{}\"", change.etag))
            .shown("last-modified", change.last_modified)
            .version(change.version)
    }

    /// The id of a version. The null version of S3 has none.
    pub(super) fn version(self, version: Option<VersionId>) -> Self {
        match version.filter(|version| !version.is_null) {
            Some(version) => self.set("x-ms-version-id", &version.time.to_iso()),
            None => self,
        }
    }

    pub(super) fn checksum(self, checksum: &BodyChecksum) -> Self {
        match checksum {
            BodyChecksum::Md5(md5) => self.set("content-md5", &md5.to_base64()),
            BodyChecksum::Crc64(crc64) => self.set("x-ms-content-crc64", &crc64.to_base64()),
        }
    }

    /// The checksums of the content that a request has written. Where it brought an MD5, versions
    /// before [`BOTH_SINCE`] have only that.
    pub(super) fn written(self, checksums: &WrittenChecksums, echo: &RequestEcho) -> Self {
        match checksums.md5 {
            Some(md5) if echo.version < BOTH_SINCE => self.checksum(&BodyChecksum::Md5(md5)),
            Some(_) | None => self.both(checksums),
        }
    }

    pub(super) fn written_if_any(
        self,
        checksums: Option<&WrittenChecksums>,
        echo: &RequestEcho,
    ) -> Self {
        match checksums {
            Some(checksums) => self.written(checksums, echo),
            None => self,
        }
    }

    pub(super) fn both(self, checksums: &WrittenChecksums) -> Self {
        let head = self.checksum(&BodyChecksum::Crc64(checksums.crc64));
        match checksums.md5 {
            Some(md5) => head.checksum(&BodyChecksum::Md5(md5)),
            None => head,
        }
    }

    /// The entity tag, time and length of the blob that a block list belongs to, if it exists.
    pub(super) fn committed_blob(self, blob: Option<&(Change, u64)>) -> Self {
        match blob {
            Some((change, len)) => self.change(change).shown("x-ms-blob-content-length", len),
            None => self,
        }
    }

    pub(super) fn tag_count(self, tags: usize) -> Self {
        if tags == 0 { self } else { self.shown("x-ms-tag-count", tags) }
    }

    pub(super) fn encrypted(self) -> Self {
        self.fixed("x-ms-request-server-encrypted", "true")
    }

    pub(super) fn encryption(self, encryption: Option<&Encryption>) -> Self {
        match encryption.map(encryption::header) {
            Some((name, value)) => self.set(name, &value),
            None => self,
        }
    }

    pub(super) fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata.iter() {
            self = self.named(&format!("x-ms-meta-{name}"), value);
        }
        self
    }

    pub(super) fn container(self, facts: &ContainerFacts) -> Self {
        let access = public_access_name(facts.public_access);
        self.change(&facts.change)
            .lease(facts.lease)
            .fixed("x-ms-has-immutability-policy", "false")
            .fixed("x-ms-has-legal-hold", "false")
            .shown("x-ms-immutable-storage-with-versioning-enabled", facts.has_object_lock)
            .set("x-ms-default-encryption-scope", encryption::name(facts.encryption_scope.as_ref()))
            .set(
                "x-ms-deny-encryption-scope-override",
                encryption::denies(facts.encryption_scope.as_ref()),
            )
            .optional("x-ms-blob-public-access", access)
            .metadata(&facts.metadata)
    }

    pub(super) fn blob(self, facts: &BlobFacts, content_length: u64) -> Self {
        let properties = &facts.properties;
        let content_type = properties.content_type.as_deref().unwrap_or("application/octet-stream");
        self.change(&facts.change)
            .shown("content-length", content_length)
            .optional("content-type", Some(content_type).filter(|text| !text.is_empty()))
            .optional("content-encoding", properties.content_encoding.as_deref())
            .optional("content-language", properties.content_language.as_deref())
            .optional("content-disposition", properties.content_disposition.as_deref())
            .optional("cache-control", properties.cache_control.as_deref())
            .fixed("accept-ranges", "bytes")
            .kind(facts.kind)
            .shown("x-ms-creation-time", facts.created)
            .lease(facts.lease)
            .fixed("x-ms-server-encrypted", "true")
            .tag_count(facts.tags.len())
            .encryption(facts.encryption.as_ref())
            .optional(
                "x-ms-last-access-time",
                facts.last_access.map(|time| time.to_string()).as_deref(),
            )
            .metadata(&facts.metadata)
            .copy(facts.copy.as_deref())
            .current_version(facts)
            .retention(facts.retention)
            .legal_hold(facts.legal_hold)
    }

    /// The head of a query's answer, whose length is not known.
    pub(super) fn queried(self, facts: &BlobFacts) -> Self {
        self.change(&facts.change)
            .fixed("content-type", "avro/binary")
            .fixed("accept-ranges", "bytes")
            .kind(facts.kind)
            .shown("x-ms-creation-time", facts.created)
            .lease(facts.lease)
            .fixed("x-ms-server-encrypted", "true")
            .encryption(facts.encryption.as_ref())
            .metadata(&facts.metadata)
    }

    pub(super) fn retention(self, retention: Option<Retention>) -> Self {
        let Some(Retention { mode, until }) = retention else { return self };
        self.shown("x-ms-immutability-policy-until-date", until)
            .fixed("x-ms-immutability-policy-mode", policy_mode(mode))
    }

    pub(super) fn legal_hold(self, legal_hold: Option<bool>) -> Self {
        match legal_hold {
            Some(on) => self.shown("x-ms-legal-hold", on),
            None => self,
        }
    }

    fn current_version(self, facts: &BlobFacts) -> Self {
        match facts.change.version.filter(|version| facts.is_current && !version.is_null) {
            Some(_) => self.fixed("x-ms-is-current-version", "true"),
            None => self,
        }
    }

    pub(super) fn copy(self, copy: Option<&CopyFacts>) -> Self {
        let Some(copy) = copy else { return self };
        let completed = copy.completed.map(|time| time.to_string());
        let snapshot = copy.incremental.and_then(|it| it.snapshot).map(|time| time.to_iso());
        self.shown("x-ms-copy-id", copy.id.hyphenated())
            .set("x-ms-copy-source", &copy.source)
            .fixed("x-ms-copy-status", copy.state.as_str())
            .shown("x-ms-copy-progress", format_args!("{}/{}", copy.copied, copy.total))
            .optional("x-ms-copy-completion-time", completed.as_deref())
            .optional("x-ms-incremental-copy", copy.incremental.map(|_| "true"))
            .optional("x-ms-copy-destination-snapshot", snapshot.as_deref())
            .optional(
                "x-ms-copy-status-description",
                copy.failure.as_ref().map(errors::copy_failure).as_deref(),
            )
    }

    pub(super) fn lease(self, lease: LeaseFacts) -> Self {
        let head = self
            .fixed("x-ms-lease-status", lease_status(lease.state))
            .fixed("x-ms-lease-state", lease_state(lease.state));
        head.optional("x-ms-lease-duration", lease_duration(lease))
    }

    pub(super) fn kind(self, kind: BlobKind) -> Self {
        let head = self.fixed("x-ms-blob-type", kind.as_str());
        match kind {
            BlobKind::Block => head,
            BlobKind::Append { blocks, sealed } => {
                let head = head.shown("x-ms-blob-committed-block-count", blocks);
                if sealed { head.fixed("x-ms-blob-sealed", "true") } else { head }
            }
            BlobKind::Page { sequence } => head.shown("x-ms-blob-sequence-number", sequence),
        }
    }

    /// The tier of a blob whose content is read. Versions before [`TIER_SINCE`] do not show it.
    pub(super) fn tier_of_read(self, facts: &BlobFacts, echo: &RequestEcho) -> Self {
        if echo.version < TIER_SINCE { self } else { self.tier(facts.tier.as_ref()) }
    }

    pub(super) fn tier(self, tier: Option<&TierFacts>) -> Self {
        let Some(tier) = tier else { return self };
        let head = self.fixed("x-ms-access-tier", tier.tier.as_str());
        let head = head.optional("x-ms-access-tier-inferred", tier.inferred.then_some("true"));
        let head =
            head.optional("x-ms-smart-access-tier", tier.tier.smart().map(AccessTier::as_str));
        let head = match tier.changed {
            None => head,
            Some(changed) => head.shown("x-ms-access-tier-change-time", changed),
        };
        head.optional("x-ms-archive-status", tier.archive_status().as_deref())
            .optional("x-ms-rehydrate-priority", tier.rehydrating.map(|r| r.priority.as_str()))
    }
}
