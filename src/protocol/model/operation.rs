//! Every request, free of dialect.
//!
//! Some requests have a document in their body, such as a block list. Then the dialect's parser
//! returns [`Parsed::NeedsBody`], and what the document says is empty until it was decoded. So no
//! operation reads a document.

mod names;
mod parsed;
pub(super) mod parts;

use std::ops::Range;

use uuid::Uuid;

use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::copy::CopyBlob;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::copy::PutBlobFromUrl;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::BlockListEntry;
use crate::types::ByteRange;
use crate::types::ContainerName;
use crate::types::DeleteScope;
use crate::types::EncryptionScope;
use crate::types::LeaseAction;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::PublicAccess;
use crate::types::RehydratePriority;
use crate::types::ServicePropertiesChange;
use crate::types::Tags;
use crate::types::Timestamp;

pub use names::OPERATION_NAMES;
pub use parsed::{Decode, Document, DocumentBody, Parsed};
pub use parts::{
    AccessPolicy, Batch, BatchPart, BlobPath, BlockListKind, FindBlobs, Framing, Holder, KeyInfo,
    ListBlobs, ListContainers, PageWrite, Precondition, RangeChecksum, RequestEncryption,
    SequenceBounds, SequenceChange, Upload,
};

/// Everything a client can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Get Account Information.
    GetAccountInformation,
    /// Get Blob Service Properties.
    GetServiceProperties,
    /// Set Blob Service Properties.
    SetServiceProperties {
        /// What changes; in the body.
        change: Box<ServicePropertiesChange>,
    },
    /// Get User Delegation Key.
    GetUserDelegationKey {
        /// What is wanted of the key; in the body.
        wanted: KeyInfo,
        /// The version it is asked at.
        version: String,
        /// Who asks, once that is known; none when they came without a token.
        holder: Option<Holder>,
    },
    /// Get Blob Service Stats; on the secondary only.
    GetServiceStats,
    /// List Containers.
    ListContainers(ListContainers),
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
    /// Restore Container.
    RestoreContainer {
        /// The name it is to have.
        container: ContainerName,
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
    /// List Blobs.
    ListBlobs(ListBlobs),
    /// Put Blob.
    PutBlob {
        /// The blob.
        path: BlobPath,
        /// What must hold.
        precondition: Precondition,
        /// System properties; `content_md5` as the client claims it (verified against the
        /// body).
        properties: BlobProperties,
        /// User metadata.
        metadata: Metadata,
        /// Index tags.
        tags: Tags,
        /// What to make.
        kind: NewKind,
        /// The tier, when it is given.
        tier: Option<AccessTier>,
        /// The body; empty but for block blobs.
        upload: Upload,
    },
    /// Append Block.
    AppendBlock {
        /// The blob.
        path: BlobPath,
        /// What must hold.
        precondition: Precondition,
        /// Where the blob must end before, bytes.
        position: Option<u64>,
        /// The length that the blob must not exceed, bytes.
        len_max: Option<u64>,
        /// The body, not empty.
        upload: Upload,
    },
    /// Append Block From URL.
    AppendBlockFromUrl {
        /// The blob.
        path: BlobPath,
        /// What must hold.
        precondition: Precondition,
        /// Where the blob must end before, bytes.
        position: Option<u64>,
        /// The length that the blob must not exceed, bytes.
        len_max: Option<u64>,
        /// The bytes.
        source: Box<CopySource>,
    },
    /// Put Page.
    PutPage {
        /// The blob.
        path: BlobPath,
        /// What must hold.
        precondition: Precondition,
        /// What must hold of the sequence number.
        sequence: SequenceBounds,
        /// Update or clear.
        write: PageWrite,
        /// Whole pages, half-open, bytes.
        range: Range<u64>,
        /// The body: as long as the range, or empty.
        upload: Upload,
    },
    /// Put Page From URL.
    PutPageFromUrl {
        /// The blob.
        path: BlobPath,
        /// What must hold.
        precondition: Precondition,
        /// What must hold of the sequence number.
        sequence: SequenceBounds,
        /// Whole pages, half-open, bytes; as long as the source's range.
        range: Range<u64>,
        /// The bytes.
        source: Box<CopySource>,
    },
    /// Set Blob Properties, with what only page blobs have.
    SetPageProperties {
        /// The blob.
        path: BlobPath,
        /// What must hold.
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
        /// What must hold.
        precondition: Precondition,
        /// Where the blob must end before, bytes.
        position: Option<u64>,
    },
    /// Put Blob From URL.
    PutBlobFromUrl(Box<PutBlobFromUrl>),
    /// Copy Blob, Copy Blob From URL.
    CopyBlob(Box<CopyBlob>),
    /// Abort Copy Blob.
    AbortCopy {
        /// The destination.
        path: BlobPath,
        /// The copy.
        id: Uuid,
        /// Only the lease counts.
        precondition: Precondition,
    },
    /// Put Block From URL.
    PutBlockFromUrl {
        /// The blob.
        path: BlobPath,
        /// The block.
        id: BlockId,
        /// Only the lease counts.
        precondition: Precondition,
        /// The bytes.
        source: Box<CopySource>,
    },
    /// Put Block.
    PutBlock {
        /// The blob.
        path: BlobPath,
        /// The block.
        id: BlockId,
        /// Only the lease counts.
        precondition: Precondition,
        /// The body, not empty.
        upload: Upload,
    },
    /// Put Block List.
    PutBlockList {
        /// The blob.
        path: BlobPath,
        /// What must hold.
        precondition: Precondition,
        /// System properties; `content_md5` is stored unverified.
        properties: BlobProperties,
        /// User metadata.
        metadata: Metadata,
        /// Index tags.
        tags: Tags,
        /// The tier, when it is given.
        tier: Option<AccessTier>,
        /// The blocks; in the body.
        list: Vec<BlockListEntry>,
        /// Of the body, for the answer.
        checksum: BodyChecksum,
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
        /// What must hold.
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
        /// What must hold.
        precondition: Precondition,
        /// Replaces all.
        metadata: Metadata,
    },
    /// Snapshot Blob.
    SnapshotBlob {
        /// The blob.
        path: BlobPath,
        /// What must hold.
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
    /// Find Blobs by Tags.
    FindBlobs(FindBlobs),
    /// Blob Batch.
    Batch(Batch),
    /// Delete Blob.
    DeleteBlob {
        /// The blob.
        path: BlobPath,
        /// What must hold.
        precondition: Precondition,
        /// What of it; of a snapshot, the path names it.
        scope: DeleteScope,
    },
}
