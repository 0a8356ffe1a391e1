//! The encryption scope that a shared access signature requires for writes.
//!
//! Source: Storage REST "Create a service SAS", "Create an account SAS", signed encryption scope.

use crate::protocol::model::Hint;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::model::operation::UploadOperation;

/// Sets the encryption scope `name` on an operation that writes content. Other operations do not
/// change.
///
/// # Errors
/// `InvalidHeaderValue` when the request itself names another scope, or a key.
pub(super) fn apply(operation: &mut Operation, name: &str) -> Result<(), Refusal> {
    let Some(precondition) = of_write(operation) else { return Ok(()) };
    match &precondition.encryption {
        RequestEncryption::Unchecked | RequestEncryption::Plain => {
            precondition.encryption = RequestEncryption::Scope(name.to_owned());
            Ok(())
        }
        RequestEncryption::Scope(own) if own == name => Ok(()),
        RequestEncryption::Scope(_)
        | RequestEncryption::KeyedScope { .. }
        | RequestEncryption::Key(_) => {
            Err(Refusal::new(Reason::InvalidHeaderValue).hint(Hint::OtherScope))
        }
    }
}

/// The precondition of an operation that writes content or metadata of a blob.
const fn of_write(operation: &mut Operation) -> Option<&mut Precondition> {
    match operation {
        Operation::Account(_) | Operation::Container(_) => None,
        Operation::Content(operation) => of_content(operation),
        Operation::Blob(operation) => of_metadata(operation),
        // A part has the encryption of its upload.
        Operation::Upload(UploadOperation::Create(create)) => Some(&mut create.precondition),
        Operation::Upload(
            UploadOperation::UploadPart(_)
            | UploadOperation::CopyPart(_)
            | UploadOperation::Complete(_)
            | UploadOperation::Abort(_)
            | UploadOperation::ListParts { .. }
            | UploadOperation::ListUploads(_),
        ) => None,
    }
}

const fn of_content(operation: &mut ContentOperation) -> Option<&mut Precondition> {
    use ContentOperation as O;
    match operation {
        O::PutBlobFromUrl(put) => Some(&mut put.precondition),
        O::CopyBlob(copy) => Some(&mut copy.precondition),
        O::CopyIncrement(copy) => Some(&mut copy.precondition),
        O::CopyNamed(copy) => Some(&mut copy.precondition),
        O::PutBlob { precondition, .. }
        | O::PutBlockList { precondition, .. }
        | O::PutBlock { precondition, .. }
        | O::PutBlockFromUrl { precondition, .. }
        | O::AppendBlock { precondition, .. }
        | O::AppendBlockFromUrl { precondition, .. }
        | O::PutPage { precondition, .. }
        | O::PutPageFromUrl { precondition, .. } => Some(precondition),
        O::AbortCopy { .. } => None,
    }
}

const fn of_metadata(operation: &mut BlobOperation) -> Option<&mut Precondition> {
    use BlobOperation as O;
    match operation {
        O::SetBlobMetadata { precondition, .. }
        | O::SnapshotBlob { precondition, .. }
        | O::SetPageProperties { precondition, len: Some(_), .. } => Some(precondition),
        O::GetBlob { .. }
        | O::QueryBlob { .. }
        | O::GetBlobPart { .. }
        | O::GetBlobProperties { .. }
        | O::SetBlobProperties { .. }
        | O::GetBlobMetadata { .. }
        | O::SetBlobTier { .. }
        | O::UndeleteBlob { .. }
        | O::LeaseBlob { .. }
        | O::GetBlobTags { .. }
        | O::SetBlobTags { .. }
        | O::DeleteBlob { .. }
        | O::GetBlobAttributes { .. }
        | O::RestoreBlob { .. }
        | O::GetBlockList { .. }
        | O::SetPageProperties { .. }
        | O::GetPageRanges { .. }
        | O::SealBlob { .. }
        | O::GetBlobGrants { .. }
        | O::SetBlobGrants { .. }
        | O::GetBlobLock { .. }
        | O::SetBlobRetention { .. }
        | O::SetBlobLegalHold { .. } => None,
    }
}

#[cfg(test)]
mod tests;
