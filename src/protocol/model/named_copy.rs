//! Copies whose source is named, not found by a URL.

use crate::protocol::model::copy::TagOption;
use crate::protocol::model::operation::parts::BlobPath;
use crate::protocol::model::operation::parts::Precondition;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::ByteRange;
use crate::types::ChecksumAlgorithm;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::Metadata;
use crate::types::ObjectProperties;
use crate::types::Timestamp;
use crate::types::VersionId;

/// A blob of the requester's account from which bytes are taken. The sender must be permitted to
/// read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSource {
    /// The blob.
    pub path: BlobPath,
    /// The precondition, as of a read, and the key under which it is encrypted.
    pub precondition: Precondition,
    /// The wanted bytes, all of which must exist; `None` for the whole blob.
    pub range: Option<ByteRange>,
}

/// Makes a block blob of a blob of the same account. Source: S3, `CopyObject`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyNamed {
    /// The destination.
    pub path: BlobPath,
    /// The precondition on the destination, and the key under which it is encrypted.
    pub precondition: Precondition,
    /// The source.
    pub source: NamedSource,
    /// The longest source, bytes.
    pub len_max: u64,
    /// System properties and metadata of the destination.
    pub properties: CopiedProperties,
    /// Its other fields. Those that are not given and belong to the properties are taken from the
    /// source with them.
    pub object: ObjectProperties,
    /// The source of its tags.
    pub tags: TagOption,
    /// Whether the sender may read the tags of the source and set them. The request does not say
    /// it; it is filled in when the sender is known.
    pub may_copy_tags: bool,
    /// The tier, if it is given.
    pub tier: Option<AccessTier>,
    /// A checksum of the whole content that the destination must have; `None` for those of the
    /// source.
    pub checksum: Option<ChecksumAlgorithm>,
}

/// The properties and metadata of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopiedProperties {
    /// Those of the source.
    Keep,
    /// Those of the request.
    Replace {
        /// System properties.
        properties: Box<BlobProperties>,
        /// User metadata.
        metadata: Metadata,
    },
}

/// The facts of a finished copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedFacts {
    /// The time of the change.
    pub last_modified: Timestamp,
    /// The version that the copy made; `None` where versions are not kept.
    pub version: Option<VersionId>,
    /// The version that was copied; `None` where versions are not kept.
    pub source_version: Option<VersionId>,
    /// S3's tag of the content.
    pub content_etag: ContentEtag,
    /// Checksums of the content, as far as they are known.
    pub checksums: Vec<ContentChecksum>,
}
