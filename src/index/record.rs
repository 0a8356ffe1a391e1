//! The records behind accounts, containers and blobs.

use serde::{Deserialize, Serialize};

use crate::types::AccountId;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::Md5;
use crate::types::Metadata;
use crate::types::Timestamp;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Its number in every key.
    pub id: AccountId,
    /// When it was made.
    pub created: Timestamp,
}

/// Who may read a container without credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicAccess {
    /// Nobody.
    Private,
    /// Anyone may read blobs.
    Blob,
    /// Anyone may read blobs and list them.
    Container,
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

/// The settable system properties of a blob; `None` was never set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobProperties {
    /// `Content-Type`; readers see `application/octet-stream` when not set.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-MD5`, as computed by Put Blob or given by the client for a block list.
    pub content_md5: Option<Md5>,
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
