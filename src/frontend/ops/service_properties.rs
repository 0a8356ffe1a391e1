//! Get and Set Blob Service Properties.

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::dialect::website::CONTAINER;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::ops::containers;
use crate::frontend::state::FrontEnd;
use crate::index::AccountChange;
use crate::index::UpdateAccount;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::ContainerSettings;
use crate::types::ContainerName;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::ServicePropertiesChange;

/// Get Blob Service Properties, from the cached account: this process renews the cache with each
/// change.
pub(crate) fn get(account: &Account) -> Reply {
    let properties = Box::new(account.properties.clone());
    Reply::ServiceProperties { properties, permanent_delete: account.permanent_delete }
}

/// Set Blob Service Properties: commits the change, then renews the cached account.
pub(crate) async fn set(
    front: &FrontEnd,
    account: &Account,
    change: Box<ServicePropertiesChange>,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    if matches!(change.website, Some(Some(_))) {
        make_web_container(front, account).await?;
    }
    let change = AccountChange::Properties(change);
    let write = UpdateAccount { name: account.name.clone(), change };
    let from_index = |error| errors::from_index(&error, Subject::Container);
    let router = &front.rows.router;
    // A client that disconnects in between must not leave the old account served.
    let unless_ended = front.accounts.doubt_unless_ended(router, &account.name);
    let changed = commit::commit_holding(&front.rows, write, memory).await;
    let changed = front.accounts.refresh_after(router, &account.name, changed).await;
    unless_ended.ended();
    changed.map_err(from_index)?;
    Ok(Reply::ServicePropertiesSet)
}

/// Creates `$web`, if needed, before a static website is enabled.
async fn make_web_container(front: &FrontEnd, account: &Account) -> Result<(), Refusal> {
    let name = ContainerName::new(CONTAINER).map_err(|_| Reason::InternalError)?;
    let new = containers::NewContainer {
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        settings: ContainerSettings::default(),
    };
    match containers::create(front, account, name, new).await {
        Err(error) if error.reason != Reason::ContainerAlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
