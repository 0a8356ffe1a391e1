//! Who sends a request, and whether they may.

use std::sync::Arc;

use http::request::Parts;

use crate::audit_log;
use crate::auth;
use crate::auth::Circumstances;
use crate::auth::Entitlement;
use crate::auth::Grant;
use crate::auth::Overrides;
use crate::auth::Permit;
use crate::auth::Policy;
use crate::auth::Principal;
use crate::auth::SasPermissions;
use crate::auth::SasRequest;
use crate::auth::Scope;
use crate::auth::Signature;
use crate::auth::SignedRequest;
use crate::auth::Signers;
use crate::auth::is_bound_to_user;
use crate::frontend::access::anonymous;
use crate::frontend::access::hosts;
use crate::frontend::access::needs::needs;
use crate::frontend::access::replace;
use crate::frontend::access::scope;
use crate::frontend::accounts::Account;
use crate::frontend::admission::Pass;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::errors;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::index::record::StoredPolicy;
use crate::protocol::azure;
use crate::protocol::azure::Address;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::Holder;
use crate::protocol::model::operation::Parsed;
use crate::types::ContainerName;
use crate::types::Peer;

/// A request that was let in.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Whose data it is about.
    pub(crate) account: Arc<Account>,
    /// What it asks for; conditioned to replace nothing where the caller may not.
    pub(crate) operation: Operation,
    /// The document that completes it.
    pub(crate) document: Option<DocumentBody>,
    /// What answers carry in the place of a blob's own headers.
    pub(crate) overrides: Overrides,
    /// Whether the caller may not replace what exists: then "it exists" is told as "you may not".
    pub(crate) create_only: bool,
    /// Whether the caller proved who they are.
    pub(crate) authenticated: bool,
    /// Room for the request, until its answer is out; the parts of a batch have that of the batch.
    pub(crate) pass: Option<Pass>,
}

/// Who sends a request.
#[derive(Debug)]
enum Caller {
    /// Nobody says who.
    Anyone,
    /// Whoever has a key may do everything.
    Key,
    /// The holder of a signature that holds here and now, and how the audit log names them.
    Signature(Grant, audit_log::Principal),
    /// Whoever a token speaks of.
    Principal(Principal),
}

/// What becomes known on the way: what the answer repeats, and who asks, for the audit log.
pub(crate) type Told<'a> = (&'a mut azure::RequestEcho, &'a mut audit_log::Principal);

/// Lets a request in when there is room: finds the account, verifies who sends it, parses it, and
/// checks that they may.
///
/// # Errors
/// The code of the first thing wrong, in that order.
pub(crate) async fn admit(
    front: &FrontEnd,
    request: (&Parts, Peer),
    told: Told<'_>,
) -> Result<Admitted, Refusal> {
    let refused = match let_in(front, request, told).await {
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
    (head, peer): (&Parts, Peer),
    told: Told<'_>,
) -> Result<Admitted, Refusal> {
    let host = head.headers.get(http::header::HOST).and_then(|h| h.to_str().ok());
    let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str));
    let address = azure::address(&head.method, &head.uri, host, &front.config.addressing)?;
    let known = front.accounts.get(&address.account);
    if let Some(account) = &known {
        hosts::may_name(front, head, account)?;
    }
    // Before anything is believed of it: whoever claims an account's name takes of that account's
    // share alone.
    let mut pass =
        front.load.gate.enter(known.map_or(UNKNOWN_ACCOUNT, |account| account.id)).await?;
    let admitted = admit_at(front, (head, peer), &address, told).await?;
    if !admitted.authenticated {
        pass.open()?;
    }
    Ok(Admitted { pass: Some(pass), ..admitted })
}

