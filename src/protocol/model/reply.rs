//! Every answer, free of dialect.

use std::ops::Range;

use bytes::Bytes;

use uuid::Uuid;

use crate::protocol::model::Refusal;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::copy::CopyState;
use crate::protocol::model::list_reply::BlobListing;
use crate::protocol::model::list_reply::ContainerListing;
use crate::protocol::model::named_copy::CopiedFacts;
use crate::protocol::model::operation::AccessPolicy;
use crate::protocol::model::operation::WantedParts;
use crate::protocol::model::upload_reply::UploadReply;
use crate::types::AccountType;
use crate::types::BlockId;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::Encryption;
use crate::types::Metadata;
use crate::types::ObjectLock;
use crate::types::PublicAccess;
use crate::types::Retention;
use crate::types::ServiceProperties;
use crate::types::Setting;
use crate::types::Tags;
use crate::types::Timestamp;
use crate::types::VersionId;
use crate::types::Versioning;

pub use crate::protocol::model::facts::{
    BlobFacts, Change, ContainerFacts, DeletedFacts, LeaseFacts, TierFacts,
};

/// A user delegation key and what it is signed as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDelegationKey {
    /// The object id of its holder.
    pub object: String,
    /// Their tenant.
    pub tenant: String,
    /// From when on, ISO 8601.
    pub start: String,
    /// Until when, ISO 8601.
    pub expiry: String,
    /// The service.
    pub service: String,
    /// The version.
    pub version: String,
    /// The tenant of the users it is delegated to, or empty.
    pub delegated_tenant: String,
    /// The key, base64.
    pub value: String,
}

/// The reply to an operation on a setting of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingReply {
    /// The setting.
    Value(Box<Setting>),
    /// Whether versions are kept; `None` if they never were.
    Versioning(Option<Versioning>),
    /// Its object lock.
    ObjectLock(ObjectLock),
    /// One that all containers have; the dialect knows its value.
    Fixed,
    /// It was replaced or removed.
    Changed,
}

/// The grants of an access control list: who may list a container, or read a blob, without a role
/// in the account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Canonical id of the user that owns it; `None` for the account's root.
    pub owner: Option<String>,
    /// Anonymous callers.
    pub everyone: bool,
    /// Holders of a key of any account of this store.
    pub authenticated: bool,
}

/// The requested part of a version's protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobLock {
    /// Its retention.
    Retention(Retention),
    /// Whether it is under a legal hold.
    LegalHold(bool),
}

/// The outcome of a lease action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// Taken, under this id.
    Acquired(Uuid),
    /// Renewed.
    Renewed(Uuid),
    /// Goes by this id now.
    Changed(Uuid),
    /// Gone.
    Released,
    /// Broken, or so after a while.
    Broken {
        /// Until it is broken, rounded up.
        seconds: u64,
    },
}

/// A page of the parts in which a blob was uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobParts {
    /// The requested ones.
    pub wanted: WantedParts,
    /// The number of all parts.
    pub total: u32,
    /// Parts in the order of their numbers.
    pub items: Vec<BlobPart>,
    /// Whether more follow.
    pub more: bool,
}

/// A part in which a blob was uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPart {
    /// Its number.
    pub number: u32,
    /// Its length, bytes.
    pub len: u64,
    /// Its checksums.
    pub checksums: Vec<ContentChecksum>,
}

/// The outcomes of the deletions of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobsDeleted {
    /// The blobs, in the order of the request.
    pub items: Vec<BlobDeleted>,
    /// Whether the answer names only those that were not deleted.
    pub quiet: bool,
}

/// The outcome of one of several deletions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobDeleted {
    /// The name, as the request has it.
    pub name: String,
    /// The version that the request names, in the words of the request.
    pub version: Option<String>,
    /// The deletion, or its refusal.
    pub outcome: Result<Deletion, Refusal>,
}

/// The effect of Delete Blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// The delete marker that was put, or the version that was removed; `None` where versions are
    /// not kept.
    pub version: Option<VersionId>,
    /// Whether that version is a delete marker.
    pub is_marker: bool,
    /// Whether the deleted blob is kept, as a version or for some time.
    pub is_kept: bool,
}

