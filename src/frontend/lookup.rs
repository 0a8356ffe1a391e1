//! From the names in a request to rows of the index.

use crate::frontend::accounts::Account;
use crate::frontend::encrypt::claim;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::state::FrontEnd;
use crate::index::ContainerRecord;
use crate::index::Guard;
use crate::index::ReadContainer;
use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobPath;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::ContainerName;

/// Looks a container up.
pub(crate) async fn container(
    front: &FrontEnd,
    account: &Account,
    name: &ContainerName,
) -> Result<ContainerRecord, Refusal> {
    let found = front.router.ask(ReadContainer(account.id, name.clone())).await;
    found.map_err(|error| errors::from_index(&error, Subject::Container))
}

/// The key of a blob; its container must exist.
pub(crate) async fn blob_key(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
) -> Result<BlobKey, Refusal> {
    let record = container(front, account, &path.container).await?;
    Ok(key_in(account, &record, path.blob))
}

/// [`blob_key`] of a request that makes content: its encryption is settled with the container.
pub(crate) async fn content_key(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    precondition: &mut Precondition,
) -> Result<BlobKey, Refusal> {
    let record = container(front, account, &path.container).await?;
    claim::settle(&record, precondition)?;
    Ok(key_in(account, &record, path.blob))
}

fn key_in(account: &Account, container: &ContainerRecord, name: BlobName) -> BlobKey {
    let (account, id, collation) = (account.id, container.id, container.collation);
    BlobKey { account, container: id, collation, name }
}

/// What the index checks before it answers or changes anything.
pub(crate) fn guard(precondition: Precondition) -> Guard {
    let encryption = claim::claim(&precondition.encryption);
    Guard {
        conditions: precondition.conditions,
        lease: precondition.lease,
        if_tags: precondition.if_tags,
        encryption,
    }
}
