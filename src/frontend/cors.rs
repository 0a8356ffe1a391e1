//! Cross-origin requests: preflights, which are not signed, and the headers of answers to browsers.
//! The rules are those of the account or of the container, depending on the dialect.

use std::sync::Arc;

use http::HeaderMap;
use http::HeaderValue;
use http::Response;
use http::request::Parts;

use crate::env::boxed;
use crate::frontend::access::hosts;
use crate::frontend::accounts::Account;
use crate::frontend::body::ResponseBody;
use crate::frontend::dialect::Arrival;
use crate::frontend::errors;
use crate::frontend::ops::settings;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::wire::container_cors;
use crate::protocol::wire::cors;
use crate::protocol::wire::cors::CorsHeaders;
use crate::types::CrossOriginRule;
use crate::types::Setting;
use crate::types::SettingKind;

/// The header that names an origin whose pages are permitted.
const ALLOWED_ORIGIN: &str = "access-control-allow-origin";

/// The rules that apply to a request.
enum Rules {
    /// Those of the account.
    Account(Arc<Account>),
    /// Those of the container.
    Container(Vec<CrossOriginRule>),
}

impl Rules {
    fn preflight(&self, head: &HeaderMap) -> Result<CorsHeaders, Refusal> {
        match self {
            Self::Account(account) => cors::preflight(head, &account.properties.cors),
            Self::Container(rules) => container_cors::preflight(head, rules),
        }
    }

    fn actual(&self, head: &HeaderMap, method: &str) -> CorsHeaders {
        match self {
            Self::Account(account) => cors::actual(head, method, &account.properties.cors),
            Self::Container(rules) => container_cors::actual(head, method, rules),
        }
    }
}

/// The rules that apply to a request, signed or not.
async fn rules(front: &FrontEnd, arrival: Arrival<'_>) -> Result<Rules, Refusal> {
    let address = arrival.dialect.address(arrival.head)?;
    // As for an account without rules, so that the answer does not reveal the account.
    let found = front.accounts.find(&address.account);
    let found = found.map_err(|unread| errors::unread_account(&address.account, &unread))?;
    let account = found.ok_or_else(|| Refusal::from(Reason::CorsPreflightFailure))?;
    hosts::may_name(front, arrival.head, &account)?;
    match arrival.dialect.has_rules_of_containers() {
        true => of_container(front, &account, &address).await.map(Rules::Container),
        false => Ok(Rules::Account(account)),
    }
}

/// The rules of a container; none if it does not exist.
async fn of_container(
    front: &FrontEnd,
    account: &Account,
    address: &Address,
) -> Result<Vec<CrossOriginRule>, Refusal> {
    let Some(container) = &address.container else { return Ok(Vec::new()) };
    match settings::read(&front.rows, account, container, SettingKind::Cors).await {
        Ok(Some(Setting::Cors(rules))) => Ok(rules),
        Ok(Some(Setting::Tags(_)) | None) => Ok(Vec::new()),
        Err(error) if error.reason == Reason::ContainerNotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether the rules of a container permit a request from the origin that it names.
pub(crate) async fn permits(
    front: &FrontEnd,
    head: &Parts,
    account: &Account,
    address: &Address,
) -> Result<bool, Refusal> {
    let rules = of_container(front, account, address).await?;
    let found = container_cors::actual(&head.headers, head.method.as_str(), &rules);
    Ok(found.iter().any(|(name, _)| *name == ALLOWED_ORIGIN))
}

/// Answers a preflight request.
pub(crate) async fn preflight(front: &FrontEnd, arrival: Arrival<'_>) -> Result<Reply, Refusal> {
    let rules = rules(front, arrival).await?;
    rules.preflight(&arrival.head.headers).map(Reply::Preflight)
}

/// Adds the headers of the rules to the answer to a browser's request.
pub(crate) async fn decorate(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let head = arrival.head;
    if !head.headers.contains_key(http::header::ORIGIN) || head.method == http::Method::OPTIONS {
        return response;
    }
    let Ok(rules) = boxed(|| rules(front, arrival)).await else { return response };
    for (name, value) in rules.actual(&head.headers, head.method.as_str()) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
