//! A blob without its layout.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::index::record::BlobFields;
use crate::index::record::tagged;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::Crc64;
use crate::types::Encryption;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Metadata;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;

/// Of the reads within so long a time only the first is remembered, as on the service.
const ACCESS_GRAIN: Duration = Duration::from_secs(24 * 3_600);

/// A committed blob or a snapshot of one, without its layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRecord {
    /// First commit under this name since it last did not exist.
    pub created: Timestamp,
    /// Last change of content, properties or metadata.
    pub last_modified: Timestamp,
    /// Changes with `last_modified`.
    pub etag: Etag,
    /// Content length, bytes.
    pub len: u64,
    /// CRC-64/NVME of the whole content; of no meaning for page blobs.
    pub crc64: Crc64,
    /// System properties.
    pub properties: BlobProperties,
    /// User metadata.
    pub metadata: Metadata,
    /// Block, append or page blob.
    pub kind: BlobKind,
    /// Index tags; their changes leave `etag` and `last_modified` alone.
    pub tags: Tags,
    /// A lease that was acquired.
    pub lease: Option<Lease>,
    /// The tier, if it was ever set.
    pub tier: Option<TierState>,
    /// The last copy into this blob.
    pub copy: Option<Box<CopyRecord>>,
    /// How its bytes are encrypted beyond the disk.
    pub encryption: Option<Encryption>,
    /// The first read of the last day in which it was read; when tracked.
    pub accessed: Option<Timestamp>,
    /// How many snapshots it has.
    pub snapshots: u32,
    /// What few blobs have.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<BlobFields>>,
}

impl BlobRecord {
    /// A fresh block blob, changed last when it was made: what the writers of content start from.
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

    /// Bytes of its texts, which are of any length.
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
            + copied
            + fields.as_ref().map_or(0, |fields| fields.weight())
    }

    /// A fresh block blob in the place of `before`: what survives when a blob is written anew. The
    /// lease is the guard's.
    #[must_use]
    pub fn after(before: Option<&Self>, now: Timestamp, len: u64, crc64: Crc64) -> Self {
        let created = before.map_or(now, |before| before.created);
        Self {
            snapshots: before.map_or(0, |before| before.snapshots),
            ..Self::new(created, now, len, crc64)
        }
    }

    /// Whether a read at `at` is to be remembered. Only block blobs are tracked, as on the service.
    #[must_use]
    pub fn notes_read(&self, at: Timestamp) -> bool {
        let first = self.accessed.is_none_or(|last| at.since(last) >= ACCESS_GRAIN);
        self.kind == BlobKind::Block && first
    }

    /// When it was last read or changed, as far as that is remembered; `None` of blobs that are not
    /// tracked.
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
    /// How it stands.
    pub status: CopyStatus,
    /// Why it failed.
    pub description: Option<String>,
    /// Bytes copied so far.
    pub copied: u64,
    /// Bytes in all.
    pub total: u64,
    /// When it ended.
    pub completed: Option<Timestamp>,
}

/// How a copy stands.
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
