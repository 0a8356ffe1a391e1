//! Copies by reference: the source marks, the destination names (ADR 0009).

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

use crate::index::api::Guard;
use crate::index::api::NewBlobFields;
use crate::index::api::NewContent;
use crate::index::record::BlobRecord;
use crate::index::record::CopyJob;
use crate::index::record::CopyRecord;
use crate::types::BlobKey;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::ByteLen;
use crate::types::ContentChecksum;
use crate::types::Crc64;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Metadata;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Secret;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;

/// Marks a blob's content as shared, so that other rows may name it, and returns its locations.
/// Changes nothing that clients see. The caller has noted its copy in [`crate::index::InFlight`]
/// before it asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The source.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// The precondition; conditions as of a read.
    pub guard: Guard,
    /// The wanted bytes; `None` for all.
    pub range: Option<Range<u64>>,
}

/// Content of a source, as its rows hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopiedContent {
    /// Without blocks.
    Whole(NewContent),
    /// Committed blocks, in order.
    Blocks(Vec<CopiedBlock>),
    /// Pages, in a layer that [`crate::index::FillLayer`] made under the destination.
    Pages {
        /// The layer.
        layer: u64,
        /// Bytes of the blob.
        len: u64,
    },
}

impl CopiedContent {
    /// All of it, piece by piece. Pages are represented by their layers only.
    pub fn pieces(&self) -> impl Iterator<Item = &NewContent> {
        let (whole, blocks) = match self {
            Self::Whole(content) => (Some(content), [].as_slice()),
            Self::Blocks(blocks) => (None, blocks.as_slice()),
            Self::Pages { .. } => (None, [].as_slice()),
        };
        whole.into_iter().chain(blocks.iter().map(|block| &block.content))
    }
}

/// One committed block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedBlock {
    /// The block.
    pub id: BlockId,
    /// Bytes.
    pub len: u64,
    /// Of its bytes.
    pub crc64: Crc64,
    /// Its bytes.
    pub content: NewContent,
    /// Further checksums of its bytes, as its row keeps them.
    pub checksums: Vec<ContentChecksum>,
}

/// Whole frames in an extent, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// The extent.
    pub extent: ExtentId,
    /// Where the first one begins.
    pub offset: ExtentOffset,
    /// Payload bytes, at least 1.
    pub len: ByteLen,
}

/// The answer to [`Share`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedBlob {
    /// The source.
    pub record: BlobRecord,
    /// The wanted bytes; `None` when the range cuts a block, or bytes are encrypted by a customer's
    /// key that the guard does not name: these cannot be shared.
    pub content: Option<CopiedContent>,
    /// Where the wanted bytes lie when the range cuts blocks, but no frames; their checksums are
    /// not known. Empty in other cases.
    pub frames: Vec<Frames>,
}

/// Makes or replaces a blob with content that came from another; its staged blocks are discarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutCopy {
    /// The destination.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// Its new kind; a blob of another kind is replaced.
    pub kind: BlobKind,
    /// System properties.
    pub properties: BlobProperties,
    /// User metadata.
    pub metadata: Metadata,
    /// Index tags.
    pub tags: Tags,
    /// The tier, if it is set.
    pub tier: Option<TierState>,
    /// The bytes.
    pub content: CopiedContent,
    /// The CRC-64/NVME of all of them.
    pub crc64: Crc64,
    /// The record of the copy.
    pub copy: Option<Box<CopyRecord>>,
    /// Its tagged fields.
    pub fields: NewBlobFields,
    /// Set for Incremental Copy Blob: the pages are the changes of the snapshot, and become a
    /// snapshot of the destination too.
    pub increment: Option<Increment>,
    /// The remaining work of a pending copy. The content is then empty, and pages are `copy.total`
    /// bytes of zeros. No other write changes the blob until [`EndCopy`].
    pub job: Option<Box<CopyJob>>,
}

/// The content of an incremental copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Increment {
    /// The source.
    pub source: RoutingKey,
    /// The snapshot of it.
    pub snapshot: Timestamp,
    /// The snapshot with which it was compared, which is the last one that the destination has;
    /// `None` where there is no destination yet.
    pub since: Option<Timestamp>,
}

/// A pending copy as [`crate::index::Read::CopyJobs`] finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCopy {
    /// The destination.
    pub blob: RoutingKey,
    /// The remaining work.
    pub job: CopyJob,
}

/// Takes or renews the right to carry out a pending copy, and notes how far it is. It is refused
/// with [`crate::index::Refused::CopyPending`] while another lease has not expired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseCopy {
    /// The destination.
    pub blob: RoutingKey,
    /// The copy.
    pub id: Uuid,
    /// The lease, drawn by the process that takes it.
    pub lease: Uuid,
    /// How long it lasts from the commit on.
    pub duration: Duration,
    /// The bytes copied so far. Clients see them.
    pub copied: u64,
}

/// Ends a pending copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndCopy {
    /// The destination.
    pub blob: RoutingKey,
    /// The copy: one that is not pending any more is left as it is.
    pub id: Uuid,
    /// How it ended.
    pub end: CopyEnd,
}

/// How a pending copy ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyEnd {
    /// All bytes are there.
    Success {
        /// They.
        content: CopiedContent,
        /// The CRC-64/NVME of all of them.
        crc64: Crc64,
    },
    /// The blob stays, without bytes; why.
    Failed(String),
    /// By the client, who holds this lease; the blob stays, without bytes.
    Aborted(Option<Uuid>),
}

/// Puts another sealing of the source of a pending copy in the place of one that is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResealCopy {
    /// The destination.
    pub blob: RoutingKey,
    /// The current value; nothing is changed if it differs.
    pub from: Secret,
    /// The new value.
    pub to: Secret,
}

/// Pending copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyJobPage {
    /// The copies.
    pub jobs: Vec<PendingCopy>,
    /// Where to go on, perhaps in the next partition.
    pub next: Option<Bytes>,
}
