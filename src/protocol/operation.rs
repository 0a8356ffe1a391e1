//! Every request, free of dialect.

use std::ops::Range;

use uuid::Uuid;

use crate::protocol::copy::CopyBlob;
use crate::protocol::copy::CopySource;
use crate::protocol::copy::PutBlobFromUrl;
use crate::types::AccessTier;
use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::ByteRange;
use crate::types::Conditions;
use crate::types::ContainerName;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::DeleteScope;
use crate::types::EncryptionScope;
use crate::types::LeaseAction;
use crate::types::Md5;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::PublicAccess;
use crate::types::RehydratePriority;
use crate::types::TagCondition;
use crate::types::TagQuery;
use crate::types::Tags;
use crate::types::Timestamp;

/// What must hold before the operation is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// `If-*`.
    pub conditions: Conditions,
    /// `x-ms-lease-id`.
    pub lease: Option<Uuid>,
    /// `x-ms-if-tags`.
    pub if_tags: Option<TagCondition>,
    /// The encryption headers.
    pub encryption: RequestEncryption,
}

/// What a request says of the encryption of the content it writes, or of the blob it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestEncryption {
    /// The operation needs no key: it neither reads nor writes content or metadata.
    #[default]
    Unchecked,
    /// No key and no scope.
    Plain,
    /// `x-ms-encryption-key`.
    Key(CustomerKey),
    /// `x-ms-encryption-scope`.
    Scope(String),
}

impl RequestEncryption {
    /// The key that came with the request.
    #[must_use]
    pub const fn key(&self) -> Option<&CustomerKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Unchecked | Self::Plain | Self::Scope(_) => None,
        }
    }
}

/// A blob by its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPath {
    /// The container.
    pub container: ContainerName,
    /// The blob.
    pub blob: BlobName,
    /// A snapshot of it.
    pub snapshot: Option<Timestamp>,
}

/// A body to be streamed, and what the client says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Bytes of content: `Content-Length`, or what a structured message holds. Checked against the operation's limit.
    pub len: u64,
    /// Bytes of the structured message that holds the content; `None` when the body is the content.
    pub message_len: Option<u64>,
    /// `Content-MD5` of the body: a mismatch is `Md5Mismatch`.
    pub md5: Option<Md5>,
    /// `x-ms-content-crc64` of the body: a mismatch is `Crc64Mismatch`.
    pub crc64: Option<Crc64>,
}

/// A stored access policy of a container, as clients see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// What signatures name it by; 1 to 64 characters.
    pub id: String,
    /// From when on.
    pub start: Option<Timestamp>,
    /// Until when.
    pub expiry: Option<Timestamp>,
    /// Letters of permissions.
    pub permissions: Option<String>,
}

/// Whoever a user delegation key is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The object id.
    pub object: String,
    /// The tenant.
    pub tenant: String,
    /// The role, by its name.
    pub role: String,
}

/// Which checksum of the returned range a Get Blob asks for; ranges up to 4 MiB only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeChecksum {
    /// `x-ms-range-get-content-md5`.
    Md5,
    /// `x-ms-range-get-content-crc64`.
    Crc64,
}

/// Which lists Get Block List returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockListKind {
    /// The committed list (the default).
    Committed,
    /// Staged blocks.
    Uncommitted,
    /// Both.
    All,
}

/// List Containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListContainers {
    /// Only names that start so.
    pub prefix: Option<String>,
    /// `NextMarker` of the page before, as sent.
    pub marker: Option<String>,
    /// As sent, cut to 5,000; `None` means 5,000.
    pub max_results: Option<u32>,
    /// `include=metadata`.
    pub metadata: bool,
}

/// List Blobs, flat or by hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListBlobs {
    /// The container.
    pub container: ContainerName,
    /// Only names that start so.
    pub prefix: Option<String>,
    /// Folds names.
    pub delimiter: Option<String>,
    /// `NextMarker` of the page before, as sent.
    pub marker: Option<String>,
    /// Only names at or after this one.
    pub start_from: Option<String>,
    /// As sent, cut to 5,000; `None` means 5,000.
    pub max_results: Option<u32>,
    /// `include=metadata`.
    pub metadata: bool,
    /// `include=uncommittedblobs`.
    pub uncommitted: bool,
    /// `include=snapshots`.
    pub snapshots: bool,
    /// `include=tags`.
    pub tags: bool,
    /// `include=copy`.
    pub copy: bool,
}

/// Find Blobs by Tags, in one container or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindBlobs {
    /// The container in the URL.
    pub container: Option<ContainerName>,
    /// `where` as sent.
    pub text: String,
    /// What it says.
    pub query: TagQuery,
    /// `NextMarker` of the page before, as sent.
    pub marker: Option<String>,
    /// As sent, cut to 5,000; `None` means 5,000.
    pub max_results: Option<u32>,
}

/// Blob Batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The account in the URL.
    pub account: AccountName,
    /// The container in the URL: then all parts are about its blobs.
    pub container: Option<ContainerName>,
    /// Whether the URL has the account in its path.
    pub path_style: bool,
    /// Between the parts.
    pub boundary: String,
    /// The body.
    pub upload: Upload,
}

/// `x-ms-page-write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageWrite {
    /// Writes the body.
    Update,
    /// Makes the pages zeros again.
    Clear,
}

/// `x-ms-if-sequence-number-*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceBounds {
    /// `-le`.
    pub at_most: Option<u64>,
    /// `-lt`.
    pub below: Option<u64>,
    /// `-eq`.
    pub equal: Option<u64>,
}

