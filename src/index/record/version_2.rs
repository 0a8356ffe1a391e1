//! The layouts of version 2. They stay readable. Version 3 of containers and blobs begins with
//! them.

use bytes::Bytes;
use serde::Deserialize;

use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::CopyRecord;
use crate::index::record::StoredPolicy;
use crate::types::AccountId;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Encryption;
use crate::types::EncryptionScope;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::Secret;
use crate::types::ServiceProperties;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;

/// Its secrets were plain, and it had no role assignments.
#[derive(Debug, Deserialize)]
pub(super) struct Account2 {
    id: AccountId,
    created: Timestamp,
    keys: Vec<Bytes>,
    anonymous: bool,
    delegation_secret: Bytes,
    properties: ServiceProperties,
}

impl From<Account2> for AccountRecord {
    fn from(old: Account2) -> Self {
        Self {
            keys: old.keys.into_iter().map(Secret::Plain).collect(),
            delegation_secret: Secret::plain(old.delegation_secret),
            properties: old.properties,
            ..Self::new(old.id, old.created, old.anonymous)
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Container2 {
    id: ContainerId,
    collation: Collation,
    created: Timestamp,
    last_modified: Timestamp,
    etag: Etag,
    metadata: Metadata,
    public_access: PublicAccess,
    policies: Vec<StoredPolicy>,
    lease: Option<Lease>,
    encryption_scope: Option<EncryptionScope>,
}

impl From<Container2> for ContainerRecord {
    fn from(old: Container2) -> Self {
        Self {
            id: old.id,
            collation: old.collation,
            created: old.created,
            last_modified: old.last_modified,
            etag: old.etag,
            metadata: old.metadata,
            public_access: old.public_access,
            policies: old.policies,
            lease: old.lease,
            encryption_scope: old.encryption_scope,
            fields: None,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Blob2 {
    created: Timestamp,
    last_modified: Timestamp,
    etag: Etag,
    len: u64,
    crc64: Crc64,
    properties: BlobProperties,
    metadata: Metadata,
    kind: BlobKind,
    tags: Tags,
    lease: Option<Lease>,
    tier: Option<TierState>,
    copy: Option<Box<CopyRecord>>,
    encryption: Option<Encryption>,
    accessed: Option<Timestamp>,
    snapshots: u32,
}

impl From<Blob2> for BlobRecord {
    fn from(old: Blob2) -> Self {
        Self {
            created: old.created,
            last_modified: old.last_modified,
            etag: old.etag,
            len: old.len,
            crc64: old.crc64,
            properties: old.properties,
            metadata: old.metadata,
            kind: old.kind,
            tags: old.tags,
            lease: old.lease,
            tier: old.tier,
            copy: old.copy,
            encryption: old.encryption,
            accessed: old.accessed,
            snapshots: old.snapshots,
            fields: None,
        }
    }
}
