//! Admits requests: first admission control, then the checks of the request's dialect.

use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::admitted::AdmissionNotes;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::access::hosts;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::admit::admit_at;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Detail;
use crate::protocol::model::Refusal;

/// Admits a request when a place among the requests is free: finds the account, identifies the
/// sender, parses the request, and checks that the sender is permitted to do it.
///
/// # Errors
/// The refusal of the first check that fails, in the order of the dialect.
pub(crate) async fn admit(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    notes: AdmissionNotes<'_, '_>,
) -> Result<Admitted, Refusal> {
    match let_in(front, arrival, notes).await {
        Err(refusal) => Err(challenged(front, refusal)),
        Ok(admitted) => {
            let not_open = admitted.not_open.map(|refusal| challenged(front, refusal));
            Ok(Admitted { not_open, ..admitted })
        }
    }
}

/// Adds the challenge to a refusal that asks for authentication.
fn challenged(front: &FrontEnd, refusal: Refusal) -> Refusal {
    let asks = refusal.asks_for_authentication();
    match front.tokens.challenge().filter(|_| asks) {
        Some(challenge) => refusal.detail(Detail::Challenge, challenge),
        None => refusal,
    }
}

async fn let_in(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    notes: AdmissionNotes<'_, '_>,
) -> Result<Admitted, Refusal> {
    let address = arrival.dialect.address(arrival.head)?;
    let known = front.accounts.get(&address.account);
    if let Some(account) = &known {
        hosts::may_name(front, arrival.head, account)?;
    }
    // Before the sender is verified: a request that claims an account's name uses only the share of
    // that account.
    let mut pass =
        front.load.gate.enter(known.as_ref().map_or(UNKNOWN_ACCOUNT, |account| account.id)).await?;
    let admitted = admit_at(front, AddressedRequest { arrival, address: &address }, notes).await?;
    if known.is_none() {
        // The account was read while the request waited.
        hosts::may_name(front, arrival.head, &admitted.account)?;
    }
    if !admitted.authenticated {
        pass.open()?;
    }
    Ok(Admitted { pass: Some(pass), ..admitted })
}
