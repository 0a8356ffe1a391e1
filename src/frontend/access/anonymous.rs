//! Requests that nobody signed.
//!
//! Source: "Configure anonymous read access for containers and blobs"; the refusals are those the
//! service gives.

use crate::auth::Exposure;
use crate::auth::Need;
use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure::Address;
use crate::protocol::azure::ServiceVersion;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::PublicAccess;

/// From here on the service asks a stranger to sign in; before, it says that there is nothing.
const CHALLENGED_SINCE: ServiceVersion = ServiceVersion::new(2019, 12, 12);

/// Lets a stranger's request in when its container is open far enough. `need` is `None` for a
/// request that makes no sense, `version` what the client states itself.
///
/// # Errors
/// `PublicAccessNotPermitted` when the account's switch is off, else `NoAuthenticationInformation`
/// or, for old versions, `ResourceNotFound`: the same for what is closed and for what does not
/// exist.
pub(super) async fn permit(
    front: &FrontEnd,
    account: &Account,
    address: &Address,
    need: Option<&Need>,
    version: Option<ServiceVersion>,
) -> Result<(), Refusal> {
    let wanted = need.and_then(|need| need.anonymous);
    let (Some(wanted), Some(container)) = (wanted, &address.container) else {
        return Err(stranger(version));
    };
    if !account.anonymous {
        return Err(Reason::PublicAccessNotPermitted.into());
    }
    match lookup::container(&front.rows, account, container).await {
        Ok(record) if is_open(record.public_access, wanted) => Ok(()),
        Ok(_) => Err(stranger(version)),
        Err(error) if error.reason == Reason::ContainerNotFound => Err(stranger(version)),
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

fn stranger(version: Option<ServiceVersion>) -> Refusal {
    if version.is_some_and(|version| version >= CHALLENGED_SINCE) {
        return errors::from_auth(&crate::auth::Error::Missing);
    }
    Reason::ResourceNotFound.into()
}
