//! The order in which a request is identified, permitted and parsed: each dialect has its own,
//! because it shows in what a refusal tells.
//!
//! Azure identifies the sender, then parses, then permits the operation. Anonymous callers get no
//! parse errors: they would reveal what the caller may not access. A `Foreign` dialect permits
//! before it parses.
//!
//! In all of them the operation that was parsed is permitted in the end, whatever was checked
//! before.

use std::sync::Arc;

use crate::auth::Exposure;
use crate::env::boxed;
use crate::frontend::access::actions::action;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::access::admitted::Told;
use crate::frontend::access::anonymous;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::permit::permit;
use crate::frontend::accounts::Account;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::Dialect;
use crate::frontend::dialect::Foreign;
use crate::frontend::dialect::Sender;
use crate::frontend::dialect::identify::identify;
use crate::frontend::errors;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure;
use crate::protocol::azure::ServiceVersion;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Parsed;

/// From here on Azure asks a stranger to sign in; before, it says that there is nothing.
const CHALLENGED_SINCE: ServiceVersion = ServiceVersion::new(2019, 12, 12);

/// Lets in a request whose address is known: a part of a batch may leave out of its path what the
/// batch has.
///
/// # Errors
/// The refusal of the first thing wrong.
pub(in crate::frontend) async fn admit_at(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    address: &Address,
    told: Told<'_, '_>,
) -> Result<Admitted, Refusal> {
    match arrival.dialect {
        Dialect::Azure(_) => azure(front, arrival, address, told).await,
        Dialect::Foreign(dialect) => {
            boxed(|| foreign(front, (dialect, arrival), address, told)).await
        }
    }
}

async fn azure(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    address: &Address,
    told: Told<'_, '_>,
) -> Result<Admitted, Refusal> {
    let Arrival { head, peer, .. } = arrival;
    let context = azure::Context::from_head(head)?;
    let account = account(front, address)?;
    let caller = identify(front, (head, peer), address, &account).await?;
    if front.audit_log.is_on() {
        *told.1 = caller.named();
    }
    let parsed = azure::parse(head, address, &context);
    if let Caller::Anyone = caller {
        let exposure = parsed.as_ref().ok().map(Parsed::operation).map(action);
        let exposure = exposure.and_then(|action| action.exposure());
        let stated = head.headers.contains_key("x-ms-version").then_some(context.version);
        anonymous::permit(front, &account, (address, exposure), || stranger(stated)).await?;
    }
    let parsed = parsed?;
    azure::check_key_is_safe(&head.headers, peer)?;
    settle(front, arrival, (account, caller, address), (parsed, told))
}

/// How Azure refuses those who do not say who they are.
fn stranger(version: Option<ServiceVersion>) -> Refusal {
    if version.is_some_and(|version| version >= CHALLENGED_SINCE) {
        return errors::from_auth(&crate::auth::Error::Missing);
    }
    Reason::ResourceNotFound.into()
}

async fn foreign(
    front: &FrontEnd,
    (dialect, arrival): (&dyn Foreign, Arrival<'_>),
    address: &Address,
    told: Told<'_, '_>,
) -> Result<Admitted, Refusal> {
    let head = arrival.head;
    let account = account(front, address)?;
    let caller = match dialect.identify(head, address)? {
        Sender::Owner => Caller::Key,
        Sender::Anyone => Caller::Anyone,
    };
    if front.audit_log.is_on() {
        *told.1 = caller.named();
    }
    let wanted = dialect.action(head, address)?.exposure();
    permit_stranger(front, (&caller, &account), (address, wanted)).await?;
    let parsed = dialect.parse(head, address)?;
    let exposure = action(parsed.operation()).exposure();
    if exposure != wanted {
        permit_stranger(front, (&caller, &account), (address, exposure)).await?;
    }
    settle(front, arrival, (account, caller, address), (parsed, told))
}

async fn permit_stranger(
    front: &FrontEnd,
    (caller, account): (&Caller, &Account),
    what: (&Address, Option<Exposure>),
) -> Result<(), Refusal> {
    let Caller::Anyone = caller else { return Ok(()) };
    anonymous::permit(front, account, what, || errors::from_auth(&crate::auth::Error::Missing))
        .await
}

/// The account. That there is none is told plainly: a host name of Azure that names no account does
/// not resolve either.
fn account(front: &FrontEnd, address: &Address) -> Result<Arc<Account>, Refusal> {
    let known = front.accounts.find(&address.account);
    let known = known.map_err(|unread| errors::unread_account(&address.account, &unread))?;
    known.ok_or_else(|| errors::unknown_account(&address.account))
}

/// What all dialects do in the end: the operation is permitted and counted.
fn settle(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    (account, caller, address): (Arc<Account>, Caller, &Address),
    (parsed, (echo, _)): (Parsed, Told<'_, '_>),
) -> Result<Admitted, Refusal> {
    let (operation, document) = parsed.into_parts();
    echo.operation(&operation, address, arrival.peer.scheme());
    let admitted = permit(account, caller, (operation, document), address)?;
    front.load.rates.count(admitted.account.id, || front.env.clock.monotonic())?;
    Ok(admitted)
}
