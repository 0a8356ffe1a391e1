//! Who sends a request, and whether they may.

use std::sync::Arc;

use http::request::Parts;

use crate::auth;
use crate::auth::Circumstances;
use crate::auth::Grant;
use crate::auth::Letters;
use crate::auth::Overrides;
use crate::auth::Permit;
use crate::auth::Policy;
use crate::auth::SasRequest;
use crate::auth::Signature;
use crate::auth::SignedRequest;
use crate::auth::Signers;
use crate::frontend::access::anonymous;
use crate::frontend::access::needs::needs;
use crate::frontend::access::replace;
use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::frontend::ops;
use crate::frontend::service::FrontEnd;
use crate::index::record::StoredPolicy;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::Operation;
use crate::protocol::azure;
use crate::protocol::azure::Address;
use crate::types::ContainerName;
use crate::types::Peer;

/// A request that was let in.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Whose data it is about.
    pub(crate) account: Arc<Account>,
    /// What it asks for; conditioned to replace nothing where the caller may not.
    pub(crate) operation: Operation,
    /// What answers carry in the place of a blob's own headers.
    pub(crate) overrides: Overrides,
    /// Whether the caller may not replace what exists: then "it exists" is told as "you may not".
    pub(crate) create_only: bool,
}

/// Who sends a request.
#[derive(Debug)]
enum Caller {
    /// Nobody says who.
    Anyone,
    /// Whoever has a key may do everything.
    Key,
    /// The holder of a signature that holds here and now.
    Signature(Grant),
}

/// Lets a request in: finds the account, verifies who sends it, parses it, and checks that they may.
///
/// # Errors
/// The code of the first thing wrong, in that order.
pub(crate) async fn admit(
    front: &FrontEnd,
    (head, peer): (&Parts, Peer),
    echo: &mut azure::RequestEcho,
) -> Result<Admitted, Error> {
    let context = azure::Context::from_head(head)?;
    let host = head.headers.get(http::header::HOST).and_then(|h| h.to_str().ok());
    let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str));
    let address = azure::address(&head.method, &head.uri, host, &front.config.addressing)?;
    // Told plainly: a host name of Azure that names no account does not resolve either.
    let account = front.accounts.get(&address.account).ok_or_else(|| {
        Error::new(ErrorCode::AuthenticationFailed).detail(
            "AuthenticationErrorDetail",
            format!("This server has no account named {}.", address.account),
        )
    })?;
    let caller = identify(front, (head, peer), &address, &account).await?;
    let parsed = azure::parse(head, &address, &context);
    if let Caller::Anyone = caller {
        // Who does not say who they are is not told what is wrong with a request they may not send.
        let need = parsed.as_ref().ok().map(needs);
        let stated = head.headers.contains_key("x-ms-version").then_some(context.version);
        anonymous::permit(front, &account, &address, need.as_ref(), stated).await?;
    }
    let operation = parsed?;
    echo.operation(&operation, &address, peer.scheme());
    permit(account, caller, operation)
}

async fn identify(
    front: &FrontEnd,
    (head, peer): (&Parts, Peer),
    address: &Address,
    account: &Account,
) -> Result<Caller, Error> {
    let refused = |error: auth::Error| errors::from_auth(&error);
    let now = front.env.clock.now();
    if !head.headers.contains_key(http::header::AUTHORIZATION) {
        let request = SasRequest {
            query: head.uri.query().unwrap_or(""),
            headers: &head.headers,
            account: account.name.as_str(),
            container: address.container.as_ref().map(ContainerName::as_str),
            blob: address.blob.as_ref().map(crate::types::BlobName::as_str),
        };
        let secret = account.keys.delegation_secret();
        let signers = Signers { keys: &account.keys, delegation: &secret };
        if let Some(signature) = Signature::verify(&request, &signers).map_err(refused)? {
            let policy = match (signature.policy(), &address.container) {
                (Some(id), Some(container)) => policy(front, account, container, id).await?,
                (None, _) | (_, None) => None,
            };
            let at = Circumstances { now, peer: peer.address.ip(), secure: peer.secure };
            let grant = signature.settle(policy.as_ref(), &at).map_err(refused)?;
            return Ok(Caller::Signature(grant));
        }
        return Ok(Caller::Anyone);
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

/// The stored access policy of that name: read from the partition each time, so that an edit revokes at once.
async fn policy(
    front: &FrontEnd,
    account: &Account,
    container: &ContainerName,
    id: &str,
) -> Result<Option<Policy>, Error> {
    let record = match ops::container(front, account, container).await {
        Ok(record) => record,
        // Who could not prove anything yet is not told what exists.
        Err(error) if error.code == ErrorCode::ContainerNotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(record.policies.iter().find(|stored| stored.id == id).map(stored_policy))
}

fn stored_policy(stored: &StoredPolicy) -> Policy {
    Policy {
        start: stored.start,
        expiry: stored.expiry,
        letters: stored.permissions.as_deref().map(|text| Letters::parse(text).unwrap_or_default()),
    }
}

fn permit(
    account: Arc<Account>,
    caller: Caller,
    mut operation: Operation,
) -> Result<Admitted, Error> {
    let grant = match caller {
        Caller::Key | Caller::Anyone => {
            let overrides = Overrides::default();
            return Ok(Admitted { account, operation, overrides, create_only: false });
        }
        Caller::Signature(grant) => grant,
    };
    let refused = |error: auth::Error| errors::from_auth(&error);
    let create_only = match grant.permits(&needs(&operation)).map_err(refused)? {
        Permit::Full => false,
        Permit::CreateOnly => {
            replace::forbid(&mut operation).ok_or_else(|| refused(auth::Error::Permission))?
        }
    };
    Ok(Admitted { account, operation, overrides: grant.overrides, create_only })
}
