//! The order in which a request is identified, permitted and parsed. Each dialect has its own
//! order, because clients can observe it in refusals.
//!
//! Azure identifies the sender, then parses, then permits the operation. Anonymous callers get no
//! parse errors: they would reveal what the caller may not access. A `Foreign` dialect permits
//! before it parses.
//!
//! Every dialect checks permission for the parsed operation at the end, whatever was checked
//! before.

use std::sync::Arc;

use crate::env::boxed;
use crate::frontend::access::actions::action;
use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::admitted::AdmissionNotes;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::access::anonymous;
use crate::frontend::access::anonymous::AnonymousRead;
use crate::frontend::access::anonymous::Opened;
use crate::frontend::access::anonymous::only_lists;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::keys::check_key_is_safe;
use crate::frontend::access::permit::Identified;
use crate::frontend::access::permit::permit;
use crate::frontend::accounts::Account;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::Dialect;
use crate::frontend::dialect::Foreign;
use crate::frontend::dialect::Sender;
use crate::frontend::dialect::backslash::identify_with_backslash;
use crate::frontend::dialect::identify::identify;
use crate::frontend::dialect::s3;
use crate::frontend::dialect::spelling::respelled;
use crate::frontend::errors;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure;
use crate::protocol::azure::ServiceVersion;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Parsed;
use crate::types::Audience;
use crate::types::Peer;

/// The first version in which Azure answers unauthenticated callers with a challenge; before, it
/// answers that the resource does not exist.
const CHALLENGED_SINCE: ServiceVersion = ServiceVersion::new(2019, 12, 12);

/// Admits a request whose address is known. The path of a part of a batch may omit names that are
/// in the batch's path.
///
/// # Errors
/// The refusal of the first check that fails.
pub(in crate::frontend) async fn admit_at(
    front: &FrontEnd,
    request: AddressedRequest<'_>,
    notes: AdmissionNotes<'_, '_>,
) -> Result<Admitted, Refusal> {
    match request.arrival.dialect {
        Dialect::Azure(_) => azure(front, request, notes).await,
        Dialect::S3(settings) => boxed(|| s3::admit::admit(front, settings, request, notes)).await,
        Dialect::Foreign(dialect) => boxed(|| foreign(front, dialect, request, notes)).await,
    }
}

async fn azure(
    front: &FrontEnd,
    request: AddressedRequest<'_>,
    notes: AdmissionNotes<'_, '_>,
) -> Result<Admitted, Refusal> {
    let AddressedRequest { arrival: Arrival { head, peer, .. }, address } = request;
    let context = azure::Context::from_head(head)?;
    let account = account(front, address)?;
    let (caller, as_sent) = match &address.blob_as_sent {
        Some(name) => boxed(|| identify_with_backslash(front, request, (&account, name))).await?,
        None => (identify(front, request, &account).await?, None),
    };
    let address = as_sent.as_ref().unwrap_or(address);
    *notes.meant = as_sent.clone().map(Box::new);
    if front.audit_log.is_on() {
        *notes.principal = caller.named();
    }
    let mut parsed = azure::parse(head, address, &context);
    if let Some(metadata) = parsed.as_mut().ok().and_then(|p| p.operation_mut().metadata_mut()) {
        let given = std::mem::take(metadata);
        *metadata = respelled(given, &head.extensions);
    }
    let mut not_open = None;
    if let Some(audience) = caller.audience() {
        let exposure = parsed.as_ref().ok().map(Parsed::operation).map(action);
        let exposure = exposure.and_then(|action| action.exposure());
        let stated = head.headers.contains_key("x-ms-version").then_some(context.version);
        let read = AnonymousRead { account: &account, address, exposure, audience };
        let refused = || unauthenticated(stated);
        match anonymous::permit(front, read, refused).await? {
            Opened::ByContainer => {}
            Opened::ListOnly if parsed.as_ref().is_ok_and(|p| only_lists(p.operation())) => {}
            Opened::ListOnly => return Err(refused()),
            Opened::ByBlob => {
                not_open = Some(demand_open(parsed.as_mut().ok(), audience, refused)?);
            }
        }
    }
    let parsed = parsed?;
    azure::check_key_is_safe(&head.headers, peer)?;
    notes.echo.operation(parsed.operation(), address, peer.scheme());
    let admitted = settle(front, Identified { account, caller, address }, parsed, peer)?;
    Ok(Admitted { not_open, ..admitted })
}

