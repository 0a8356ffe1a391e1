//! Operations that read a blob, or change its properties, its versions or its existence.

use crate::protocol::model::operation::parts::BlobPath;
use crate::protocol::model::operation::parts::BlockListKind;
use crate::protocol::model::operation::parts::LockPart;
use crate::protocol::model::operation::parts::Precondition;
use crate::protocol::model::operation::parts::RangeChecksum;
use crate::protocol::model::operation::parts::SequenceChange;
use crate::protocol::model::operation::parts::WantedParts;
use crate::query;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::ByteRange;
use crate::types::CannedAcl;
use crate::types::DeleteScope;
use crate::types::LeaseAction;
use crate::types::Metadata;
use crate::types::PartNumber;
use crate::types::RehydratePriority;
use crate::types::Retention;
use crate::types::Tags;
use crate::types::Timestamp;

/// Operations that read a blob, or change its properties, its versions or its existence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobOperation {
    /// Set Blob Properties, with what only page blobs have.
    SetPageProperties {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// Replaces all, when any is given.
        properties: Option<BlobProperties>,
        /// The new length, bytes.
        len: Option<u64>,
        /// The new sequence number.
        sequence: Option<SequenceChange>,
    },
    /// Get Page Ranges, or what changed since a snapshot.
    GetPageRanges {
        /// The blob or snapshot.
        path: BlobPath,
        /// The older snapshot to compare with.
        since: Option<Timestamp>,
        /// Conditions and lease.
        precondition: Precondition,
        /// Only pages this touches.
        range: Option<ByteRange>,
        /// Where the page before ended: an offset.
        marker: Option<u64>,
        /// Ranges at most.
        max_results: u32,
    },
    /// Append Blob Seal.
    SealBlob {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// Where the blob must end before, bytes.
        position: Option<u64>,
    },
    /// Get Block List.
    GetBlockList {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
        /// Which lists.
        kind: BlockListKind,
    },
    /// Get Blob.
    GetBlob {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
        /// The wanted bytes.
        range: Option<ByteRange>,
        /// A checksum of them.
        checksum: Option<RangeChecksum>,
    },
    /// One of the parts in which a blob was uploaded, with or without its bytes.
    GetBlobPart {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// The number of the part.
        number: PartNumber,
        /// Whether only the head of the answer is wanted.
        is_head: bool,
    },
    /// Get Blob Properties (HEAD).
    GetBlobProperties {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
    },
    /// Set Blob Properties.
    SetBlobProperties {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// Replaces all.
        properties: BlobProperties,
    },
    /// Get Blob Metadata.
    GetBlobMetadata {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
    },
    /// Set Blob Metadata.
    SetBlobMetadata {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// Replaces all.
        metadata: Metadata,
    },
    /// Snapshot Blob.
    SnapshotBlob {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// Of the snapshot; `None` for that of the blob.
        metadata: Option<Metadata>,
    },
    /// Set Blob Tier.
    SetBlobTier {
        /// The blob or snapshot.
        path: BlobPath,
        /// Only the lease and tags count.
        precondition: Precondition,
        /// The tier.
        tier: AccessTier,
        /// How fast out of the archive.
        priority: RehydratePriority,
    },
    /// Query Blob Contents.
    QueryBlob {
        /// The blob, snapshot or version.
        path: BlobPath,
        /// Conditions, and the key of the blob.
        precondition: Precondition,
        /// The statement and the formats.
        query: Box<query::Request>,
    },
    /// Undelete Blob.
    UndeleteBlob {
        /// The blob.
        path: BlobPath,
    },
    /// Lease Blob.
    LeaseBlob {
        /// The blob.
        path: BlobPath,
        /// Conditions.
        precondition: Precondition,
        /// What to do.
        action: LeaseAction,
    },
    /// Get Blob Tags.
    GetBlobTags {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
    },
    /// Set Blob Tags.
    SetBlobTags {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
        /// Replaces all tags; in the body.
        tags: Tags,
    },
    /// Get Object ACL: who may use the blob without a role in the account.
    GetBlobGrants {
        /// The blob.
        path: BlobPath,
    },
    /// Put Object ACL: replaces who may use the blob without a role in the account.
    SetBlobGrants {
        /// The blob.
        path: BlobPath,
        /// The access control list.
        acl: CannedAcl,
    },
    /// The legal hold or retention of a version.
    GetBlobLock {
        /// The blob.
        path: BlobPath,
        /// Which part of it.
        part: LockPart,
    },
    /// Set Immutability Policy, Delete Immutability Policy.
    SetBlobRetention {
        /// The blob.
        path: BlobPath,
        /// A date, and whether a retention that is not locked may be shortened.
        precondition: Precondition,
        /// The retention; `None` ends it.
        retention: Option<Retention>,
    },
    /// Set Legal Hold.
    SetBlobLegalHold {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// Whether it is under a legal hold from now on.
        on: bool,
    },
    /// Delete Blob.
    DeleteBlob {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// What is deleted; of a snapshot, the path names it.
        scope: DeleteScope,
    },
    /// The attributes of a blob and of the parts in which it was uploaded.
    GetBlobAttributes {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// Which parts.
        parts: WantedParts,
    },
    /// Takes a blob out of the archive tier. A blob that left it before is left as it is.
    RestoreBlob {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// How fast; in the body.
        priority: RehydratePriority,
    },
}
