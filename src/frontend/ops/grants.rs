//! Access control lists of containers and blobs: who may use them without a role in the account.

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::ContainerTarget;
use crate::frontend::ops::blobs;
use crate::frontend::ops::content;
use crate::frontend::state::FrontEnd;
use crate::index::BlobChange;
use crate::index::ContainerChange;
use crate::index::UpdateContainer;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::model::reply::Grants;
use crate::types::Audience;
use crate::types::CannedAcl;
use crate::types::ContainerName;
use crate::types::PublicAccess;

/// The audiences that may list a container.
pub(crate) async fn of_container(
    front: &FrontEnd,
    account: &Account,
    container: &ContainerName,
) -> Result<Reply, Refusal> {
    let record = lookup::container(&front.rows, account, container).await?;
    let (acl, is_open) = (record.acl(), record.public_access == PublicAccess::Container);
    let owner = record.fields.and_then(|fields| fields.owner);
    Ok(Reply::Grants(Some(grants(owner, acl, is_open))))
}

/// The audiences that may read a blob: those of its access control list, and everyone if the
/// container's blobs are public.
pub(crate) async fn of_blob(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
) -> Result<Reply, Refusal> {
    let record = lookup::container(&front.rows, account, &path.container).await?;
    let is_open = match record.public_access {
        PublicAccess::Blob | PublicAccess::Container => true,
        PublicAccess::Private => false,
    };
    let blob = BlobTarget { account, path, precondition: Precondition::default() };
    let object = content::facts(front, blob).await?.object.unwrap_or_default();
    let acl = object.acl.unwrap_or(CannedAcl::Private);
    Ok(Reply::Grants(Some(grants(object.owner, acl, is_open))))
}

fn grants(owner: Option<String>, acl: CannedAcl, is_open: bool) -> Grants {
    let everyone = is_open || acl.opens_to(Audience::Everyone);
    Grants { owner, everyone, authenticated: !everyone && acl.opens_to(Audience::Authenticated) }
}

/// Replaces the list of a container.
pub(crate) async fn set_of_container(
    front: &FrontEnd,
    container: ContainerTarget<'_>,
    acl: CannedAcl,
) -> Result<Reply, Refusal> {
    let ContainerTarget { account, name, precondition } = container;
    let (guard, change) = (lookup::guard(precondition), ContainerChange::Acl(acl));
    let write = UpdateContainer { account: account.id, name, guard, change };
    let answer = commit::commit(&front.rows, write, None).await;
    commit::changed(answer, Subject::Container).map(|_| Reply::Grants(None))
}

/// Replaces the list of a blob.
pub(crate) async fn set_of_blob(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    acl: CannedAcl,
) -> Result<Reply, Refusal> {
    let blob = BlobTarget { account, path, precondition: Precondition::default() };
    blobs::update(front, blob, BlobChange::Acl(acl)).await.map(|_| Reply::Grants(None))
}

/// Refuses an access control list that grants public access in an account that does not permit it.
///
/// # Errors
/// `PublicAccessNotPermitted`.
pub(crate) fn check(account: &Account, operation: &Operation) -> Result<(), Refusal> {
    match new_acl(operation) {
        Some(acl) if acl.is_public() && !account.anonymous => {
            Err(Reason::PublicAccessNotPermitted.into())
        }
        Some(_) | None => Ok(()),
    }
}

/// The access control list that an operation sets.
pub(crate) fn new_acl(operation: &Operation) -> Option<CannedAcl> {
    if let Operation::Content(ContentOperation::PutBlob { object, .. }) = operation {
        object.as_ref()?.acl
    } else if let Operation::Content(ContentOperation::CopyNamed(copy)) = operation {
        copy.object.acl
    } else if let Operation::Upload(UploadOperation::Create(create)) = operation {
        create.object.as_ref()?.acl
    } else if let Operation::Container(ContainerOperation::CreateContainer { settings, .. }) =
        operation
    {
        Some(settings.acl)
    } else if let Operation::Container(ContainerOperation::SetContainerGrants { acl, .. })
    | Operation::Blob(BlobOperation::SetBlobGrants { acl, .. }) = operation
    {
        Some(*acl)
    } else {
        None
    }
}
