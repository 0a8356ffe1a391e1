//! The preconditions of operations.

use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::named_copy::NamedSource;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::UploadOperation;

impl Operation {
    /// The precondition on the container or blob; `None` if the operation has none.
    #[must_use]
    pub const fn precondition(&self) -> Option<&Precondition> {
        match self {
            Self::Account(_) => None,
            Self::Container(operation) => of_container(operation),
            Self::Content(operation) => Some(of_content(operation)),
            Self::Blob(operation) => of_blob(operation),
            Self::Upload(operation) => operation.precondition(),
        }
    }
}

impl Operation {
    /// The blob that is named as the source of bytes; `None` for other operations.
    #[must_use]
    pub const fn named_source(&self) -> Option<&NamedSource> {
        match self {
            Self::Content(ContentOperation::CopyNamed(copy)) => Some(&copy.source),
            Self::Upload(UploadOperation::CopyPart(copy)) => Some(&copy.source),
            Self::Account(_)
            | Self::Container(_)
            | Self::Content(_)
            | Self::Blob(_)
            | Self::Upload(_) => None,
        }
    }
}

const fn of_container(operation: &ContainerOperation) -> Option<&Precondition> {
    use ContainerOperation as O;
    match operation {
        O::GetContainer { precondition, .. }
        | O::GetContainerAcl { precondition, .. }
        | O::SetContainerAcl { precondition, .. }
        | O::SetContainerMetadata { precondition, .. }
        | O::DeleteContainer { precondition, .. }
        | O::DeleteIfEmpty { precondition, .. }
        | O::LeaseContainer { precondition, .. } => Some(precondition),
        O::CreateContainer { .. }
        | O::RestoreContainer { .. }
        | O::Setting(_)
        | O::GetContainerGrants { .. }
        | O::SetContainerGrants { .. }
        | O::ListBlobs(_)
        | O::DeleteBlobs(_) => None,
    }
}

const fn of_content(operation: &ContentOperation) -> &Precondition {
    use ContentOperation as O;
    match operation {
        O::PutBlobFromUrl(put) => &put.precondition,
        O::CopyBlob(copy) => &copy.precondition,
        O::CopyIncrement(copy) => &copy.precondition,
        O::CopyNamed(copy) => &copy.precondition,
        O::PutBlob { precondition, .. }
        | O::AppendBlock { precondition, .. }
        | O::AppendBlockFromUrl { precondition, .. }
        | O::PutPage { precondition, .. }
        | O::PutPageFromUrl { precondition, .. }
        | O::AbortCopy { precondition, .. }
        | O::PutBlockFromUrl { precondition, .. }
        | O::PutBlock { precondition, .. }
        | O::PutBlockList { precondition, .. } => precondition,
    }
}

const fn of_blob(operation: &BlobOperation) -> Option<&Precondition> {
    use BlobOperation as O;
    match operation {
        O::SetPageProperties { precondition, .. }
        | O::GetPageRanges { precondition, .. }
        | O::SealBlob { precondition, .. }
        | O::GetBlockList { precondition, .. }
        | O::GetBlob { precondition, .. }
        | O::GetBlobPart { precondition, .. }
        | O::GetBlobProperties { precondition, .. }
        | O::SetBlobProperties { precondition, .. }
        | O::GetBlobMetadata { precondition, .. }
        | O::SetBlobMetadata { precondition, .. }
        | O::SnapshotBlob { precondition, .. }
        | O::SetBlobTier { precondition, .. }
        | O::LeaseBlob { precondition, .. }
        | O::GetBlobTags { precondition, .. }
        | O::SetBlobTags { precondition, .. }
        | O::GetBlobAttributes { precondition, .. }
        | O::RestoreBlob { precondition, .. }
        | O::SetBlobRetention { precondition, .. }
        | O::SetBlobLegalHold { precondition, .. }
        | O::QueryBlob { precondition, .. }
        | O::DeleteBlob { precondition, .. } => Some(precondition),
        O::UndeleteBlob { .. }
        | O::GetBlobGrants { .. }
        | O::SetBlobGrants { .. }
        | O::GetBlobLock { .. } => None,
    }
}
