//! The layouts of version 1. They stay readable.

use serde::Deserialize;

use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::types::AccountId;
use crate::types::BlobProperties;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::Timestamp;

#[derive(Debug, Deserialize)]
pub(super) struct Account1 {
    id: AccountId,
    created: Timestamp,
}

impl From<Account1> for AccountRecord {
    fn from(old: Account1) -> Self {
        Self::new(old.id, old.created, true)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Container1 {
    id: ContainerId,
    collation: Collation,
    created: Timestamp,
    last_modified: Timestamp,
    etag: Etag,
    metadata: Metadata,
    public_access: PublicAccess,
}

impl From<Container1> for ContainerRecord {
    fn from(old: Container1) -> Self {
        Self {
            last_modified: old.last_modified,
            etag: old.etag,
            metadata: old.metadata,
            public_access: old.public_access,
            ..Self::new(old.id, old.collation, old.created)
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Blob1 {
    created: Timestamp,
    last_modified: Timestamp,
    etag: Etag,
    len: u64,
    crc64: Crc64,
    properties: BlobProperties,
    metadata: Metadata,
}

impl From<Blob1> for BlobRecord {
    fn from(old: Blob1) -> Self {
        Self {
            last_modified: old.last_modified,
            etag: old.etag,
            properties: old.properties,
            metadata: old.metadata,
            ..Self::new(old.created, old.last_modified, old.len, old.crc64)
        }
    }
}
