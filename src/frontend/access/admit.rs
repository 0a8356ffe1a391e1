//! Lets requests in: room for them first, then the checks of their dialect.

use crate::frontend::access::admitted::Admitted;
use crate::frontend::access::admitted::Told;
use crate::frontend::access::hosts;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::admit::admit_at;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Detail;
use crate::protocol::model::Refusal;

/// Lets a request in when there is room: finds the account, verifies who sends it, parses it, and
/// checks that they may.
///
/// # Errors
/// The refusal of the first thing wrong, in the order of the dialect.
pub(crate) async fn admit(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    told: Told<'_, '_>,
) -> Result<Admitted, Refusal> {
    let refused = match let_in(front, arrival, told).await {
        Err(refusal) if refusal.asks_for_authentication() => refusal,
        settled => return settled,
    };
    match front.tokens.challenge() {
        Some(challenge) => Err(refused.detail(Detail::Challenge, challenge)),
        None => Err(refused),
    }
}

async fn let_in(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    told: Told<'_, '_>,
) -> Result<Admitted, Refusal> {
    let address = arrival.dialect.address(arrival.head)?;
    let known = front.accounts.get(&address.account);
    if let Some(account) = &known {
        hosts::may_name(front, arrival.head, account)?;
    }
    // Before anything is believed of it: whoever claims an account's name takes of that account's
    // share alone.
    let mut pass =
        front.load.gate.enter(known.map_or(UNKNOWN_ACCOUNT, |account| account.id)).await?;
    let admitted = admit_at(front, arrival, &address, told).await?;
    if !admitted.authenticated {
        pass.open()?;
    }
    Ok(Admitted { pass: Some(pass), ..admitted })
}
