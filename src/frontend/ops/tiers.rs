//! The access tiers that requests name.

use crate::frontend::accounts::Account;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::UploadOperation;
use crate::types::AccessTier;

/// Refuses a tier that blobs of the account cannot have. Source: "Set Blob Tier".
///
/// # Errors
/// `BlobAccessTierNotSupportedForAccountType`.
pub(crate) fn check(account: &Account, operation: &Operation) -> Result<(), Refusal> {
    match named(operation) {
        Some(tier) if !account.account_type.tiers().has(tier) => {
            Err(Reason::BlobAccessTierNotSupportedForAccountType.into())
        }
        Some(_) | None => Ok(()),
    }
}

/// The tier that a request names.
fn named(operation: &Operation) -> Option<AccessTier> {
    if let Operation::Content(
        ContentOperation::PutBlob { tier, .. } | ContentOperation::PutBlockList { tier, .. },
    ) = operation
    {
        *tier
    } else if let Operation::Content(ContentOperation::PutBlobFromUrl(put)) = operation {
        put.tier
    } else if let Operation::Content(ContentOperation::CopyBlob(copy)) = operation {
        copy.tier
    } else if let Operation::Content(ContentOperation::CopyNamed(copy)) = operation {
        copy.tier
    } else if let Operation::Blob(BlobOperation::SetBlobTier { tier, .. }) = operation {
        Some(*tier)
    } else if let Operation::Upload(UploadOperation::Create(create)) = operation {
        create.tier
    } else {
        None
    }
}
