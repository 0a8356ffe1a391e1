//! Operations that write the content of a blob: uploads of blobs, blocks and pages, and copies.

use std::ops::Range;

use uuid::Uuid;

use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::copy::CopyBlob;
use crate::protocol::model::copy::CopyIncrement;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::copy::PutBlobFromUrl;
use crate::protocol::model::named_copy::CopyNamed;
use crate::protocol::model::operation::parts::BlobPath;
use crate::protocol::model::operation::parts::PageWrite;
use crate::protocol::model::operation::parts::Precondition;
use crate::protocol::model::operation::parts::SequenceBounds;
use crate::protocol::model::operation::parts::Upload;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::BlockListEntry;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::ObjectProperties;
use crate::types::Tags;

/// Operations that write the content of a blob: uploads of blobs, blocks and pages, and copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentOperation {
    /// Put Blob.
    PutBlob {
        /// The blob.
        path: BlobPath,
        /// The precondition.
        precondition: Precondition,
        /// System properties; `content_md5` as the client claims it (verified against the
        /// body).
        properties: BlobProperties,
        /// User metadata.
        metadata: Metadata,
        /// Index tags.
        tags: Tags,
        /// The kind of blob to make.
        kind: NewKind,
        /// The tier, when it is given.
        tier: Option<AccessTier>,
        /// The fields of an object of S3 beyond these properties.
        object: Option<Box<ObjectProperties>>,
        /// The body; empty but for block blobs.
        upload: Upload,
    },
    /// Append Block.
    AppendBlock {
        /// The blob.
        path: BlobPath,
        /// The precondition.
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
        /// The precondition.
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
        /// The precondition.
        precondition: Precondition,
        /// The condition on the sequence number.
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
        /// The precondition.
        precondition: Precondition,
        /// The condition on the sequence number.
        sequence: SequenceBounds,
        /// Whole pages, half-open, bytes; as long as the source's range.
        range: Range<u64>,
        /// The bytes.
        source: Box<CopySource>,
    },
    /// Put Blob From URL.
    PutBlobFromUrl(Box<PutBlobFromUrl>),
    /// Copy Blob, Copy Blob From URL.
    CopyBlob(Box<CopyBlob>),
    /// Incremental Copy Blob.
    CopyIncrement(Box<CopyIncrement>),
    /// A copy of a blob of the same account.
    CopyNamed(Box<CopyNamed>),
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
        /// The precondition.
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
}
