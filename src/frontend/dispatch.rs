//! Maps an operation to the function that carries it out: an exhaustive match for each group of
//! operations. The compiler names the operations that are missing.

mod account;
mod blob;
mod container;
mod content;
mod request_content;
mod upload;

pub(crate) use request_content::RequestContent;

use crate::frontend::accounts::Account;
use crate::frontend::answers::AnswerMemory;
use crate::frontend::body::ResponseBody;
use crate::frontend::errors;
use crate::frontend::ops::Answer;
use crate::frontend::ops::Answered;
use crate::frontend::ops::acl;
use crate::frontend::ops::blocks;
use crate::frontend::ops::grants;
use crate::frontend::ops::listing;
use crate::frontend::ops::tiers;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::UploadOperation;

/// Whether the operation may add rows to a container. True for every operation that is not known to
/// add none.
const fn may_change_blobs(operation: &Operation) -> bool {
    match operation {
        Operation::Account(operation) => may_change_account(operation),
        Operation::Container(operation) => may_change_container(operation),
        Operation::Content(_) => true,
        Operation::Blob(operation) => may_change_blob(operation),
        Operation::Upload(operation) => may_change_upload(operation),
    }
}

const fn may_change_account(operation: &AccountOperation) -> bool {
    use AccountOperation as O;
    !matches!(
        operation,
        O::GetAccountInformation
            | O::GetServiceProperties
            | O::GetServiceStats
            | O::GetUserDelegationKey { .. }
            | O::ListContainers(_)
            | O::FindBlobs(_)
            // Its parts are dispatched one by one.
            | O::Batch(_)
    )
}

const fn may_change_container(operation: &ContainerOperation) -> bool {
    use ContainerOperation as O;
    // Settings are no rows of blobs.
    !matches!(
        operation,
        O::GetContainer { .. }
            | O::GetContainerAcl { .. }
            | O::GetContainerGrants { .. }
            | O::ListBlobs(_)
            | O::Setting(_)
    )
}

const fn may_change_blob(operation: &BlobOperation) -> bool {
    use BlobOperation as O;
    !matches!(
        operation,
        O::GetPageRanges { .. }
            | O::GetBlockList { .. }
            | O::GetBlob { .. }
            | O::QueryBlob { .. }
            | O::GetBlobPart { .. }
            | O::GetBlobProperties { .. }
            | O::GetBlobMetadata { .. }
            | O::GetBlobTags { .. }
            | O::GetBlobGrants { .. }
            | O::GetBlobAttributes { .. }
    )
}

const fn may_change_upload(operation: &UploadOperation) -> bool {
    use UploadOperation as O;
    !matches!(operation, O::ListParts { .. } | O::ListUploads(_))
}

/// Refuses what the account or its sender does not permit, before a document is read.
///
/// # Errors
/// `PublicAccessNotPermitted`, `AuthenticationFailed`.
pub(crate) fn check_before_document(
    account: &Account,
    operation: &Operation,
) -> Result<(), Refusal> {
    if let Operation::Container(ContainerOperation::SetContainerAcl { public_access, .. }) =
        operation
    {
        acl::check_switch(account, *public_access)?;
    }
    if let Operation::Account(AccountOperation::GetUserDelegationKey { holder: None, .. }) =
        operation
    {
        return Err(errors::only_bearer());
    }
    Ok(())
}

/// Carries out one operation.
pub(crate) async fn dispatch(
    front: &FrontEnd,
    requester: Requester<'_>,
    operation: Box<Operation>,
    content: RequestContent<'_>,
) -> Answer {
    // Held from before the look-up of the container until the answer: the purge of a deleted
    // container waits for it. It does not wait for documents.
    let _change = may_change_blobs(&operation).then(|| front.rows.inflight.change());
    let mut memory = match listing::page_memory(&operation) {
        Some(bytes) => {
            Some(AnswerMemory::new(&front.load.answers, requester.payer()).begin(bytes).await?)
        }
        None => None,
    };
    let Answered { reply, stream } = carry_out(front, requester, operation, content).await?;
    if let (Reply::BlockList { .. }, Some(memory)) = (&reply, &mut memory) {
        // Now the length of the list is known.
        memory.shrink(blocks::list_memory(&reply));
    }
    let stream = stream.or_else(|| memory.map(ResponseBody::reserved));
    Ok(Answered { reply, stream })
}

async fn carry_out(
    front: &FrontEnd,
    requester: Requester<'_>,
    operation: Box<Operation>,
    content: RequestContent<'_>,
) -> Answer {
    grants::check(requester.account, &operation)?;
    tiers::check(requester.account, &operation)?;
    let (account, memory) = (requester.account, content.document.unwrap_or_default());
    let reply = match *operation {
        Operation::Account(operation) => {
            account::carry_out(front, account, operation, memory).await
        }
        Operation::Container(operation) => {
            container::carry_out(front, account, operation, memory).await
        }
        Operation::Content(operation) => {
            let content = RequestContent { document: Some(memory), ..content };
            content::carry_out(front, requester, operation, content).await
        }
        Operation::Upload(operation) => {
            let content = RequestContent { document: Some(memory), ..content };
            upload::carry_out(front, requester, operation, content).await
        }
        Operation::Blob(operation) => {
            return blob::carry_out(front, requester, operation, memory).await;
        }
    };
    reply.map(Answered::from)
}
