//! The properties of a copy source.

use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::ContentChecksum;
use crate::types::ContentTag;
use crate::types::Metadata;
use crate::types::Tags;

/// The properties that a copy may take from its source.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The kind of blob.
    pub(crate) kind: BlobKind,
    /// System properties.
    pub(crate) properties: BlobProperties,
    /// User metadata.
    pub(crate) metadata: Metadata,
    /// Whether it is in the archive tier, from which a copy may be rehydrated.
    pub(crate) archived: bool,
    /// Index tags; a source on another server has none.
    pub(crate) tags: Tags,
    /// The source of S3's tag of the bytes that are copied; `None` if it is derived.
    pub(crate) content_tag: Option<ContentTag>,
    /// Checksums of these bytes that the source keeps.
    pub(crate) checksums: Vec<ContentChecksum>,
}
