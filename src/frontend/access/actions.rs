//! The action of each operation.

use crate::auth::Action;
use crate::protocol::model::Operation;
use crate::protocol::model::copy::TagOption;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::UploadOperation;
use crate::types::DeleteScope;
use crate::types::LeaseAction;

/// The action for which the sender of an operation needs permission.
pub(crate) fn action(operation: &Operation) -> Action {
    match operation {
        Operation::Account(operation) => of_account(operation),
        Operation::Container(operation) => of_container(operation),
        Operation::Content(content) => of_content(content, protects(operation)),
        Operation::Blob(operation) => of_blob(operation),
        Operation::Upload(upload) => of_upload(upload, protects(operation)),
    }
}

/// Whether a copy brings tags of its own.
pub(super) fn brings(tags: &TagOption) -> bool {
    matches!(tags, TagOption::Replace(tags) if !tags.is_empty())
}

/// Whether the operation protects the version that it makes.
pub(super) const fn protects(operation: &Operation) -> bool {
    match operation.precondition() {
        Some(precondition) => precondition.lock.protects(),
        None => false,
    }
}

const fn of_account(operation: &AccountOperation) -> Action {
    use AccountOperation as O;
    match operation {
        O::GetAccountInformation => Action::DescribeAccount,
        O::Batch(_) => Action::Batch,
        O::ListContainers(_) => Action::ListContainers,
        O::GetUserDelegationKey { .. } => Action::DelegateKey,
        O::GetServiceProperties | O::GetServiceStats => Action::ReadAccount,
        O::SetServiceProperties { .. } => Action::WriteAccount,
        O::FindBlobs(_) => Action::FilterByTags,
    }
}

const fn of_container(operation: &ContainerOperation) -> Action {
    use ContainerOperation as O;
    match operation {
        O::CreateContainer { .. } => Action::CreateContainer,
        O::GetContainer { .. } => Action::ReadContainer,
        O::GetContainerAcl { .. }
        | O::SetContainerAcl { .. }
        | O::GetContainerGrants { .. }
        | O::SetContainerGrants { .. } => Action::Policy,
        O::SetContainerMetadata { .. } | O::RestoreContainer { .. } => Action::WriteContainer,
        O::DeleteContainer { .. } | O::DeleteIfEmpty { .. } => Action::DeleteContainer,
        O::Setting(setting) if setting.is_read() => Action::ReadSettings,
        O::Setting(_) => Action::WriteSettings,
        O::ListBlobs(list) => Action::ListBlobs { tagged: list.tags },
        // Permission to delete blobs is given for the container, so it is the same for each blob in
        // it.
        O::DeleteBlobs(_) => Action::DeleteBlob,
        O::LeaseContainer { action, .. } if breaks(action) => Action::BreakContainerLease,
        O::LeaseContainer { .. } => Action::WriteContainer,
    }
}

fn of_content(operation: &ContentOperation, locked: bool) -> Action {
    use ContentOperation as O;
    match operation {
        O::PutBlob { tags, .. } | O::PutBlockList { tags, .. } => {
            Action::PutBlob { tagged: !tags.is_empty(), locked }
        }
        O::PutBlobFromUrl(put) => Action::PutBlob { tagged: put.tags.sets_any(), locked },
        // Whether tags of the source may be copied is decided once the source is known.
        O::CopyNamed(copy) => Action::PutBlob { tagged: brings(&copy.tags), locked },
        O::CopyBlob(copy) => Action::PutBlob { tagged: copy.tags.sets_any(), locked },
        O::CopyIncrement(_) => Action::PutBlob { tagged: false, locked },
        O::AppendBlock { .. } | O::AppendBlockFromUrl { .. } => Action::AppendBlob,
        O::PutPage { .. } | O::PutPageFromUrl { .. } | O::AbortCopy { .. } => Action::WriteBlob,
        O::PutBlock { .. } | O::PutBlockFromUrl { .. } => Action::StageBlock,
    }
}

const fn of_blob(operation: &BlobOperation) -> Action {
    use BlobOperation as O;
    match operation {
        O::GetBlob { .. }
        | O::GetBlobPart { .. }
        | O::GetBlobProperties { .. }
        | O::GetBlobMetadata { .. }
        | O::GetBlobAttributes { .. }
        | O::GetBlockList { .. }
        | O::QueryBlob { .. }
        | O::GetPageRanges { .. } => Action::ReadBlob,
        O::SetBlobProperties { .. }
        | O::SetBlobMetadata { .. }
        | O::SetPageProperties { .. }
        | O::SealBlob { .. }
        | O::SetBlobTier { .. }
        | O::RestoreBlob { .. }
        | O::UndeleteBlob { .. } => Action::WriteBlob,
        O::GetBlobTags { .. } => Action::ReadTags,
        O::SetBlobTags { .. } => Action::WriteTags,
        O::SnapshotBlob { .. } => Action::SnapshotBlob,
        O::GetBlobLock { .. } => Action::ReadLock,
        O::SetBlobRetention { .. } | O::SetBlobLegalHold { .. } => Action::WriteLock,
        O::GetBlobGrants { .. } | O::SetBlobGrants { .. } => Action::BlobPolicy,
        O::DeleteBlob { scope: DeleteScope::Permanently(_), .. } => Action::PermanentDelete,
        O::DeleteBlob { scope, .. } if scope.is_version() => Action::DeleteVersion,
        O::DeleteBlob { .. } => Action::DeleteBlob,
        O::LeaseBlob { action, .. } if breaks(action) => Action::BreakBlobLease,
        O::LeaseBlob { .. } => Action::WriteBlob,
    }
}

fn of_upload(operation: &UploadOperation, locked: bool) -> Action {
    use UploadOperation as O;
    match operation {
        O::Create(create) => Action::PutBlob { tagged: !create.tags.is_empty(), locked },
        O::Complete(_) => Action::PutBlob { tagged: false, locked },
        O::UploadPart(_) | O::CopyPart(_) | O::Abort(_) => Action::WriteBlob,
        O::ListParts { .. } => Action::ListParts,
        O::ListUploads(_) => Action::ListUploads,
    }
}

/// Whether the permission to delete permits this lease action.
const fn breaks(action: &LeaseAction) -> bool {
    match action {
        LeaseAction::Break { .. } => true,
        LeaseAction::Acquire { .. }
        | LeaseAction::Renew { .. }
        | LeaseAction::Change { .. }
        | LeaseAction::Release { .. } => false,
    }
}
