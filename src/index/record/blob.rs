//! The record of a blob: its row without the layout.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::index::record::BlobFields;
use crate::index::record::IncrementalCopy;
use crate::index::record::IncrementalSource;
use crate::index::record::tagged;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::CannedAcl;
use crate::types::ContentEtag;
use crate::types::ContentTag;
use crate::types::Crc64;
use crate::types::Encryption;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Metadata;
use crate::types::Retention;
use crate::types::SoftDelete;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;
use crate::types::VersionId;

/// Of the reads within this time only the first is noted, as on the service.
const ACCESS_GRAIN: Duration = Duration::from_secs(24 * 3_600);

/// A committed blob or a snapshot, without its layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRecord {
    /// The first commit of the blob since its name last did not exist.
    pub created: Timestamp,
    /// Last change of content, properties or metadata.
    pub last_modified: Timestamp,
    /// Changes with `last_modified`.
    pub etag: Etag,
    /// Content length, bytes.
    pub len: u64,
    /// CRC-64/NVME of the whole content; without meaning for page blobs.
    pub crc64: Crc64,
    /// System properties.
    pub properties: BlobProperties,
    /// User metadata.
    pub metadata: Metadata,
    /// Block, append or page blob.
    pub kind: BlobKind,
    /// Index tags. Their changes do not change `etag` and `last_modified`.
    pub tags: Tags,
    /// The lease, if one was acquired.
    pub lease: Option<Lease>,
    /// The tier, if it was ever set.
    pub tier: Option<TierState>,
    /// The last copy into this blob.
    pub copy: Option<Box<CopyRecord>>,
    /// Its encryption beyond that of the disk.
    pub encryption: Option<Encryption>,
    /// The first read of the last day on which it was read, if reads are tracked.
    pub accessed: Option<Timestamp>,
    /// The number of its snapshots.
    pub snapshots: u32,
    /// The tagged fields, if it has any.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<BlobFields>>,
}

impl BlobRecord {
    /// A new block blob without properties, last modified at `now`. Writers of content start with
    /// it.
    #[must_use]
    pub fn new(created: Timestamp, now: Timestamp, len: u64, crc64: Crc64) -> Self {
        Self {
            created,
            last_modified: now,
            etag: Etag::from_commit(now),
            len,
            crc64,
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: BlobKind::Block,
            tags: Tags::default(),
            lease: None,
            tier: None,
            copy: None,
            encryption: None,
            accessed: None,
            snapshots: 0,
            fields: None,
        }
    }

    /// Bytes of its texts, which have any length.
    #[must_use]
    pub fn weight(&self) -> usize {
        let Self { properties, metadata, tags, copy, fields, .. } = self;
        let metadata = metadata.iter().map(|(key, value)| key.len() + value.len());
        let tags = tags.iter().map(|(key, value)| key.len() + value.len());
        let texts = [
            &properties.content_type,
            &properties.content_encoding,
            &properties.content_language,
            &properties.content_disposition,
            &properties.cache_control,
        ];
        let copied = copy
            .as_ref()
            .map_or(0, |copy| copy.source.len() + copy.description.as_ref().map_or(0, String::len));
        metadata.chain(tags).sum::<usize>()
            + texts.into_iter().flatten().map(String::len).sum::<usize>()
            + properties.content_md5.extra_len()
            + copied
            + fields.as_ref().map_or(0, |fields| fields.weight())
    }

    /// A new block blob in the place of `before`: only the creation time and the number of
    /// snapshots survive an overwrite. The caller sets the lease.
    #[must_use]
    pub fn after(before: Option<&Self>, now: Timestamp, len: u64, crc64: Crc64) -> Self {
        let created = before.map_or(now, |before| before.created);
        Self {
            snapshots: before.map_or(0, |before| before.snapshots),
            ..Self::new(created, now, len, crc64)
        }
    }

    /// Replaces its access control list.
    pub fn set_acl(&mut self, acl: CannedAcl) {
        self.change_fields(|fields| fields.acl = acl.if_any());
    }

