//! Heads of responses, header by header.

use bytes::Bytes;
use http::HeaderName;
use http::HeaderValue;
use http::Response;
use http::StatusCode;

use crate::protocol::azure::encryption;
use crate::protocol::azure::render::RequestEcho;
use crate::protocol::azure::render::lease_duration;
use crate::protocol::azure::render::lease_state;
use crate::protocol::azure::render::lease_status;
use crate::protocol::azure::render::public_access_name;
use crate::protocol::copy::CopyFacts;
use crate::protocol::reply::BlobFacts;
use crate::protocol::reply::BodyChecksum;
use crate::protocol::reply::Change;
use crate::protocol::reply::ContainerFacts;
use crate::protocol::reply::LeaseFacts;
use crate::protocol::reply::TierFacts;
use crate::types::BlobKind;
use crate::types::Encryption;
use crate::types::Metadata;

/// A response head being written.
pub(super) struct Head(pub(super) Response<Bytes>);

impl Head {
    /// What every answer carries.
    pub(super) fn new(status: u16, echo: &RequestEcho) -> Self {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().reserve(24);
        let head = Self(response)
            .set("server", concat!("Blockyard/", env!("CARGO_PKG_VERSION")))
            .set("x-ms-request-id", &echo.request_id)
            .set("x-ms-version", &echo.version.to_string())
            .set("date", &echo.time.to_string());
        match &echo.client_request_id {
            Some(id) => head.insert("x-ms-client-request-id", id.clone()),
            None => head,
        }
    }

    /// Sets a header; a value that no header can hold is left out.
    pub(super) fn set(self, name: &str, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => self.insert(name, value),
            Err(_) => self,
        }
    }

    pub(super) fn insert(mut self, name: &str, value: HeaderValue) -> Self {
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            self.0.headers_mut().insert(name, value);
        }
        self
    }

    pub(super) fn optional(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    pub(super) fn change(self, change: &Change) -> Self {
        self.set("etag", &format!("\"{}\"", change.etag))
            .set("last-modified", &change.last_modified.to_string())
    }

    pub(super) fn checksum(self, checksum: &BodyChecksum) -> Self {
        match checksum {
            BodyChecksum::Md5(md5) => self.set("content-md5", &md5.to_base64()),
            BodyChecksum::Crc64(crc64) => self.set("x-ms-content-crc64", &crc64.to_base64()),
        }
    }

    pub(super) fn tag_count(self, tags: usize) -> Self {
        if tags == 0 { self } else { self.set("x-ms-tag-count", &tags.to_string()) }
    }

    pub(super) fn encrypted(self) -> Self {
        self.set("x-ms-request-server-encrypted", "true")
    }

    pub(super) fn encryption(self, encryption: Option<&Encryption>) -> Self {
        match encryption.map(Encryption::header) {
            Some((name, value)) => self.set(name, &value),
            None => self,
        }
    }

    pub(super) fn metadata(mut self, metadata: &Metadata) -> Self {
        for (name, value) in metadata.iter() {
            self = self.set(&format!("x-ms-meta-{name}"), value);
        }
        self
    }

    pub(super) fn container(self, facts: &ContainerFacts) -> Self {
        let access = public_access_name(facts.public_access);
        self.change(&facts.change)
            .lease(facts.lease)
            .set("x-ms-has-immutability-policy", "false")
            .set("x-ms-has-legal-hold", "false")
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
            .set("content-length", &content_length.to_string())
            .set("content-type", content_type)
            .optional("content-encoding", properties.content_encoding.as_deref())
            .optional("content-language", properties.content_language.as_deref())
            .optional("content-disposition", properties.content_disposition.as_deref())
            .optional("cache-control", properties.cache_control.as_deref())
            .set("accept-ranges", "bytes")
            .kind(facts.kind)
            .set("x-ms-creation-time", &facts.created.to_string())
            .lease(facts.lease)
            .set("x-ms-server-encrypted", "true")
            .tag_count(facts.tags.len())
            .encryption(facts.encryption.as_ref())
            .optional(
                "x-ms-last-access-time",
                facts.last_access.map(|time| time.to_string()).as_deref(),
            )
            .metadata(&facts.metadata)
            .copy(facts.copy.as_deref())
    }

    pub(super) fn copy(self, copy: Option<&CopyFacts>) -> Self {
        let Some(copy) = copy else { return self };
        let completed = copy.completed.map(|time| time.to_string());
        self.set("x-ms-copy-id", &copy.id.hyphenated().to_string())
            .set("x-ms-copy-source", &copy.source)
            .set("x-ms-copy-status", copy.state.as_str())
            .set("x-ms-copy-progress", &format!("{}/{}", copy.copied, copy.total))
            .optional("x-ms-copy-completion-time", completed.as_deref())
            .optional("x-ms-copy-status-description", copy.description.as_deref())
    }

    pub(super) fn lease(self, lease: LeaseFacts) -> Self {
        let head = self
            .set("x-ms-lease-status", lease_status(lease.state))
            .set("x-ms-lease-state", lease_state(lease.state));
        head.optional("x-ms-lease-duration", lease_duration(lease))
    }

    pub(super) fn kind(self, kind: BlobKind) -> Self {
        let head = self.set("x-ms-blob-type", kind.as_str());
        match kind {
            BlobKind::Block => head,
            BlobKind::Append { blocks, sealed } => {
                let count = blocks.to_string();
                let head = head.set("x-ms-blob-committed-block-count", &count);
                if sealed { head.set("x-ms-blob-sealed", "true") } else { head }
            }
            BlobKind::Page { sequence } => {
                head.set("x-ms-blob-sequence-number", &sequence.to_string())
            }
        }
    }

    pub(super) fn tier(self, tier: Option<&TierFacts>) -> Self {
        let Some(tier) = tier else { return self };
        let head = self.set("x-ms-access-tier", tier.tier.as_str());
        let head = match tier.changed {
            None => head.set("x-ms-access-tier-inferred", "true"),
            Some(changed) => head.set("x-ms-access-tier-change-time", &changed.to_string()),
        };
        head.optional("x-ms-archive-status", tier.archive_status().as_deref())
            .optional("x-ms-rehydrate-priority", tier.rehydrating.map(|r| r.priority.as_str()))
    }

    pub(super) fn xml(self, body: String) -> Response<Bytes> {
        let length = body.len().to_string();
        let mut response =
            self.set("content-type", "application/xml").set("content-length", &length).0;
        *response.body_mut() = body.into();
        response
    }

    pub(super) fn empty(self) -> Response<Bytes> {
        self.set("content-length", "0").0
    }

    /// The body is none, or the caller's.
    pub(super) fn bodiless(self) -> Response<Bytes> {
        self.0
    }
}