/// [`admit`] of a request whose address is known: a part of a batch may leave out of its path what
/// the batch has.
pub(crate) async fn admit_at(
    front: &FrontEnd,
    (head, peer): (&Parts, Peer),
    address: &Address,
    (echo, principal): Told<'_>,
) -> Result<Admitted, Refusal> {
    let context = azure::Context::from_head(head)?;
    // Told plainly: a host name of Azure that names no account does not resolve either.
    let known = front.accounts.find(&address.account);
    let known = known.map_err(|unread| errors::unread_account(&address.account, &unread))?;
    let account = known.ok_or_else(|| errors::unknown_account(&address.account))?;
    let caller = identify(front, (head, peer), address, &account).await?;
    if front.audit_log.is_on() {
        *principal = named(&caller);
    }
    let parsed = azure::parse(head, address, &context);
    if let Caller::Anyone = caller {
        // Anonymous callers get no parse errors: they would reveal what the caller may not access.
        let need = parsed.as_ref().ok().map(Parsed::operation).map(needs);
        let stated = head.headers.contains_key("x-ms-version").then_some(context.version);
        anonymous::permit(front, &account, address, need.as_ref(), stated).await?;
    }
    let (operation, document) = parsed?.into_parts();
    azure::check_key_is_safe(&head.headers, peer)?;
    echo.operation(&operation, address, peer.scheme());
    let admitted = permit(account, caller, (operation, document), address)?;
    front.load.rates.count(admitted.account.id, || front.env.clock.monotonic())?;
    Ok(admitted)
}

async fn identify(
    front: &FrontEnd,
    (head, peer): (&Parts, Peer),
    address: &Address,
    account: &Account,
) -> Result<Caller, Refusal> {
    let refused = |error: auth::Error| errors::from_auth(&error);
    let now = front.env.clock.now();
    let query = head.uri.query().unwrap_or("");
    let user = match bearer(head) {
        Some(token) => Some(principal(front, token, peer).await?),
        None => None,
    };
    // A signature that is bound to a user comes with the token of one; it alone grants.
    let bound = user.is_some() && is_bound_to_user(query);
    if bound || !head.headers.contains_key(http::header::AUTHORIZATION) {
        let request = SasRequest {
            query,
            headers: &head.headers,
            account: account.name.as_str(),
            container: address.container.as_ref().map(ContainerName::as_str),
            blob: address.blob.as_ref().map(crate::types::BlobName::as_str),
        };
        let signers = Signers {
            keys: &account.keys,
            delegation: account.delegation.as_ref(),
            issuers: front.tokens.trusted(),
            scope: scope_of(account, address),
        };
        if let Some(signature) = Signature::verify(&request, &signers).map_err(refused)? {
            let policy = match (signature.policy(), &address.container) {
                (Some(id), Some(container)) => policy(front, account, container, id).await?,
                (None, _) | (_, None) => None,
            };
            let (secure, user) = (peer.secure, user.as_ref());
            let at = Circumstances { now, peer: peer.address.ip(), secure, user };
            let grant = signature.settle(policy.as_ref(), &at).map_err(refused)?;
            let on = front.audit_log.is_on();
            let holder = if on { holder(&signature) } else { audit_log::Principal::default() };
            return Ok(Caller::Signature(grant, holder));
        }
        return Ok(Caller::Anyone);
    }
    if let Some(user) = user {
        return Ok(Caller::Principal(user));
    }
    let signed = SignedRequest {
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query(),
        headers: &head.headers,
        account: account.name.as_str(),
        secondary: address.secondary,
    };
    auth::authenticate(&signed, &account.keys, now).map_err(refused)?;
    Ok(Caller::Key)
}

/// Who asks, as the audit log names them.
fn named(caller: &Caller) -> audit_log::Principal {
    match caller {
        Caller::Anyone => audit_log::Principal::Anonymous,
        Caller::Key => audit_log::Principal::SharedKey,
        Caller::Signature(_, holder) => holder.clone(),
        Caller::Principal(principal) => audit_log::Principal::Bearer(audit_log::Subject {
            issuer: principal.issuer.name.clone(),
            subject: principal.object.clone(),
        }),
    }
}