    /// Its version; `None` if versions were not kept when it was written.
    #[must_use]
    pub fn version(&self) -> Option<VersionId> {
        self.fields.as_ref()?.version
    }

    /// The source of an incremental copy; `None` for other blobs, and for snapshots of such copies.
    #[must_use]
    pub fn incremental_source(&self) -> Option<&IncrementalSource> {
        self.fields.as_ref()?.incremental_source.as_ref()
    }

    /// The incremental copy that made it, or the blob whose snapshot it is.
    #[must_use]
    pub fn incremental_copy(&self) -> Option<IncrementalCopy> {
        self.fields.as_ref()?.incremental_copy
    }

    /// Whether it is a delete marker.
    #[must_use]
    pub fn is_delete_marker(&self) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields.delete_marker)
    }

    /// Says which version it is.
    pub fn set_version(&mut self, version: Option<VersionId>) {
        if self.version() != version {
            self.change_fields(|fields| fields.version = version);
        }
    }

    /// When it was softly deleted, and until when it can be restored.
    #[must_use]
    pub fn deleted(&self) -> Option<SoftDelete> {
        self.fields.as_ref()?.deleted
    }

    /// Says whether it was softly deleted.
    pub fn set_deleted(&mut self, deleted: Option<SoftDelete>) {
        if self.deleted() != deleted {
            self.change_fields(|fields| fields.deleted = deleted);
        }
    }

    /// Makes a delete marker of it.
    pub fn set_delete_marker(&mut self) {
        self.change_fields(|fields| fields.delete_marker = true);
    }

    /// Until when it can neither be removed nor changed.
    #[must_use]
    pub fn retention(&self) -> Option<Retention> {
        self.fields.as_ref()?.retention
    }

    /// Replaces its retention.
    pub fn set_retention(&mut self, retention: Option<Retention>) {
        if self.retention() != retention {
            self.change_fields(|fields| fields.retention = retention);
        }
    }

    /// Whether a legal hold protects it; `None` if none ever did.
    #[must_use]
    pub fn legal_hold(&self) -> Option<bool> {
        self.fields.as_ref()?.legal_hold
    }

    /// Says whether a legal hold protects it.
    pub fn set_legal_hold(&mut self, legal_hold: Option<bool>) {
        if self.legal_hold() != legal_hold {
            self.change_fields(|fields| fields.legal_hold = legal_hold);
        }
    }

    /// Changes its tagged fields.
    pub(in crate::index) fn change_fields(&mut self, change: impl FnOnce(&mut BlobFields)) {
        let mut fields = self.fields.take().unwrap_or_default();
        change(&mut fields);
        self.fields = Some(fields).filter(|fields| **fields != BlobFields::default());
    }

    /// S3's tag of its content: the one in the row, else one that is derived from the row. Where
    /// the row has no checksum of the content, a derived tag also changes with properties and
    /// metadata.
    #[must_use]
    pub fn content_etag(&self) -> ContentEtag {
        let stored = self.content_tag().and_then(|tag| tag.etag(None));
        stored.unwrap_or_else(|| {
            let number = match self.kind {
                BlobKind::Append { blocks, .. } => blocks,
                BlobKind::Block | BlobKind::Page { .. } => 1,
            };
            match self.content_crc64() {
                Some(crc64) => ContentEtag::of_checksum(crc64, self.len, number),
                None => ContentEtag::of_commit(self.etag, self.len, number),
            }
        })
    }

    /// The content tag in the row, without reference to the Content-MD5 of the row.
    #[must_use]
    pub fn content_tag(&self) -> Option<ContentTag> {
        match self.fields.as_ref()?.content_tag? {
            ContentTag::PropertyMd5 => self.properties.content_md5.plain().map(ContentTag::Md5),
            tag @ (ContentTag::Md5(_) | ContentTag::Parts(..) | ContentTag::Opaque(..)) => {
                Some(tag)
            }
        }
    }

    /// The CRC-64 of its content. Page blobs and content under a key have none.
    #[must_use]
    pub fn content_crc64(&self) -> Option<Crc64> {
        match self.kind {
            BlobKind::Page { .. } => None,
            BlobKind::Block | BlobKind::Append { .. } if self.is_under_key() => None,
            BlobKind::Block | BlobKind::Append { .. } => Some(self.crc64),
        }
    }

    /// The encryption of its content.
    #[must_use]
    pub fn under(&self) -> Option<Encryption> {
        let under = self.encryption.as_ref()?;
        let scope_key = self.fields.as_ref().and_then(|fields| fields.scope_key);
        Some(match (under, scope_key) {
            (Encryption::Scope(name), Some(key_sha256)) => {
                Encryption::KeyedScope { name: name.clone(), key_sha256 }
            }
            (under, _) => under.clone(),
        })
    }

    /// Sets what its content is under. The record has the key of a scope among its tagged fields.
    pub(in crate::index) fn put_under(&mut self, under: Option<Encryption>) {
        let scope_key = match &under {
            Some(Encryption::KeyedScope { key_sha256, .. }) => Some(*key_sha256),
            Some(Encryption::Customer(_) | Encryption::Scope(_)) | None => None,
        };
        self.encryption = match under {
            Some(Encryption::KeyedScope { name, .. }) => Some(Encryption::Scope(name)),
            Some(Encryption::Customer(_) | Encryption::Scope(_)) | None => under,
        };
        if scope_key.is_some() || self.is_under_scope_key() {
            self.change_fields(|fields| fields.scope_key = scope_key);
        }
    }

    /// Whether it is as rows are: the key of a scope is among the tagged fields
    /// ([`Self::put_under`]).
    pub(in crate::index) const fn has_a_row(&self) -> bool {
        match &self.encryption {
            Some(Encryption::KeyedScope { .. }) => false,
            Some(Encryption::Customer(_) | Encryption::Scope(_)) | None => true,
        }
    }

    fn is_under_scope_key(&self) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields.scope_key.is_some())
    }

    /// Whether its content is under a key: the customer's, or that of a scope.
    #[must_use]
    pub fn is_under_key(&self) -> bool {
        self.is_under_scope_key()
            || self.encryption.as_ref().is_some_and(Encryption::is_by_customer)
    }

    /// Replaces the system properties. S3's tag of the content stays as it is, also where it was
    /// the Content-MD5 that is replaced.
    pub fn replace_properties(&mut self, properties: BlobProperties) {
        let before = std::mem::replace(&mut self.properties, properties).content_md5;
        if let Some(fields) = &mut self.fields
            && fields.content_tag == Some(ContentTag::PropertyMd5)
            && before != self.properties.content_md5
        {
            fields.content_tag = before.plain().map(ContentTag::Md5);
        }
    }

    /// Whether a read at `at` must be noted. Only reads of block blobs are tracked, as on the
    /// service.
    #[must_use]
    pub fn notes_read(&self, at: Timestamp) -> bool {
        let first = self.accessed.is_none_or(|last| at.since(last) >= ACCESS_GRAIN);
        self.kind == BlobKind::Block && first
    }

    /// When it was last read or changed, as far as that was noted; `None` for blobs whose reads are
    /// not tracked.
    #[must_use]
    pub fn last_access(&self) -> Option<Timestamp> {
        let read = self.accessed.unwrap_or(self.last_modified);
        (self.kind == BlobKind::Block).then_some(read.max(self.last_modified))
    }
}

/// A copy into a blob. Source: Copy Blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRecord {
    /// `x-ms-copy-id`.
    pub id: Uuid,
    /// The source as shown, without its signature.
    pub source: String,
    /// Its status.
    pub status: CopyStatus,
    /// Why it failed, if it did.
    pub description: Option<String>,
    /// The bytes copied so far.
    pub copied: u64,
    /// The bytes of the source.
    pub total: u64,
    /// When it ended.
    pub completed: Option<Timestamp>,
}

/// The status of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyStatus {
    /// Running.
    Pending,
    /// Done.
    Success,
    /// Aborted by the client.
    Aborted,
    /// Given up.
    Failed,
}
