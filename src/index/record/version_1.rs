//! Records as version 1 wrote them, read for ever.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::version_2::Account2;
use crate::index::record::version_3::Account3;
use crate::types::AccountId;
use crate::types::BlobProperties;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::ServiceProperties;
use crate::types::Timestamp;

/// A record that had an earlier shape.
pub(in crate::index) trait Upgrade: Serialize + DeserializeOwned {
    /// The version rows of this kind are written in, their first byte.
    const VERSION: u8;

    /// Reads a record of an earlier version; answers what stands behind it too. `None`: there is no
    /// such version.
    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>>;
}

/// Reads a record in the shape `Old`.
pub(super) fn upgraded<Old: DeserializeOwned + Into<New>, New>(
    bytes: &[u8],
) -> postcard::Result<(New, &[u8])> {
    postcard::take_from_bytes::<Old>(bytes).map(|(old, rest)| (old.into(), rest))
}

#[derive(Debug, Deserialize)]
pub(in crate::index) struct Account1 {
    id: AccountId,
    created: Timestamp,
}

impl Upgrade for AccountRecord {
    const VERSION: u8 = 4;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        match version {
            1 => Some(upgraded::<Account1, Self>(bytes)),
            2 => Some(upgraded::<Account2, Self>(bytes)),
            3 => Some(upgraded::<Account3, Self>(bytes)),
            _ => None,
        }
    }
}

impl From<Account1> for AccountRecord {
    fn from(old: Account1) -> Self {
        Self {
            id: old.id,
            created: old.created,
            keys: Vec::new(),
            anonymous: true,
            delegation_secret: None,
            properties: ServiceProperties::default(),
            assignments: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::index) struct Container1 {
    id: ContainerId,
    collation: Collation,
    created: Timestamp,
    last_modified: Timestamp,
    etag: Etag,
    metadata: Metadata,
    public_access: PublicAccess,
}

impl Upgrade for ContainerRecord {
    const VERSION: u8 = 2;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        (version == 1).then(|| upgraded::<Container1, Self>(bytes))
    }
}

impl From<Container1> for ContainerRecord {
    fn from(old: Container1) -> Self {
        Self {
            id: old.id,
            collation: old.collation,
            created: old.created,
            last_modified: old.last_modified,
            etag: old.etag,
            metadata: old.metadata,
            public_access: old.public_access,
            policies: Vec::new(),
            lease: None,
            encryption_scope: None,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::index) struct Blob1 {
    created: Timestamp,
    last_modified: Timestamp,
    etag: Etag,
    len: u64,
    crc64: Crc64,
    properties: BlobProperties,
    metadata: Metadata,
}

impl Upgrade for BlobRecord {
    const VERSION: u8 = 2;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        (version == 1).then(|| upgraded::<Blob1, Self>(bytes))
    }
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
