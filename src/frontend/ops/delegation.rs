//! Get User Delegation Key.

use crate::auth::DELEGATION_MAX;
use crate::auth::DelegationKey;
use crate::frontend::accounts::Account;
use crate::frontend::state::FrontEnd;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::Reply;
use crate::protocol::operation::Holder;
use crate::protocol::operation::KeyInfo;
use crate::protocol::reply::UserDelegationKey;

/// Get User Delegation Key: derived, so no key is stored.
pub(crate) fn get(
    front: &FrontEnd,
    account: &Account,
    (holder, version): (Option<Holder>, String),
    asked: KeyInfo,
) -> Result<Reply, Error> {
    let holder = holder.ok_or(ErrorCode::InternalError)?;
    let now = front.env.clock.now();
    let start = asked.start.unwrap_or(now);
    let invalid = |name: &'static str| {
        Error::new(ErrorCode::InvalidXmlNodeValue).detail("XmlNodeName", name).message(
            "A user delegation key ends after it begins, in the future, and lives at most 7 days.",
        )
    };
    if asked.expiry <= now || asked.expiry <= start {
        return Err(invalid("Expiry"));
    }
    if asked.expiry.since(start) > DELEGATION_MAX || asked.expiry.since(now) > DELEGATION_MAX {
        return Err(invalid("Expiry"));
    }
    let key = DelegationKey {
        object: holder.object,
        tenant: holder.tenant,
        start: start.to_iso_seconds(),
        expiry: asked.expiry.to_iso_seconds(),
        version,
        delegated_tenant: asked.delegated_tenant,
    };
    let secret = account.delegation.as_ref().ok_or(ErrorCode::InternalError)?;
    let value = key.value(secret, &holder.entitlement);
    let words = ["skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid"]
        .map(|name| key.word(name).to_owned());
    let [object, tenant, start, expiry, service, version, delegated_tenant] = words;
    let key = UserDelegationKey {
        object,
        tenant,
        start,
        expiry,
        service,
        version,
        delegated_tenant,
        value,
    };
    Ok(Reply::UserDelegationKey(Box::new(key)))
}
