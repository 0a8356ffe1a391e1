//! The order of S3's checks: the account, the signature, the operation, permission.

use std::sync::Arc;

use crate::auth::Overrides;
use crate::frontend::access::actions::action;
use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::admitted::AdmissionNotes;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::access::anonymous;
use crate::frontend::access::anonymous::AnonymousRead;
use crate::frontend::access::anonymous::Opened;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::permit::Identified;
use crate::frontend::access::users;
use crate::frontend::accounts::Account;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::admit::demand_open;
use crate::frontend::dialect::admit::settle;
use crate::frontend::dialect::echo::Echo;
use crate::frontend::dialect::framing::Decoder;
use crate::frontend::dialect::s3::S3Settings;
use crate::frontend::dialect::s3::forms;
use crate::frontend::dialect::s3::refusals;
use crate::frontend::dialect::s3::sender::Sender;
use crate::frontend::dialect::s3::sender::identify;
use crate::frontend::errors;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3;
use crate::protocol::s3::form;

/// Admits a request whose address is known.
///
/// # Errors
/// The refusal of the first check that fails.
pub(in crate::frontend::dialect) async fn admit(
    front: &FrontEnd,
    settings: &S3Settings,
    request: AddressedRequest<'_>,
    notes: AdmissionNotes<'_, '_>,
) -> Result<Admitted, Refusal> {
    let AddressedRequest { arrival: Arrival { head, peer, .. }, address } = request;
    if let Echo::S3(echo) = notes.echo {
        echo.admitted(head, address, &settings.region);
    }
    let account = account(front, address)?;
    let form = form::of(head);
    forms::check_kind(head, address)?;
    forms::check_origin(front, head, &account, address).await?;
    let Sender { mut caller, body } = identify(front, settings, request, &account)?;
    if front.audit_log.is_on() {
        *notes.principal = caller.named();
    }
    let limits = forms::check_policy(form, address, front.env.clock.now())?;
    let mut parsed = s3::parse(head, address);
    let is_anonymous = matches!(caller, Caller::Anyone);
    let refused = if matches!(caller, Caller::User(_)) {
        || errors::from_auth(&crate::auth::Error::Permission)
    } else {
        || errors::from_auth(&crate::auth::Error::Missing)
    };
    let mut sender = None;
    if let (Caller::User(user), Ok(parsed)) = (&mut caller, &mut parsed) {
        sender.clone_from(&user.user);
        if let (Echo::S3(echo), Some(user)) = (&mut *notes.echo, &user.user) {
            echo.sent_by(&user.canonical, &user.display);
        }
        let at = (&*account, address);
        if !users::settle(front, at, user, parsed.operation_mut()).await? {
            // The bucket or object may still permit every key of the store.
            caller = Caller::Outsider;
        }
    }
    let mut not_open = None;
    if let Some(audience) = caller.audience() {
        let exposure = parsed.as_ref().ok().map(Parsed::operation).map(action);
        let exposure = exposure.and_then(|action| action.exposure());
        let read = AnonymousRead { account: &account, address, exposure, audience };
        match anonymous::permit(front, read, refused).await? {
            Opened::ByContainer | Opened::ListOnly => {}
            Opened::ByBlob => {
                not_open = Some(demand_open(parsed.as_mut().ok(), audience, refused)?);
            }
        }
    }
    let parsed = parsed?;
    let overrides = s3::overrides(head, is_anonymous)?;
    let admitted = settle(front, Identified { account, caller, address }, parsed, peer)?;
    let overrides = Overrides {
        cache_control: overrides.cache_control,
        content_disposition: overrides.content_disposition,
        content_encoding: overrides.content_encoding,
        content_language: overrides.content_language,
        content_type: overrides.content_type,
        expires: overrides.expires,
    };
    let decoder = match form {
        Some(form) => Some(forms::decoder(form, limits)),
        None => body.map(|body| Decoder::Signed(Box::new(body))),
    };
    let name = s3::operation(head, address)?.name();
    Ok(Admitted { name, overrides, decoder, not_open, user: sender, ..admitted })
}

/// The account. An access key is an account's name, so an unknown account is an unknown key.
fn account(front: &FrontEnd, address: &Address) -> Result<Arc<Account>, Refusal> {
    let known = front.accounts.find(&address.account);
    let known = known.map_err(|unread| errors::unread_account(&address.account, &unread))?;
    known.ok_or_else(|| refusals::unknown_key(address.account.as_str()))
}
