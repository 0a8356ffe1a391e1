//! What is known of a source.

use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::Metadata;
use crate::types::Tags;

/// What a copy may take over from its source.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// What it is.
    pub(crate) kind: BlobKind,
    /// System properties.
    pub(crate) properties: BlobProperties,
    /// User metadata.
    pub(crate) metadata: Metadata,
    /// Index tags; none of a source elsewhere.
    pub(crate) tags: Tags,
}
