//! Operations on an account.

use crate::frontend::accounts::Account;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::ops::delegation;
use crate::frontend::ops::delegation::KeyRequest;
use crate::frontend::ops::find;
use crate::frontend::ops::listing;
use crate::frontend::ops::service_properties;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::AccountOperation;

/// Carries out an operation on an account.
pub(super) async fn carry_out(
    front: &FrontEnd,
    account: &Account,
    operation: AccountOperation,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    use AccountOperation as O;
    match operation {
        O::GetAccountInformation => Ok(Reply::AccountInformation(account.account_type)),
        O::GetServiceProperties => Ok(service_properties::get(account)),
        O::SetServiceProperties { change } => {
            service_properties::set(front, account, change, memory).await
        }
        O::GetUserDelegationKey { wanted, version, holder } => {
            delegation::get(front, account, KeyRequest { holder, version, wanted })
        }
        O::GetServiceStats => Ok(Reply::ServiceStats { last_sync: front.env.clock.now() }),
        O::ListContainers(list) => listing::containers(front, account, list).await,
        O::Batch(_) => {
            Err(Refusal::new(Reason::InvalidInput).message("A part of a batch cannot be a batch."))
        }
        O::FindBlobs(wanted) => find::find(front, account, wanted).await,
    }
}