/// The holder of a signature, as the audit log names them.
fn holder(signature: &Signature) -> audit_log::Principal {
    let delegator = signature.delegator().map(|delegator| audit_log::Subject {
        issuer: delegator.issuer.to_owned(),
        subject: delegator.subject.to_owned(),
    });
    audit_log::Principal::Sas { policy: signature.policy().map(str::to_owned), delegator }
}

/// Who a token speaks of.
async fn principal(front: &FrontEnd, token: &str, peer: Peer) -> Result<Principal, Refusal> {
    if !peer.secure && !peer.address.ip().to_canonical().is_loopback() {
        let detail = "A bearer token is taken over https only.".to_owned();
        return Err(errors::from_auth(&auth::Error::Refused { detail }));
    }
    let found = front.tokens.verify(token, &front.env).await;
    found.map_err(|error| errors::from_auth(&error))
}

/// The token of a request that comes with one.
fn bearer(head: &Parts) -> Option<&str> {
    let value = head.headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The stored access policy of that name: read from the partition each time, so that an edit
/// revokes at once.
async fn policy(
    front: &FrontEnd,
    account: &Account,
    container: &ContainerName,
    id: &str,
) -> Result<Option<Policy>, Refusal> {
    let record = match lookup::container(&front.rows, account, container).await {
        Ok(record) => record,
        // Who could not prove anything yet is not told what exists.
        Err(error) if error.reason == Reason::ContainerNotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(record.policies.iter().find(|stored| stored.id == id).map(stored_policy))
}

fn stored_policy(stored: &StoredPolicy) -> Policy {
    Policy {
        start: stored.start,
        expiry: stored.expiry,
        permissions: stored
            .permissions
            .as_deref()
            .map(|text| SasPermissions::parse(text).unwrap_or_default()),
    }
}

/// Where the roles of an account's principals are looked for: a role in a container is good for
/// URLs in it alone.
fn scope_of<'a>(account: &'a Account, address: &'a Address) -> Scope<'a> {
    Scope {
        account: account.name.as_str(),
        container: address.container.as_ref().map(ContainerName::as_str),
        assignments: &account.assignments,
    }
}

fn permit(
    account: Arc<Account>,
    caller: Caller,
    (mut operation, document): (Operation, Option<DocumentBody>),
    address: &Address,
) -> Result<Admitted, Refusal> {
    let refused = |error: auth::Error| errors::from_auth(&error);
    let authenticated = !matches!(caller, Caller::Anyone);
    let (overrides, create_only) = match caller {
        Caller::Principal(principal) => {
            let scope = scope_of(&account, address);
            principal.permits(&needs(&operation), scope).map_err(refused)?;
            if let Operation::GetUserDelegationKey { holder, .. } = &mut operation {
                let entitlement = principal.entitlement(scope);
                let entitlement = entitlement.ok_or_else(|| refused(auth::Error::Permission))?;
                *holder = Some(key_holder(&principal, entitlement));
            }
            (Overrides::default(), false)
        }
        Caller::Key | Caller::Anyone => (Overrides::default(), false),
        Caller::Signature(grant, _) => {
            if let Some(name) = &grant.encryption_scope {
                scope::apply(&mut operation, name)?;
            }
            let create_only = match grant.permits(&needs(&operation)).map_err(refused)? {
                Permit::Full => false,
                Permit::CreateOnly => replace::forbid(&mut operation)
                    .ok_or_else(|| refused(auth::Error::Permission))?,
            };
            (grant.overrides, create_only)
        }
    };
    let pass = None;
    Ok(Admitted { account, operation, document, overrides, create_only, authenticated, pass })
}

/// Names whoever the token speaks of, and is entitled to it so, as the holder of the key to be
/// made.
fn key_holder(principal: &Principal, entitlement: Entitlement<'_>) -> Holder {
    Holder {
        object: principal.object.clone(),
        tenant: principal.tenant.clone(),
        entitlement: entitlement.text(),
    }
}
