//! Operations on a container.

use crate::frontend::accounts::Account;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup::ContainerTarget;
use crate::frontend::ops::acl;
use crate::frontend::ops::acl::NewAcl;
use crate::frontend::ops::containers;
use crate::frontend::ops::containers::NewContainer;
use crate::frontend::ops::deletions;
use crate::frontend::ops::grants;
use crate::frontend::ops::leases;
use crate::frontend::ops::listing;
use crate::frontend::ops::settings;
use crate::frontend::ops::versions;
use crate::frontend::state::FrontEnd;
use crate::index::History;
use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::ContainerOperation;

/// Carries out an operation on a container.
pub(super) async fn carry_out(
    front: &FrontEnd,
    account: &Account,
    operation: ContainerOperation,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    use ContainerOperation as O;
    let container = |name, precondition| ContainerTarget { account, name, precondition };
    match operation {
        O::CreateContainer { container, metadata, public_access, encryption_scope, settings } => {
            let new = NewContainer { metadata, public_access, encryption_scope, settings };
            containers::create(front, account, container, new).await
        }
        O::GetContainer { container: name, precondition } => {
            containers::get(front, &container(name, precondition)).await
        }
        O::GetContainerAcl { container: name, precondition } => {
            acl::get(front, &container(name, precondition)).await
        }
        O::SetContainerAcl { container: name, precondition, public_access, policies } => {
            let new = NewAcl { public_access, policies };
            acl::set(front, container(name, precondition), new, memory).await
        }
        O::GetContainerGrants { container } => {
            grants::of_container(front, account, &container).await
        }
        O::SetContainerGrants { container: name, acl } => {
            let container = container(name, Precondition::default());
            grants::set_of_container(front, container, acl).await
        }
        O::SetContainerMetadata { container: name, precondition, metadata } => {
            containers::set_metadata(front, container(name, precondition), metadata).await
        }
        O::DeleteContainer { container: name, precondition } => {
            containers::delete(front, container(name, precondition)).await
        }
        O::DeleteIfEmpty { container: name, precondition } => {
            containers::delete_if_empty(front, container(name, precondition), History::All).await
        }
        O::RestoreContainer { container, deleted, since } => {
            versions::restore(front, account, container, (deleted, since)).await
        }
        O::LeaseContainer { container: name, precondition, action } => {
            leases::container(front, container(name, precondition), action).await
        }
        O::Setting(setting) => settings::carry_out(front, account, setting, memory).await,
        O::ListBlobs(list) => listing::blobs(front, account, list).await,
        O::DeleteBlobs(deletions) => deletions::delete(front, account, deletions, memory).await,
    }
}
