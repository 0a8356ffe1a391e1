//! Tagged fields that a request gives a new blob.

use serde::Deserialize;
use serde::Serialize;

use crate::types::ContentChecksum;
use crate::types::ContentTag;
use crate::types::ObjectProperties;

/// Tagged fields that a request gives a new blob. Few blobs have more than a content tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewBlobFields {
    /// The source of S3's `ETag`. `None` if it is to be derived from other fields of the row.
    pub content_tag: Option<ContentTag>,
    /// Checksums of the whole content. The CRC-64 of the row is none of them.
    pub checksums: Vec<ContentChecksum>,
    /// The fields of an object of S3 beyond Azure's properties.
    pub object: Option<Box<ObjectProperties>>,
}
