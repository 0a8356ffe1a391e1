//! Requests that a browser may send for a page that is not ours: refused for accounts whose key
//! everybody knows.

use http::request::Parts;

use crate::frontend::accounts::Account;
use crate::frontend::service::FrontEnd;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::HostError;
use crate::protocol::host;
use crate::types::Peer;

/// What must hold of every request before it is looked at: it says which host it is for, and comes
/// by https where that is the only way.
///
/// # Errors
/// `MissingRequiredHeader`, `InvalidHeaderValue`, `AccountRequiresHttps`; all 400.
pub(crate) fn is_acceptable(front: &FrontEnd, head: &Parts, peer: Peer) -> Result<(), Error> {
    host::host(head).map_err(|error| {
        let code = match error {
            HostError::Missing => ErrorCode::MissingRequiredHeader,
            HostError::Repeated | HostError::Malformed | HostError::Conflict => {
                ErrorCode::InvalidHeaderValue
            }
        };
        let reason = error.to_string();
        Error::new(code).detail("HeaderName", "Host").detail("Reason", reason)
    })?;
    if front.config.https_only && !peer.secure {
        return Err(ErrorCode::AccountRequiresHttps.into());
    }
    Ok(())
}

/// An account with the well-known development key is answered under names of this machine,
/// addresses and configured names only: any web page can sign for it, and its owner's name may lead
/// here.
///
/// # Errors
/// `AuthorizationFailure`, with what to do.
pub(crate) fn may_name(front: &FrontEnd, head: &Parts, account: &Account) -> Result<(), Error> {
    if !account.keys.are_well_known() {
        return Ok(());
    }
    let host = host::host(head).unwrap_or_default();
    if front.config.known_hosts.know(host) {
        return Ok(());
    }
    let name = host::name(host);
    Err(Error::new(ErrorCode::AuthorizationFailure).message(format!(
        "Account {} has the well-known development key and is not served under the host name '{name}', because a web page \
         could use it by DNS rebinding. Start the server with --allow-host {name} (or BLOCKYARD_ALLOW_HOST={name}, or '*' for \
         every name), or use an IP address or localhost.",
        account.name
    )))
}
