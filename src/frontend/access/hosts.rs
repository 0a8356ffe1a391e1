//! Checks of the host and the scheme of a request, DNS rebinding included.

use http::request::Parts;

use crate::frontend::accounts::Account;
use crate::frontend::state::FrontEnd;
use crate::protocol::HostError;
use crate::protocol::host;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::Peer;

/// Checks what every request must satisfy: a valid host, and https when only https is served.
///
/// # Errors
/// `MissingRequiredHeader`, `InvalidHeaderValue`, `AccountRequiresHttps`; all 400.
pub(crate) fn is_acceptable(front: &FrontEnd, head: &Parts, peer: Peer) -> Result<(), Refusal> {
    let host = host::host(head).map_err(|error| {
        let code = match error {
            HostError::Missing => Reason::MissingRequiredHeader,
            HostError::Repeated | HostError::Malformed | HostError::Conflict => {
                Reason::InvalidHeaderValue
            }
        };
        let reason = error.to_string();
        Refusal::new(code).detail(Detail::HeaderName, "Host").detail(Detail::Explanation, reason)
    })?;
    if front.config.https_only && !peer.secure {
        let served = format!("This address serves https only. Use https://{host}.");
        return Err(Refusal::new(Reason::AccountRequiresHttps).detail(Detail::Explanation, served));
    }
    Ok(())
}

/// Refuses unknown host names for an account with the well-known development key. Any web page can
/// sign for that account, and DNS rebinding can lead the page's host name here.
///
/// # Errors
/// `AuthorizationFailure`; the message says what to do.
pub(crate) fn may_name(front: &FrontEnd, head: &Parts, account: &Account) -> Result<(), Refusal> {
    if !account.keys.are_well_known() {
        return Ok(());
    }
    let host = host::host(head).unwrap_or_default();
    if front.config.known_hosts.know(host) {
        return Ok(());
    }
    let name = host::name(host);
    Err(Refusal::new(Reason::AuthorizationFailure).message(format!(
        "Account {} has the well-known development key and is not served under the host name '{name}', because a web page \
         could use it by DNS rebinding. Start the server with --allow-host {name} (or BLOCKYARD_ALLOW_HOST={name}, or '*' for \
         every name), or use an IP address or localhost.",
        account.name
    )))
}
