//! Requests of anonymous callers.
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

/// A request of an anonymous caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnonymousRead<'a> {
    /// The account that it is about.
    pub(crate) account: &'a Account,
    /// What it is about.
    pub(crate) address: &'a Address,
    /// The public access that it needs; `None` for a request that is malformed, or that public
    /// access never permits.
    pub(crate) exposure: Option<Exposure>,
}

/// Admits a request of an anonymous caller when the public access of its container permits it.
/// `refuse` is how the dialect refuses anonymous callers.
///
/// # Errors
/// `PublicAccessNotPermitted` when the account's switch is off, else what `refuse` returns: the
/// same for a container without public access and for one that does not exist.
pub(crate) async fn permit(
    front: &FrontEnd,
    AnonymousRead { account, address, exposure }: AnonymousRead<'_>,
    refuse: impl Fn() -> Refusal,
) -> Result<(), Refusal> {
    let (Some(wanted), Some(container)) = (exposure, &address.container) else {
        return Err(refuse());
    };
    if !account.anonymous {
        return Err(Reason::PublicAccessNotPermitted.into());
    }
    match lookup::container(&front.rows, account, container).await {
        Ok(record) if is_open(record.public_access, wanted) => Ok(()),
        Ok(_) => Err(refuse()),
        Err(error) if error.reason == Reason::ContainerNotFound => Err(refuse()),
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
