//! The metadata that an operation sets.

use crate::protocol::model::Operation;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::types::Metadata;

impl Operation {
    /// The user metadata that headers of the request set; `None` for an operation without.
    pub const fn metadata_mut(&mut self) -> Option<&mut Metadata> {
        match self {
            Self::Container(
                ContainerOperation::CreateContainer { metadata, .. }
                | ContainerOperation::SetContainerMetadata { metadata, .. },
            )
            | Self::Content(
                ContentOperation::PutBlob { metadata, .. }
                | ContentOperation::PutBlockList { metadata, .. },
            )
            | Self::Blob(
                BlobOperation::SetBlobMetadata { metadata, .. }
                | BlobOperation::SnapshotBlob { metadata: Some(metadata), .. },
            ) => Some(metadata),
            Self::Content(ContentOperation::PutBlobFromUrl(put)) => Some(&mut put.metadata),
            Self::Content(ContentOperation::CopyBlob(copy)) => Some(&mut copy.metadata),
            Self::Account(_)
            | Self::Container(_)
            | Self::Content(_)
            | Self::Blob(_)
            | Self::Upload(_) => None,
        }
    }
}
