//! Who sends an S3 request: the root of the account, a user of it, or the holder of a key of another
//! account.

use std::sync::Arc;

use crate::auth::Claim;
use crate::auth::S3Secrets;
use crate::auth::claim;
use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::users::UserCaller;
use crate::frontend::accounts::Account;
use crate::frontend::dialect::s3::S3Settings;
use crate::frontend::dialect::s3::body::SignedBody;
use crate::frontend::dialect::s3::host;
use crate::frontend::dialect::s3::refusals;
use crate::frontend::errors;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Refusal;
use crate::protocol::s3;
use crate::types::AccountName;

/// A sender, and what it said of the body.
pub(super) struct Sender {
    pub(super) caller: Caller,
    pub(super) body: Option<SignedBody>,
}

/// A sender, and the secrets that its signature is verified with.
struct Known {
    caller: Caller,
    secrets: S3Secrets,
}

/// Who sends a request.
///
/// # Errors
/// Why the signature is refused.
pub(super) fn identify(
    front: &FrontEnd,
    settings: &S3Settings,
    request: AddressedRequest<'_>,
    account: &Arc<Account>,
) -> Result<Sender, Refusal> {
    let head = request.arrival.head;
    let refused = |error| refusals::from_s3(&error);
    let named = s3::address::address(host(head), head.uri.path(), &settings.domains)?;
    let signed = settings.signed(head, &named);
    let Some(claim): Option<Claim> = claim(&signed).map_err(refused)? else {
        return Ok(Sender { caller: Caller::Anyone, body: None });
    };
    let Known { caller, secrets } = known(front, account, claim.access_key_id())?;
    let verified = claim.verify(&signed, &secrets, front.env.clock.now()).map_err(refused)?;
    let body = SignedBody::of(verified.payload, &head.headers)?;
    Ok(Sender { caller, body })
}

/// The holder of an access key, in the eyes of an account.
fn known(front: &FrontEnd, account: &Account, id: &str) -> Result<Known, Refusal> {
    if id == account.name.as_str() {
        return Ok(Known { caller: Caller::Key, secrets: account.keys.s3().clone() });
    }
    if let Some(key) = account.users.key(id) {
        let user = Box::new(UserCaller::of_user(Arc::clone(&key.user)));
        return Ok(Known { caller: Caller::User(user), secrets: key.secrets.clone() });
    }
    let unknown = || refusals::unknown_key(id);
    if let Ok(name) = AccountName::new(id) {
        let other = find(front, &name)?.ok_or_else(unknown)?;
        // Everybody has the development key.
        let is_known = other.keys.are_well_known();
        let caller = if is_known { Caller::Anyone } else { Caller::Outsider };
        return Ok(Known { caller, secrets: other.keys.s3().clone() });
    }
    let owner = front.accounts.access_keys().find(id);
    let owner = owner.map_err(|unread| errors::unread_key(&unread))?.ok_or_else(unknown)?;
    let other = find(front, &owner)?.ok_or_else(unknown)?;
    let key = other.users.key(id).ok_or_else(unknown)?;
    Ok(Known { caller: Caller::Outsider, secrets: key.secrets.clone() })
}

fn find(front: &FrontEnd, name: &AccountName) -> Result<Option<Arc<Account>>, Refusal> {
    front.accounts.find(name).map_err(|unread| errors::unread_account(name, &unread))
}
