//! Which action an operation is.

use crate::auth::Action;
use crate::protocol::model::Operation;
use crate::types::LeaseAction;

/// The action that an operation is: what its sender has to be permitted.
pub(crate) fn action(operation: &Operation) -> Action {
    use Action as A;
    use Operation as O;
    match operation {
        O::GetAccountInformation => A::DescribeAccount,
        O::Batch(_) => A::Batch,
        O::ListContainers(_) => A::ListContainers,
        O::GetUserDelegationKey { .. } => A::DelegateKey,
        O::GetServiceProperties | O::GetServiceStats => A::ReadAccount,
        O::SetServiceProperties { .. } => A::WriteAccount,
        O::CreateContainer { .. } => A::CreateContainer,
        O::GetContainer { .. } => A::ReadContainer,
        O::GetContainerAcl { .. } | O::SetContainerAcl { .. } => A::Policy,
        O::SetContainerMetadata { .. } => A::WriteContainer,
        O::DeleteContainer { .. } => A::DeleteContainer,
        O::ListBlobs(_) => A::ListBlobs,
        O::PutBlob { tags, .. } | O::PutBlockList { tags, .. } => {
            A::PutBlob { tagged: !tags.is_empty() }
        }
        O::PutBlobFromUrl(put) => A::PutBlob { tagged: put.tags.sets_any() },
        O::CopyBlob(copy) => A::PutBlob { tagged: copy.tags.sets_any() },
        O::AppendBlock { .. } | O::AppendBlockFromUrl { .. } => A::AppendBlob,
        O::SealBlob { .. }
        | O::PutPage { .. }
        | O::PutPageFromUrl { .. }
        | O::SetPageProperties { .. } => A::WriteBlob,
        O::GetPageRanges { .. } => A::ReadBlob,
        O::PutBlock { .. }
        | O::PutBlockFromUrl { .. }
        | O::AbortCopy { .. }
        | O::SetBlobProperties { .. }
        | O::SetBlobMetadata { .. } => A::WriteBlob,
        O::GetBlob { .. }
        | O::GetBlobProperties { .. }
        | O::GetBlobMetadata { .. }
        | O::GetBlockList { .. } => A::ReadBlob,
        O::GetBlobTags { .. } => A::ReadTags,
        O::SetBlobTags { .. } => A::WriteTags,
        O::FindBlobs(_) => A::FilterByTags,
        O::SnapshotBlob { .. } => A::SnapshotBlob,
        O::SetBlobTier { .. } | O::UndeleteBlob { .. } => A::WriteBlob,
        O::RestoreContainer { .. } => A::WriteContainer,
        O::DeleteBlob { .. } => A::DeleteBlob,
        O::LeaseContainer { action, .. } if breaks(action) => A::BreakContainerLease,
        O::LeaseContainer { .. } => A::WriteContainer,
        O::LeaseBlob { action, .. } if breaks(action) => A::BreakBlobLease,
        O::LeaseBlob { .. } => A::WriteBlob,
    }
}

/// Whether a caller that may delete may do this to a lease.
const fn breaks(action: &LeaseAction) -> bool {
    match action {
        LeaseAction::Break { .. } => true,
        LeaseAction::Acquire { .. }
        | LeaseAction::Renew { .. }
        | LeaseAction::Change { .. }
        | LeaseAction::Release { .. } => false,
    }
}
