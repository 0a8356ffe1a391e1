//! Decides about users of an account and holders of temporary keys. Looks up whether they own the
//! container, and notes them as the owners of containers and blobs that they make.

use crate::auth::Action;
use crate::auth::Scope;
use crate::frontend::access::actions::action;
use crate::frontend::access::besides;
use crate::frontend::access::permit::scope_of;
use crate::frontend::access::user_caller::UserCaller;
use crate::frontend::accounts::Account;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::UploadOperation;
use crate::types::ContainerName;

/// Looks up whether the sender owns the container of an operation, and notes the sender as the
/// owner of what the operation makes. Returns whether the sender may do it.
///
/// # Errors
/// `ContainerNotFound`, and the index's.
pub(crate) async fn settle(
    front: &FrontEnd,
    (account, address): (&Account, &Address),
    caller: &mut UserCaller,
    operation: &mut Operation,
) -> Result<bool, Refusal> {
    let (action, scope) = (action(operation), scope_of(account, address));
    let mut wanted = besides::demanded(operation).chain(besides::optional(operation));
    let has_role = wanted.all(|action| caller.principal.permits(action, scope).is_ok());
    drop(wanted);
    if let Some(user) = caller.user.clone() {
        own(operation, &user.canonical);
        if !has_role {
            show_own(operation, &user.canonical);
            if !caller.may_always(action)
                && let Some(container) = &address.container
            {
                look_up(front, account, caller, container).await?;
            }
        }
        if let Some(source) = operation.named_source() {
            let container = &source.path.container;
            let scope = Scope { container: Some(container.as_str()), ..scope };
            let rights = [Action::ReadBlob, Action::ReadTags];
            if rights.into_iter().any(|right| caller.permits(right, scope).is_err()) {
                look_up(front, account, caller, container).await?;
            }
        }
    }
    Ok(besides::user_permits(caller, operation, scope).is_ok())
}

/// Notes whether the sender owns a container.
async fn look_up(
    front: &FrontEnd,
    account: &Account,
    caller: &mut UserCaller,
    container: &ContainerName,
) -> Result<(), Refusal> {
    // A missing container gets its own error. Names are not secret from users: Create Container
    // reveals which are taken.
    let record = lookup::container(&front.rows, account, container).await?;
    let own = caller.user.as_ref().map(|user| user.canonical.as_str());
    if own.is_some() && record.owner() == own {
        caller.owned.push(container.clone());
    }
    Ok(())
}

/// Notes the owner of what an operation makes.
fn own(operation: &mut Operation, owner: &str) {
    let object = match operation {
        Operation::Container(ContainerOperation::CreateContainer { settings, .. }) => {
            settings.owner = Some(owner.to_owned());
            return;
        }
        Operation::Content(ContentOperation::PutBlob { object, .. }) => {
            object.get_or_insert_default()
        }
        Operation::Content(ContentOperation::CopyNamed(copy)) => &mut copy.object,
        Operation::Upload(UploadOperation::Create(create)) => create.object.get_or_insert_default(),
        Operation::Account(_)
        | Operation::Container(_)
        | Operation::Content(_)
        | Operation::Blob(_)
        | Operation::Upload(_) => return,
    };
    object.owner = Some(owner.to_owned());
}

/// Restricts a list of containers to those that the sender owns.
fn show_own(operation: &mut Operation, owner: &str) {
    if let Operation::Account(AccountOperation::ListContainers(list)) = operation {
        list.owner = Some(owner.to_owned());
    }
}
