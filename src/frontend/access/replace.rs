//! Callers that may create blobs but not overwrite them.

use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ContentOperation;
use crate::types::EtagMatch;

/// Adds the condition that the blob does not exist, so that the partition decides and no race can
/// replace a blob. Returns whether the request did not have this condition itself; `None` when the
/// operation cannot have it.
pub(super) fn forbid(operation: &mut Operation) -> Option<bool> {
    use ContentOperation as O;
    let Operation::Content(operation) = operation else { return None };
    let precondition = match operation {
        O::PutBlobFromUrl(put) => &mut put.precondition,
        O::CopyBlob(copy) => &mut copy.precondition,
        O::CopyNamed(copy) => &mut copy.precondition,
        O::PutBlob { precondition, .. } | O::PutBlockList { precondition, .. } => precondition,
        O::AppendBlock { .. }
        | O::AppendBlockFromUrl { .. }
        | O::PutPage { .. }
        | O::PutPageFromUrl { .. }
        | O::AbortCopy { .. }
        | O::PutBlockFromUrl { .. }
        | O::PutBlock { .. } => return None,
    };
    let own = precondition.conditions.if_none_match.replace(EtagMatch::Any);
    Some(own != Some(EtagMatch::Any))
}

/// Turns the refusal "the blob exists" into "you may not overwrite it".
pub(crate) fn explain(error: Refusal) -> Refusal {
    if error.reason == Reason::BlobAlreadyExists {
        return Reason::UnauthorizedBlobOverwrite.into();
    }
    error
}
