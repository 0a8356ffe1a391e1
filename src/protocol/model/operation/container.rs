//! Operations on a container and its list of blobs.

use crate::protocol::model::operation::DeleteBlobs;
use crate::protocol::model::operation::parts::AccessPolicy;
use crate::protocol::model::operation::parts::ContainerSettings;
use crate::protocol::model::operation::parts::ListBlobs;
use crate::protocol::model::operation::parts::Precondition;
use crate::protocol::model::operation::setting::SettingOperation;
use crate::types::CannedAcl;
use crate::types::ContainerName;
use crate::types::EncryptionScope;
use crate::types::LeaseAction;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::Timestamp;

/// Operations on a container and its list of blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerOperation {
    /// Create Container.
    CreateContainer {
        /// The container.
        container: ContainerName,
        /// User metadata.
        metadata: Metadata,
        /// Anonymous access.
        public_access: PublicAccess,
        /// The default encryption scope of its blobs.
        encryption_scope: Option<EncryptionScope>,
        /// Its other settings.
        settings: ContainerSettings,
    },
    /// Get Container Properties, Get Container Metadata (the reply is the same).
    GetContainer {
        /// The container.
        container: ContainerName,
        /// Only the lease counts.
        precondition: Precondition,
    },
    /// Get Container ACL.
    GetContainerAcl {
        /// The container.
        container: ContainerName,
        /// Only the lease counts.
        precondition: Precondition,
    },
    /// Set Container ACL.
    SetContainerAcl {
        /// The container.
        container: ContainerName,
        /// Dates and the lease.
        precondition: Precondition,
        /// Anonymous access.
        public_access: PublicAccess,
        /// Replaces all policies; in the body.
        policies: Vec<AccessPolicy>,
    },
    /// Get Bucket ACL: who may use the container without a role in the account.
    GetContainerGrants {
        /// The container.
        container: ContainerName,
    },
    /// Put Bucket ACL: replaces who may use the container without a role in the account.
    SetContainerGrants {
        /// The container.
        container: ContainerName,
        /// The access control list.
        acl: CannedAcl,
    },
    /// Set Container Metadata.
    SetContainerMetadata {
        /// The container.
        container: ContainerName,
        /// A date and the lease.
        precondition: Precondition,
        /// The new metadata.
        metadata: Metadata,
    },
    /// Delete Container.
    DeleteContainer {
        /// The container.
        container: ContainerName,
        /// Dates and the lease.
        precondition: Precondition,
    },
    /// Delete a container that must have no blobs, no versions and no snapshots.
    DeleteIfEmpty {
        /// The container.
        container: ContainerName,
        /// Dates and the lease.
        precondition: Precondition,
    },
    /// Restore Container.
    RestoreContainer {
        /// The name it is to have.
        container: ContainerName,
        /// The name it had.
        deleted: ContainerName,
        /// When it was deleted.
        since: Timestamp,
    },
    /// Lease Container.
    LeaseContainer {
        /// The container.
        container: ContainerName,
        /// Dates.
        precondition: Precondition,
        /// What to do.
        action: LeaseAction,
    },
    /// A setting of a container is read or changed.
    Setting(SettingOperation),
    /// List Blobs.
    ListBlobs(ListBlobs),
    /// Deletes several blobs, each by itself.
    DeleteBlobs(DeleteBlobs),
}