/// A blob that Find Blobs by Tags met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlob {
    /// The name.
    pub name: String,
    /// Its container.
    pub container: String,
    /// Those of its tags that the search names.
    pub tags: Tags,
}

/// A page of found blobs; the request's own parameters are echoed by the renderer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundBlobs {
    /// By tag value, container and name, as far as the search follows one tag.
    pub items: Vec<FoundBlob>,
    /// Opaque; `None` at the end.
    pub next_marker: Option<String>,
}

/// One block of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockItem {
    /// The block.
    pub id: BlockId,
    /// Its length, bytes.
    pub len: u64,
}

/// A range of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageItem {
    /// Bytes, half-open.
    pub range: Range<u64>,
    /// Cleared since the snapshot compared with.
    pub cleared: bool,
}

/// The reply of an operation. The body of [`Reply::Blob`] is streamed beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Get User Delegation Key.
    UserDelegationKey(Box<UserDelegationKey>),
    /// Get Container ACL.
    ContainerAcl {
        /// The container's tag and time.
        change: Change,
        /// Anonymous access.
        public_access: PublicAccess,
        /// Its policies, in the order they were given.
        policies: Vec<AccessPolicy>,
    },
    /// Get Account Information.
    AccountInformation(AccountType),
    /// Get Blob Service Properties.
    ServiceProperties {
        /// All but what follows.
        properties: Box<ServiceProperties>,
        /// Whether soft-deleted rows may be removed before they expire.
        permanent_delete: bool,
    },
    /// Set Blob Service Properties.
    ServicePropertiesSet,
    /// Get Blob Service Stats.
    ServiceStats {
        /// How new the secondary is.
        last_sync: Timestamp,
    },
    /// List Containers.
    Containers(ContainerListing),
    /// Create Container.
    ContainerCreated(Change),
    /// Create Container: it exists, with the wanted owner and region.
    ContainerKept(Change),
    /// Get Container Properties and Metadata.
    Container(ContainerFacts),
    /// Set Container Metadata.
    ContainerChanged(Change),
    /// A setting of a container.
    Setting(SettingReply),
    /// The grants of a container or blob; `None` after they were replaced.
    Grants(Option<Grants>),
    /// The legal hold or retention of a version.
    Lock(BlobLock),
    /// The retention of a version, which was replaced.
    RetentionSet(Option<Retention>),
    /// Whether a version is under a legal hold, which was set.
    LegalHoldSet(bool),
    /// Delete Container.
    ContainerDeleted,
    /// List Blobs.
    Blobs(BlobListing),
    /// Put Blob.
    BlobPut {
        /// Tag and time.
        change: Change,
        /// Of the content of a block blob.
        checksums: Option<WrittenChecksums>,
        /// S3's tag of the content.
        content_etag: ContentEtag,
        /// The checksum of the content that the request names, else its CRC-64.
        checksum: ChecksumValue,
    },
    /// Append Block.
    BlockAppended {
        /// Tag and time.
        change: Change,
        /// Where the block begins, bytes.
        offset: u64,
        /// Blocks of the blob.
        blocks: u32,
        /// Of the body.
        checksums: WrittenChecksums,
    },
    /// Put Page.
    PagesPut {
        /// Tag and time.
        change: Change,
        /// The sequence number.
        sequence: u64,
        /// Of the body, when there was one.
        checksums: Option<WrittenChecksums>,
    },
    /// Set Blob Properties of a page blob.
    PagePropertiesSet {
        /// Tag and time.
        change: Change,
        /// The sequence number.
        sequence: u64,
    },
    /// Get Page Ranges.
    PageRanges {
        /// Tag and time.
        change: Change,
        /// Length of the blob, bytes.
        len: u64,
        /// In order.
        items: Vec<PageItem>,
        /// Where to go on, an offset; `None` at the end.
        next: Option<u64>,
    },
    /// Append Blob Seal.
    BlobSealed(Change),
    /// Copy Blob, Copy Blob From URL.
    BlobCopied {
        /// Tag and time.
        change: Change,
        /// The copy.
        id: Uuid,
        /// How it stands.
        state: CopyState,
        /// Of the content, of a copy that was waited for.
        checksums: Option<WrittenChecksums>,
    },
    /// A copy of a blob of the same account.
    NamedCopied(Box<CopiedFacts>),
    /// Abort Copy Blob.
    CopyAborted,
    /// Put Block.
    BlockPut(WrittenChecksums),
    /// Put Block List; the checksum is of the request's document.
    BlockListPut(Change, BodyChecksum),
    /// Get Block List.
    BlockList {
        /// The committed blob, if any: tag, time, length.
        committed_blob: Option<(Change, u64)>,
        /// Committed blocks, if requested.
        committed: Option<Vec<BlockItem>>,
        /// Staged blocks, if requested.
        uncommitted: Option<Vec<BlockItem>>,
    },
    /// Get Blob.
    Blob {
        /// The blob.
        facts: Box<BlobFacts>,
        /// The bytes of the body, half-open, when a range was requested (206); `None` means all
        /// (200).
        range: Option<Range<u64>>,
        /// Of the body, if requested.
        checksum: Option<BodyChecksum>,
    },
    /// Get Blob Properties.
    BlobProperties(Box<BlobFacts>),
    /// Get Blob Metadata.
    BlobMetadata(Box<BlobFacts>),
    /// Set Blob Properties.
    BlobPropertiesSet(Change),
    /// Set Blob Metadata.
    BlobMetadataSet(Change),
    /// Lease Blob, Lease Container.
    Leased {
        /// Tag and time, which a lease leaves alone.
        change: Change,
        /// The outcome.
        outcome: LeaseOutcome,
    },
    /// Get Blob Tags.
    BlobTags(Tags),
    /// Set Blob Tags.
    BlobTagsSet,
    /// Find Blobs by Tags.
    FoundBlobs(FoundBlobs),
    /// Preflight Blob Request: these headers.
    Preflight(Vec<(&'static str, String)>),
    /// Blob Batch.
    Batch {
        /// Between the answers.
        boundary: String,
        /// The answers, written by the dialect.
        body: Bytes,
    },
    /// Snapshot Blob.
    Snapshotted {
        /// Its time.
        snapshot: Timestamp,
        /// Its tag and time of last change.
        change: Change,
    },
    /// Set Blob Tier.
    TierSet {
        /// The blob is on its way out of the archive.
        pending: bool,
    },
    /// Query Blob Contents. Its records are the body.
    BlobQueried(Box<BlobFacts>),
    /// Undelete Blob.
    BlobUndeleted,
    /// A change that was encrypted, and how.
    Encrypted(Box<Reply>, Encryption),
    /// Delete Blob.
    BlobDeleted(Deletion),
    /// Several blobs were deleted, or refused.
    BlobsDeleted(BlobsDeleted),
    /// The attributes of a blob.
    BlobAttributes {
        /// The blob.
        facts: Box<BlobFacts>,
        /// Its parts; `None` if it was not uploaded in parts.
        parts: Option<BlobParts>,
    },
    /// A blob leaves the archive tier, or left it before.
    BlobRestored {
        /// Whether this request began it.
        begun: bool,
    },
    /// A part of a blob: the reply to a read of its bytes, and the number of all parts if the blob
    /// was uploaded in parts.
    Part(Box<Reply>, Option<u32>),
    /// An operation on an upload in parts.
    Upload(Box<UploadReply>),
}

impl Reply {
    /// The user metadata that its headers show; `None` if they show none.
    #[must_use]
    pub const fn metadata(&self) -> Option<&Metadata> {
        if let Self::Blob { facts, .. }
        | Self::BlobProperties(facts)
        | Self::BlobQueried(facts)
        | Self::BlobMetadata(facts) = self
        {
            Some(&facts.metadata)
        } else if let Self::Container(facts) = self {
            Some(&facts.metadata)
        } else if let Self::Encrypted(inner, _) = self {
            inner.metadata()
        } else {
            None
        }
    }
}