/// `x-ms-sequence-number-action`, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceChange {
    /// The higher of the two.
    Max(u64),
    /// This one.
    Update(u64),
    /// One more.
    Increment,
}

/// Everything a client can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Get Account Information.
    GetAccountInformation,
    /// Get Blob Service Properties.
    GetServiceProperties,
    /// Set Blob Service Properties. The body is XML, read by `azure::service_properties` once it is there.
    SetServiceProperties {
        /// The body.
        upload: Upload,
    },
    /// Get User Delegation Key. The body is XML, read by `azure::key_info` once it is there.
    GetUserDelegationKey {
        /// The body.
        upload: Upload,
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
        /// `x-ms-default-encryption-scope` and `x-ms-deny-encryption-scope-override`.
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
    /// Set Container ACL. The body is XML, read by `azure::access_policies` once it is there.
    SetContainerAcl {
        /// The container.
        container: ContainerName,
        /// Dates and the lease.
        precondition: Precondition,
        /// Anonymous access.
        public_access: PublicAccess,
        /// The body.
        upload: Upload,
    },
    /// Set Container Metadata.
    SetContainerMetadata {
        /// The container.
        container: ContainerName,
        /// `If-Modified-Since` and the lease.
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
        /// System properties; `content_md5` as given in `x-ms-blob-content-md5` (verified against the body).
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
        /// `x-ms-blob-condition-appendpos`, bytes.
        position: Option<u64>,
        /// `x-ms-blob-condition-maxsize`, bytes.
        len_max: Option<u64>,
        /// The body, not empty.
        upload: Upload,
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
    /// Get Page Ranges.
    GetPageRanges {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
        /// Only pages this touches.
        range: Option<ByteRange>,
        /// `NextMarker` of the answer before: an offset.
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
        /// `x-ms-blob-condition-appendpos`, bytes.
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
        /// `copyid`.
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
    /// Put Block List. The body is XML, read by `azure::xml::block_list` once it is there.
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
        /// The body: its checksums are of the XML.
        upload: Upload,
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
    /// Set Blob Tags. The body is XML, read by `azure::blob_tags` once it is there.
    SetBlobTags {
        /// The blob.
        path: BlobPath,
        /// Conditions and lease.
        precondition: Precondition,
        /// The body.
        upload: Upload,
    },
    /// Find Blobs by Tags.
    FindBlobs(FindBlobs),
    /// Blob Batch. The body is multipart, read by `azure::read_batch` once it is there.
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

impl Operation {
    /// The operation's name as metrics and logs show it: the REST name without spaces.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::GetAccountInformation => "GetAccountInformation",
            Self::GetServiceProperties => "GetServiceProperties",
            Self::SetServiceProperties { .. } => "SetServiceProperties",
            Self::GetUserDelegationKey { .. } => "GetUserDelegationKey",
            Self::GetServiceStats => "GetServiceStats",
            Self::ListContainers(_) => "ListContainers",
            Self::CreateContainer { .. } => "CreateContainer",
            Self::GetContainer { .. } => "GetContainerProperties",
            Self::GetContainerAcl { .. } => "GetContainerAcl",
            Self::SetContainerAcl { .. } => "SetContainerAcl",
            Self::SetContainerMetadata { .. } => "SetContainerMetadata",
            Self::DeleteContainer { .. } => "DeleteContainer",
            Self::RestoreContainer { .. } => "RestoreContainer",
            Self::LeaseContainer { .. } => "LeaseContainer",
            Self::ListBlobs(_) => "ListBlobs",
            Self::PutBlob { .. } => "PutBlob",
            Self::AppendBlock { .. } => "AppendBlock",
            Self::PutPage { .. } => "PutPage",
            Self::SetPageProperties { .. } => "SetBlobProperties",
            Self::GetPageRanges { .. } => "GetPageRanges",
            Self::SealBlob { .. } => "SealBlob",
            Self::PutBlobFromUrl(_) => "PutBlobFromUrl",
            Self::CopyBlob(copy) if copy.sync => "CopyBlobFromUrl",
            Self::CopyBlob(_) => "CopyBlob",
            Self::AbortCopy { .. } => "AbortCopy",
            Self::PutBlockFromUrl { .. } => "PutBlockFromUrl",
            Self::PutBlock { .. } => "PutBlock",
            Self::PutBlockList { .. } => "PutBlockList",
            Self::GetBlockList { .. } => "GetBlockList",
            Self::GetBlob { .. } => "GetBlob",
            Self::GetBlobProperties { .. } => "GetBlobProperties",
            Self::SetBlobProperties { .. } => "SetBlobProperties",
            Self::GetBlobMetadata { .. } => "GetBlobMetadata",
            Self::SetBlobMetadata { .. } => "SetBlobMetadata",
            Self::SnapshotBlob { .. } => "SnapshotBlob",
            Self::SetBlobTier { .. } => "SetBlobTier",
            Self::UndeleteBlob { .. } => "UndeleteBlob",
            Self::LeaseBlob { .. } => "LeaseBlob",
            Self::GetBlobTags { .. } => "GetBlobTags",
            Self::SetBlobTags { .. } => "SetBlobTags",
            Self::FindBlobs(FindBlobs { container: None, .. }) => "FindBlobsByTags",
            Self::Batch(_) => "BlobBatch",
            Self::FindBlobs(_) => "FindBlobsByTagsInContainer",
            Self::DeleteBlob { .. } => "DeleteBlob",
        }
    }
}
