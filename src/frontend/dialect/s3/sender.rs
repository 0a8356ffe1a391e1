//! The sender of an S3 request: the root of an account, a user of it, or the holder of temporary
//! keys.

use std::sync::Arc;

use crate::auth::Claim;
use crate::auth::Principal;
use crate::auth::S3Secrets;
use crate::auth::Session;
use crate::auth::SessionError;
use crate::auth::SessionHolder;
use crate::auth::SessionToken;
use crate::auth::claim;
use crate::auth::secret_proof;
use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::user_caller::UserCaller;
use crate::frontend::accounts::Account;
use crate::frontend::accounts::User;
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

/// The holder of an access key, not yet proven.
pub(super) struct KeyHolder {
    /// The account.
    pub(super) account: Arc<Account>,
    /// The holder of the key.
    pub(super) holder: Holder,
    /// The secret that proves it.
    pub(super) secrets: S3Secrets,
}

/// The holder of an access key.
pub(super) enum Holder {
    /// The root of the account.
    Root,
    /// A user.
    User(Arc<User>),
    /// The holder of temporary keys: the content of their token, and the caller.
    Session(Box<(Session, UserCaller)>),
}

/// Identifies the sender of a request.
///
/// # Errors
/// Why the signature is refused.
pub(super) fn identify(
    front: &FrontEnd,
    settings: &S3Settings,
    request: AddressedRequest<'_>,
    account: &Account,
) -> Result<Sender, Refusal> {
    let head = request.arrival.head;
    let refused = |error| refusals::from_s3(&error);
    let named = s3::address::address(host(head), head.uri.path(), &settings.domains)?;
    let signed = settings.signed(head, &named);
    let Some(claim): Option<Claim> = claim(&signed).map_err(refused)? else {
        return Ok(Sender { caller: Caller::Anyone, body: None });
    };
    let (token, now) = (claim.session_token(&signed), front.env.clock.now());
    if token.is_none() && claim.access_key_id() == account.name.as_str() {
        let verified = claim.verify(&signed, account.keys.s3(), now).map_err(refused)?;
        let body = SignedBody::of(verified.payload, &head.headers)?;
        return Ok(Sender { caller: Caller::Key, body });
    }
    let KeyHolder { account: own, holder, secrets } =
        find(front, claim.access_key_id(), token.as_deref())?;
    let verified = claim.verify(&signed, &secrets, now).map_err(refused)?;
    let body = SignedBody::of(verified.payload, &head.headers)?;
    let is_own = own.name == account.name;
    let caller = match holder {
        Holder::Root if is_own => Caller::Key,
        // The development key is public.
        Holder::Root if own.keys.are_well_known() => Caller::Anyone,
        Holder::User(user) if is_own => Caller::User(Box::new(UserCaller::of_user(user))),
        Holder::Session(session) if is_own => Caller::User(Box::new(session.1)),
        Holder::Root | Holder::User(_) | Holder::Session(..) => Caller::Outsider,
    };
    Ok(Sender { caller, body })
}

/// The holder of an access key that a request names, with the session token that comes with it.
///
/// # Errors
/// `UnknownAccessKey`, `InvalidSessionToken`, `ExpiredSessionToken`; `ServerBusy` while some
/// accounts are not read.
pub(super) fn find(front: &FrontEnd, id: &str, token: Option<&str>) -> Result<KeyHolder, Refusal> {
    if let Some(token) = token {
        return session(front, id, token);
    }
    let unknown = || refusals::unknown_key(id);
    if let Ok(name) = AccountName::new(id) {
        let account = known(front, &name)?.ok_or_else(unknown)?;
        let secrets = account.keys.s3().clone();
        return Ok(KeyHolder { account, holder: Holder::Root, secrets });
    }
    let owner = front.accounts.access_keys().find(id);
    let owner = owner.map_err(|unread| errors::unread_key(&unread))?.ok_or_else(unknown)?;
    let account = known(front, &owner)?.ok_or_else(unknown)?;
    let key = account.users.key(id).ok_or_else(unknown)?;
    let (user, secrets) = (Arc::clone(&key.user), key.secrets.clone());
    Ok(KeyHolder { account, holder: Holder::User(user), secrets })
}

/// The holder of temporary keys.
fn session(front: &FrontEnd, id: &str, token: &str) -> Result<KeyHolder, Refusal> {
    let invalid = || refusals::from_session(SessionError::Invalid);
    let token = SessionToken::parse(token).map_err(refusals::from_session)?;
    let account = known(front, token.account())?.ok_or_else(invalid)?;
    let delegation = account.delegation.as_ref().ok_or_else(invalid)?;
    let opened = token.open(delegation, front.env.clock.now());
    let (session, keys) = opened.map_err(refusals::from_session)?;
    if keys.access_key_id != id {
        return Err(invalid());
    }
    let caller = match &session.holder {
        SessionHolder::User { key, user, proof } => {
            // The keys end with the access key that asked for them, and with its secret.
            let key = account.users.key(key.as_str());
            let key = key.filter(|key| key.user.canonical == *user).ok_or_else(invalid)?;
            if secret_proof(delegation, &key.secrets) != *proof {
                return Err(invalid());
            }
            UserCaller::of_user(Arc::clone(&key.user))
        }
        SessionHolder::Subject { issuer, object, groups, claimed } => {
            let mut trusted = front.tokens.trusted().iter();
            let issuer = trusted.find(|trusted| trusted.name == *issuer).ok_or_else(invalid)?;
            UserCaller::of_token(Principal {
                issuer: issuer.clone(),
                object: object.clone(),
                tenant: String::new(),
                claimed: *claimed,
                groups: groups.clone(),
            })
        }
    };
    let secrets = keys.secrets();
    Ok(KeyHolder { account, holder: Holder::Session(Box::new((session, caller))), secrets })
}

/// The account that a session token names, for its address.
///
/// # Errors
/// `InvalidSessionToken`.
pub(super) fn account_of_token(token: &str) -> Result<AccountName, Refusal> {
    let token = SessionToken::parse(token).map_err(refusals::from_session)?;
    Ok(token.account().clone())
}

fn known(front: &FrontEnd, name: &AccountName) -> Result<Option<Arc<Account>>, Refusal> {
    front.accounts.find(name).map_err(|unread| errors::unread_account(name, &unread))
}
