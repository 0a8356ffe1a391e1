//! Identifies the sender of an Azure request: the holder of an account key or of a shared access
//! signature, or the principal of a bearer token.

use std::borrow::Cow;

use http::request::Parts;

use crate::audit_log;
use crate::auth;
use crate::auth::Circumstances;
use crate::auth::Policy;
use crate::auth::Principal;
use crate::auth::SasPermissions;
use crate::auth::SasRequest;
use crate::auth::Signature;
use crate::auth::SignedRequest;
use crate::auth::Signers;
use crate::auth::TrustedIssuer;
use crate::auth::is_bound_to_user;
use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::permit::scope_of;
use crate::frontend::accounts::Account;
use crate::frontend::dialect::Arrival;
use crate::frontend::errors;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::index::record::StoredPolicy;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::ContainerName;
use crate::types::Peer;

/// Identifies the sender of a request.
///
/// # Errors
/// Why its signature or token is refused.
pub(super) async fn identify(
    front: &FrontEnd,
    request: AddressedRequest<'_>,
    account: &Account,
) -> Result<Caller, Refusal> {
    let AddressedRequest { arrival: Arrival { head, peer, .. }, address } = request;
    let refused = |error: auth::Error| errors::from_auth(&error);
    let now = front.env.clock.now();
    let query = head.uri.query().unwrap_or("");
    let user = match bearer(head) {
        Some(token) => Some(principal_in(front, account, token, peer).await?),
        None => None,
    };
    // A signature that is bound to a user comes with that user's token, which grants nothing
    // itself.
    let bound = user.is_some() && is_bound_to_user(query);
    if bound || !head.headers.contains_key(http::header::AUTHORIZATION) {
        let request = SasRequest {
            query,
            headers: &head.headers,
            account: account.name.as_str(),
            container: address.container.as_ref().map(ContainerName::as_str),
            blob: address.blob.as_ref().map(crate::types::BlobName::as_str),
        };
        let mut issuers = Cow::Borrowed(front.tokens.trusted());
        if let Some(unsigned) = &front.config.unsigned_tokens {
            issuers.to_mut().push(unsigned.clone());
        }
        let signers = Signers {
            keys: &account.keys,
            delegation: account.delegation.as_ref(),
            issuers: &issuers,
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

/// The name of a signature's holder in the audit log.
fn holder(signature: &Signature) -> audit_log::Principal {
    let delegator = signature.delegator().map(|delegator| audit_log::Subject {
        issuer: delegator.issuer.to_owned(),
        subject: delegator.subject.to_owned(),
    });
    audit_log::Principal::Sas { policy: signature.policy().map(str::to_owned), delegator }
}

/// The principal of a token, in an account. In accounts for development the signature may be
/// ignored.
async fn principal_in(
    front: &FrontEnd,
    account: &Account,
    token: &str,
    peer: Peer,
) -> Result<Principal, Refusal> {
    let verified = principal(front, token, peer).await;
    let is_taken = |issuer: &TrustedIssuer| issuer.rules(account.name.as_str());
    if verified.is_ok() || !front.config.unsigned_tokens.as_ref().is_some_and(is_taken) {
        return verified;
    }
    check_private(peer, TOKEN_IS_PRIVATE)?;
    let read = auth::read_unsigned(token, account.name.as_str(), front.env.clock.now());
    read.map_err(|error| errors::from_auth(&error))
}

const TOKEN_IS_PRIVATE: &str = "A bearer token is taken over https only.";

/// The principal of a token.
///
/// # Errors
/// Why it is refused, also over a connection that others can read.
pub(super) async fn principal(
    front: &FrontEnd,
    token: &str,
    peer: Peer,
) -> Result<Principal, Refusal> {
    check_private(peer, TOKEN_IS_PRIVATE)?;
    let found = front.tokens.verify(token, &front.env).await;
    found.map_err(|error| errors::from_auth(&error))
}

/// Refuses a connection that others can read: it is neither https nor from this machine.
///
/// # Errors
/// `AuthenticationFailed`, with `why`.
pub(super) fn check_private(peer: Peer, why: &str) -> Result<(), Refusal> {
    if peer.secure || peer.address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(errors::from_auth(&auth::Error::Refused { detail: why.to_owned() }))
}

/// The token of a request that comes with one.
fn bearer(head: &Parts) -> Option<&str> {
    let value = head.headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The stored access policy of that name: read from the partition each time, so that an edit
/// revokes immediately.
async fn policy(
    front: &FrontEnd,
    account: &Account,
    container: &ContainerName,
    id: &str,
) -> Result<Option<Policy>, Refusal> {
    let record = match lookup::container(&front.rows, account, container).await {
        Ok(record) => record,
        // A caller that is not yet authenticated must not learn which containers exist.
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
