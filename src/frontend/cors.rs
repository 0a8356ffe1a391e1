//! Cross-origin requests: preflights, which are not signed, and the headers of answers to browsers.

use std::sync::Arc;

use http::HeaderValue;
use http::Response;

use crate::frontend::access::hosts;
use crate::frontend::accounts::Account;
use crate::frontend::body::ResponseBody;
use crate::frontend::dialect::Arrival;
use crate::frontend::errors;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::wire::cors;

/// The account that a request names, signed or not.
fn account(front: &FrontEnd, arrival: Arrival<'_>) -> Result<Arc<Account>, Refusal> {
    let address = arrival.dialect.address(arrival.head)?;
    // As for an account without rules: who may not know it learns nothing of it.
    let found = front.accounts.find(&address.account);
    let found = found.map_err(|unread| errors::unread_account(&address.account, &unread))?;
    let account = found.ok_or_else(|| Refusal::from(Reason::CorsPreflightFailure))?;
    hosts::may_name(front, arrival.head, &account)?;
    Ok(account)
}

/// Answers a preflight request.
pub(crate) fn preflight(front: &FrontEnd, arrival: Arrival<'_>) -> Result<Reply, Refusal> {
    let account = account(front, arrival)?;
    cors::preflight(&arrival.head.headers, &account.properties.cors).map(Reply::Preflight)
}

/// Adds what the account's rules say to an answer.
pub(crate) fn decorate(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let head = arrival.head;
    if !head.headers.contains_key(http::header::ORIGIN) || head.method == http::Method::OPTIONS {
        return response;
    }
    let Ok(account) = account(front, arrival) else { return response };
    let rules = &account.properties.cors;
    for (name, value) in cors::actual(&head.headers, head.method.as_str(), rules) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
