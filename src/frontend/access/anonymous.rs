//! Requests that nobody signed.
//!
//! Source: "Configure anonymous read access for containers and blobs".

use crate::auth::Exposure;
use crate::frontend::accounts::Account;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::PublicAccess;

/// Lets a stranger's request in when its container is open far enough. `wanted` is `None` for a
/// request that makes no sense, or that is never open; `stranger` is how the dialect refuses
/// strangers.
///
/// # Errors
/// `PublicAccessNotPermitted` when the account's switch is off, else what `stranger` returns: the
/// same for what is closed and for what does not exist.
pub(crate) async fn permit(
    front: &FrontEnd,
    account: &Account,
    (address, wanted): (&Address, Option<Exposure>),
    stranger: impl Fn() -> Refusal,
) -> Result<(), Refusal> {
    let (Some(wanted), Some(container)) = (wanted, &address.container) else {
        return Err(stranger());
    };
    if !account.anonymous {
        return Err(Reason::PublicAccessNotPermitted.into());
    }
    match lookup::container(&front.rows, account, container).await {
        Ok(record) if is_open(record.public_access, wanted) => Ok(()),
        Ok(_) => Err(stranger()),
        Err(error) if error.reason == Reason::ContainerNotFound => Err(stranger()),
        Err(error) => Err(error),
    }
}

const fn is_open(access: PublicAccess, wanted: Exposure) -> bool {
    match (access, wanted) {
        (PublicAccess::Container, Exposure::Blob | Exposure::Container)
        | (PublicAccess::Blob, Exposure::Blob) => true,
        (PublicAccess::Blob, Exposure::Container) | (PublicAccess::Private, _) => false,
    }
}
