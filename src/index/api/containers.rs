//! Changes and pages of containers.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::index::api::Guard;
use crate::index::record::ContainerRecord;
use crate::index::record::StoredPolicy;
use crate::types::AccountId;
use crate::types::CannedAcl;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::EncryptionScope;
use crate::types::Metadata;
use crate::types::ObjectLock;
use crate::types::PublicAccess;
use crate::types::RoutingKey;
use crate::types::Timestamp;
use crate::types::Versioning;

/// Creates a container under an id already issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateContainer {
    /// The account.
    pub account: AccountId,
    /// The name.
    pub name: ContainerName,
    /// A fresh id.
    pub id: ContainerId,
    /// The order of its names.
    pub collation: Collation,
    /// User metadata.
    #[serde(deserialize_with = "Metadata::deserialize_checked")]
    pub metadata: Metadata,
    /// Anonymous access.
    pub public_access: PublicAccess,
    /// The scope of blobs that name none.
    pub encryption_scope: Option<EncryptionScope>,
    /// Canonical id of the user that owns it; `None` for the account's root.
    pub owner: Option<String>,
    /// Its region, if the request names one.
    pub region: Option<String>,
    /// The access control list: who may list it without a role in the account.
    pub acl: CannedAcl,
    /// Whether it has object lock, and keeps versions.
    pub object_lock: bool,
}

/// A change of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerChange {
    /// Replaces its metadata.
    Metadata(#[serde(deserialize_with = "Metadata::deserialize_checked")] Metadata),
    /// Replaces its public access and access policies.
    Access {
        /// Anonymous access.
        public_access: PublicAccess,
        /// Stored access policies, at most 5.
        policies: Vec<StoredPolicy>,
    },
    /// Replaces its access control list, and takes anonymous access back.
    Acl(CannedAcl),
    /// Says whether versions are kept; leaves tag and time alone.
    Versioning(Versioning),
    /// Gives it object lock, or another default retention; leaves tag and time alone.
    ObjectLock {
        /// The object lock.
        lock: ObjectLock,
        /// Whether it keeps versions if it does not say so itself.
        is_versioned: bool,
    },
}

/// Changes a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// The precondition.
    pub guard: Guard,
    /// The change.
    pub change: ContainerChange,
}

/// Deletes a container: its name is free immediately, its rows are purged later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// The precondition.
    pub guard: Guard,
    /// Only while it is closed since this time.
    pub closed: Option<Timestamp>,
    /// For how long it can be restored; `None`: not at all.
    pub restorable_for: Option<Duration>,
}

/// Restores a container that was softly deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreContainer {
    /// The account.
    pub account: AccountId,
    /// The name that it gets.
    pub name: ContainerName,
    /// The name that it had.
    pub deleted: ContainerName,
    /// When it was deleted.
    pub since: Timestamp,
}

/// Closes a container: no write into it begins to commit until it is deleted or opened again (ADR
/// 0033). Answers its record, which has the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// The precondition of the deletion.
    pub guard: Guard,
}

/// Opens a closed container again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReopenContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// Only if it is closed since this time; otherwise nothing changes.
    pub closed: Timestamp,
}

/// List Containers: one page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListContainers {
    /// The account.
    pub account: AccountId,
    /// Only names that start so.
    pub prefix: String,
    /// Where to go on: `next` of the page before.
    pub from: Option<Bytes>,
    /// Entries at most, above 0.
    pub limit: usize,
    /// Also those that were softly deleted, before others of their name.
    pub deleted: bool,
}

impl ListContainers {
    /// The position the page starts at, by which it is routed.
    #[must_use]
    pub fn position(&self) -> Bytes {
        let table = ContainerId::new(0);
        let start = RoutingKey::prefix(self.account, table, &self.prefix, Collation::Utf8);
        self.from.clone().map_or(start.clone(), |from| from.max(start))
    }
}

/// A container in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerEntry {
    /// The name.
    pub name: ContainerName,
    /// The record.
    pub record: ContainerRecord,
}

/// A page of containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerPage {
    /// In name order.
    pub entries: Vec<ContainerEntry>,
    /// Where to go on after each of them.
    pub after: Vec<Bytes>,
    /// Their weight, which may end a page before its limit.
    pub weight: usize,
    /// Where to go on, possibly in the next partition; `None` at the end.
    pub next: Option<Bytes>,
    /// Rows examined for it, removed ones included.
    pub seen: usize,
}
