//! Callers that may create blobs but not overwrite them.

use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::UploadOperation;
use crate::types::EtagMatch;

/// Adds the condition that the blob does not exist, so that the partition decides and no race can
/// replace a blob. Returns whether the request did not have this condition itself; `None` when the
/// operation cannot have it.
pub(super) fn forbid(operation: &mut Operation) -> Option<bool> {
    let precondition = match operation {
        Operation::Upload(operation) => of_upload(operation)?,
        Operation::Content(operation) => of_content(operation)?,
        Operation::Account(_) | Operation::Container(_) | Operation::Blob(_) => return None,
    };
    let own = precondition.conditions.if_none_match.replace(EtagMatch::Any);
    Some(!matches!(own, Some(EtagMatch::Any | EtagMatch::AnyUnleased)))
}

const fn of_upload(operation: &mut UploadOperation) -> Option<&mut Precondition> {
    use UploadOperation as O;
    match operation {
        O::Create(create) => Some(&mut create.precondition),
        O::Complete(complete) => Some(&mut complete.upload.precondition),
        O::UploadPart(_)
        | O::CopyPart(_)
        | O::Abort(_)
        | O::ListParts { .. }
        | O::ListUploads(_) => None,
    }
}

const fn of_content(operation: &mut ContentOperation) -> Option<&mut Precondition> {
    use ContentOperation as O;
    match operation {
        O::PutBlobFromUrl(put) => Some(&mut put.precondition),
        O::CopyBlob(copy) => Some(&mut copy.precondition),
        O::CopyIncrement(copy) => Some(&mut copy.precondition),
        O::CopyNamed(copy) => Some(&mut copy.precondition),
        O::PutBlob { precondition, .. } | O::PutBlockList { precondition, .. } => {
            Some(precondition)
        }
        O::AppendBlock { .. }
        | O::AppendBlockFromUrl { .. }
        | O::PutPage { .. }
        | O::PutPageFromUrl { .. }
        | O::AbortCopy { .. }
        | O::PutBlockFromUrl { .. }
        | O::PutBlock { .. } => None,
    }
}

/// Turns the refusal "the blob exists" into "you may not overwrite it".
pub(crate) fn explain(error: Refusal) -> Refusal {
    if error.reason == Reason::BlobAlreadyExists {
        return Reason::UnauthorizedBlobOverwrite.into();
    }
    error
}