/// Makes an operation fail unless the blob's access control list permits `audience`. Returns the
/// refusal for that case.
///
/// # Errors
/// The same refusal, for an operation that no blob's access control list permits.
pub(super) fn demand_open(
    parsed: Option<&mut Parsed>,
    audience: Audience,
    refuse: impl Fn() -> Refusal,
) -> Result<Refusal, Refusal> {
    let permits = |parsed: &mut Parsed| anonymous::demand_open(parsed.operation_mut(), audience);
    if parsed.is_some_and(permits) { Ok(refuse()) } else { Err(refuse()) }
}

/// Azure's refusal of callers that do not authenticate.
fn unauthenticated(version: Option<ServiceVersion>) -> Refusal {
    if version.is_some_and(|version| version >= CHALLENGED_SINCE) {
        return errors::from_auth(&crate::auth::Error::Missing);
    }
    Reason::ResourceNotFound.into()
}

async fn foreign(
    front: &FrontEnd,
    dialect: &dyn Foreign,
    request: AddressedRequest<'_>,
    notes: AdmissionNotes<'_, '_>,
) -> Result<Admitted, Refusal> {
    let AddressedRequest { arrival: Arrival { head, peer, .. }, address } = request;
    let account = account(front, address)?;
    let caller = match dialect.identify(head, address)? {
        Sender::Owner => Caller::Key,
        Sender::Anyone => Caller::Anyone,
    };
    if front.audit_log.is_on() {
        *notes.principal = caller.named();
    }
    let wanted = dialect.action(head, address)?.exposure();
    let audience = Audience::Everyone;
    let read = AnonymousRead { account: &account, address, exposure: wanted, audience };
    permit_anonymous(front, &caller, read).await?;
    let parsed = dialect.parse(head, address)?;
    let exposure = action(parsed.operation()).exposure();
    if exposure != wanted {
        permit_anonymous(front, &caller, AnonymousRead { exposure, ..read }).await?;
    }
    notes.echo.operation(parsed.operation(), address, peer.scheme());
    settle(front, Identified { account, caller, address }, parsed, peer)
}

/// Checks the request of a caller that is anonymous; other callers are checked in [`settle`].
async fn permit_anonymous(
    front: &FrontEnd,
    caller: &Caller,
    read: AnonymousRead<'_>,
) -> Result<(), Refusal> {
    let Caller::Anyone = caller else { return Ok(()) };
    let refused = || errors::from_auth(&crate::auth::Error::Missing);
    match anonymous::permit(front, read, refused).await? {
        Opened::ByContainer => Ok(()),
        Opened::ListOnly | Opened::ByBlob => Err(refused()),
    }
}

/// The account. A refusal may reveal that it does not exist: in Azure a host name without an
/// account does not resolve.
fn account(front: &FrontEnd, address: &Address) -> Result<Arc<Account>, Refusal> {
    let known = front.accounts.find(&address.account);
    let known = known.map_err(|unread| errors::unread_account(&address.account, &unread))?;
    known.ok_or_else(|| errors::unknown_account(&address.account))
}

/// The last step of all dialects: checks a key that came with the operation and permission for the
/// operation, and counts it.
pub(super) fn settle(
    front: &FrontEnd,
    request: Identified<'_>,
    parsed: Parsed,
    peer: Peer,
) -> Result<Admitted, Refusal> {
    check_key_is_safe(parsed.operation(), peer)?;
    let admitted = permit(request, parsed)?;
    front.load.rates.count(admitted.account.id, || front.env.clock.monotonic())?;
    Ok(admitted)
}
