//! A container.

use serde::{Deserialize, Serialize};

use crate::index::record::ContainerFields;
use crate::index::record::tagged;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::EncryptionScope;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::Timestamp;

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
    /// Stored access policies, at most 5, in the order given.
    pub policies: Vec<StoredPolicy>,
    /// A lease that was acquired.
    pub lease: Option<Lease>,
    /// Under which scope blobs are encrypted that name none.
    pub encryption_scope: Option<EncryptionScope>,
    /// What few containers have.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<ContainerFields>>,
}

impl ContainerRecord {
    /// A container without metadata that is open to nobody.
    #[must_use]
    pub fn new(id: ContainerId, collation: Collation, now: Timestamp) -> Self {
        Self {
            id,
            collation,
            created: now,
            last_modified: now,
            etag: Etag::from_commit(now),
            metadata: Metadata::default(),
            public_access: PublicAccess::Private,
            policies: Vec::new(),
            lease: None,
            encryption_scope: None,
            fields: None,
        }
    }

    /// Bytes of its metadata and policies, of which it may have more or less.
    #[must_use]
    pub fn weight(&self) -> usize {
        let metadata = self.metadata.iter().map(|(key, value)| key.len() + value.len());
        metadata.sum::<usize>()
            + self.policies.len() * size_of::<StoredPolicy>()
            + self.fields.as_ref().map_or(0, |fields| fields.weight())
    }
}

/// A stored access policy: what shared access signatures that name it may do. Source: Set Container
/// ACL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// At most 64 characters.
    pub id: String,
    /// From when.
    pub start: Option<Timestamp>,
    /// Until when.
    pub expiry: Option<Timestamp>,
    /// Letters.
    pub permissions: Option<String>,
}
