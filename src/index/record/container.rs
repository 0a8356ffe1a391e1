//! A container.

use serde::{Deserialize, Serialize};

use crate::index::record::ContainerFields;
use crate::index::record::tagged;
use crate::types::CannedAcl;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::EncryptionScope;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::Metadata;
use crate::types::ObjectLock;
use crate::types::Protection;
use crate::types::PublicAccess;
use crate::types::SoftDelete;
use crate::types::Timestamp;
use crate::types::Versioning;

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// Its id in the keys of its blobs.
    pub id: ContainerId,
    /// The order of its blob names.
    pub collation: Collation,
    /// When it was created.
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
    /// The encryption scope of blobs that name none.
    pub encryption_scope: Option<EncryptionScope>,
    /// The tagged fields, if it has any.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<ContainerFields>>,
}

impl ContainerRecord {
    /// A container without metadata and without anonymous access.
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

    /// Its access control list.
    #[must_use]
    pub fn acl(&self) -> CannedAcl {
        let acl = self.fields.as_ref().and_then(|fields| fields.acl);
        acl.unwrap_or(CannedAcl::Private)
    }

    /// Replaces its access control list.
    pub fn set_acl(&mut self, acl: CannedAcl) {
        self.change_fields(|fields| fields.acl = acl.if_any());
    }

    /// Since when it is closed: no write into it begins to commit (ADR 0033).
    #[must_use]
    pub fn closed(&self) -> Option<Timestamp> {
        self.fields.as_ref().and_then(|fields| fields.closing)
    }

    /// Whether it keeps versions; `None` if it never did.
    #[must_use]
    pub fn versioning(&self) -> Option<Versioning> {
        self.fields.as_ref().and_then(|fields| fields.versioning)
    }

    /// When it was softly deleted, and until when it can be restored.
    #[must_use]
    pub fn deleted(&self) -> Option<SoftDelete> {
        self.fields.as_ref().and_then(|fields| fields.deleted)
    }

    /// How its blobs are protected, in an account whose containers are protected so.
    #[must_use]
    pub fn protection(&self, of_account: Protection) -> Protection {
        let lock = self.object_lock();
        let versioning = self.versioning().or(of_account.versioning);
        // Held versions depend on it, whatever becomes of the setting of the account.
        let versioning = if lock.is_some() { Some(Versioning::Enabled) } else { versioning };
        Protection { versioning, lock, ..of_account }
    }

    /// Canonical id of the user that owns it; `None` for the account's root.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.fields.as_ref().and_then(|fields| fields.owner.as_deref())
    }

    /// Its region; `None` for that of the server.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        self.fields.as_ref().and_then(|fields| fields.region.as_deref())
    }

    /// Its object lock: with one, its blobs may have a retention or a legal hold.
    #[must_use]
    pub fn object_lock(&self) -> Option<ObjectLock> {
        self.fields.as_ref().and_then(|fields| fields.object_lock)
    }

    /// Changes its tagged fields.
    pub(in crate::index) fn change_fields(&mut self, change: impl FnOnce(&mut ContainerFields)) {
        let mut fields = self.fields.take().unwrap_or_default();
        change(&mut fields);
        self.fields = (*fields != ContainerFields::default()).then_some(fields);
    }

    /// Bytes of its metadata, policies and tagged fields.
    #[must_use]
    pub fn weight(&self) -> usize {
        let metadata = self.metadata.iter().map(|(key, value)| key.len() + value.len());
        metadata.sum::<usize>()
            + self.policies.len() * size_of::<StoredPolicy>()
            + self.fields.as_ref().map_or(0, |fields| fields.weight())
    }
}

/// A stored access policy: the permissions of shared access signatures that name it. Source: Set
/// Container ACL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// At most 64 characters.
    pub id: String,
    /// When it begins to be valid.
    pub start: Option<Timestamp>,
    /// When it ceases to be valid.
    pub expiry: Option<Timestamp>,
    /// The permissions, as letters.
    pub permissions: Option<String>,
}
