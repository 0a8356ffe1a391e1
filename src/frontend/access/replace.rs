//! What a caller that may create but not write gets.

use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::EtagMatch;

/// Conditions an operation to make something new, so that the partition decides and no race can
/// replace a blob. Answers whether the caller had not asked for that itself; `None` when the
/// operation cannot be conditioned so.
pub(super) fn forbid(operation: &mut Operation) -> Option<bool> {
    let precondition = if let Operation::PutBlobFromUrl(put) = operation {
        &mut put.precondition
    } else if let Operation::CopyBlob(copy) = operation {
        &mut copy.precondition
    } else if let Operation::PutBlob { precondition, .. }
    | Operation::PutBlockList { precondition, .. } = operation
    {
        precondition
    } else {
        return None;
    };
    let own = precondition.conditions.if_none_match.replace(EtagMatch::Any);
    Some(own != Some(EtagMatch::Any))
}

/// Tells "it exists" as what it means to a caller that may not replace.
pub(crate) fn explain(error: Refusal) -> Refusal {
    if error.reason == Reason::BlobAlreadyExists {
        return Reason::UnauthorizedBlobOverwrite.into();
    }
    error
}
