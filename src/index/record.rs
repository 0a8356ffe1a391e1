//! The records behind accounts, containers and blobs.

use serde::{Deserialize, Serialize};

use crate::types::AccountId;
use crate::types::BlobProperties;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::Timestamp;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Its number in every key.
    pub id: AccountId,
    /// When it was made.
    pub created: Timestamp,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// Its number in every key of its blobs.
    pub id: ContainerId,
    /// The order of its names.
    pub collation: Collation,
    /// When it was made.
    pub created: Timestamp,
    /// Last change of the container itself, not of its blobs.
    pub last_modified: Timestamp,
    /// Changes with `last_modified`.
    pub etag: Etag,
    /// User metadata.
    pub metadata: Metadata,
    /// Anonymous access.
    pub public_access: PublicAccess,
}

/// A committed blob, without its layout.
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
    /// CRC-64/NVME of the whole content.
    pub crc64: Crc64,
    /// System properties.
    pub properties: BlobProperties,
    /// User metadata.
    pub metadata: Metadata,
}
