//! The encryption scope that a shared access signature requires for writes.
//!
//! Source: Storage REST "Create a service SAS", "Create an account SAS", parameter `ses`.

use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RequestEncryption;

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
        RequestEncryption::Scope(_) | RequestEncryption::Key(_) => {
            Err(Refusal::new(Reason::InvalidHeaderValue)
                .message("The signature writes under the encryption scope in ses; send no other.")
                .detail(Detail::HeaderName, "x-ms-encryption-scope"))
        }
    }
}

/// The precondition of an operation that writes content or metadata of a blob.
const fn of_write(operation: &mut Operation) -> Option<&mut Precondition> {
    use Operation as O;
    match operation {
        O::PutBlobFromUrl(put) => Some(&mut put.precondition),
        O::CopyBlob(copy) => Some(&mut copy.precondition),
        O::PutBlob { precondition, .. }
        | O::PutBlockList { precondition, .. }
        | O::PutBlock { precondition, .. }
        | O::PutBlockFromUrl { precondition, .. }
        | O::AppendBlock { precondition, .. }
        | O::AppendBlockFromUrl { precondition, .. }
        | O::PutPage { precondition, .. }
        | O::PutPageFromUrl { precondition, .. }
        | O::SetBlobMetadata { precondition, .. }
        | O::SnapshotBlob { precondition, .. } => Some(precondition),
        O::GetAccountInformation
        | O::GetServiceProperties
        | O::SetServiceProperties { .. }
        | O::GetUserDelegationKey { .. }
        | O::GetServiceStats
        | O::ListContainers(_)
        | O::CreateContainer { .. }
        | O::GetContainer { .. }
        | O::GetContainerAcl { .. }
        | O::SetContainerAcl { .. }
        | O::SetContainerMetadata { .. }
        | O::DeleteContainer { .. }
        | O::RestoreContainer { .. }
        | O::LeaseContainer { .. }
        | O::ListBlobs(_)
        | O::SetPageProperties { .. }
        | O::GetPageRanges { .. }
        | O::SealBlob { .. }
        | O::AbortCopy { .. }
        | O::GetBlockList { .. }
        | O::GetBlob { .. }
        | O::GetBlobProperties { .. }
        | O::SetBlobProperties { .. }
        | O::GetBlobMetadata { .. }
        | O::SetBlobTier { .. }
        | O::UndeleteBlob { .. }
        | O::LeaseBlob { .. }
        | O::GetBlobTags { .. }
        | O::SetBlobTags { .. }
        | O::FindBlobs(_)
        | O::Batch(_)
        | O::DeleteBlob { .. } => None,
    }
}

#[cfg(test)]
mod tests;
