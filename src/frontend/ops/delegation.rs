//! Get User Delegation Key.

use crate::auth::DELEGATION_MAX;
use crate::auth::DelegationKey;
use crate::frontend::accounts::Account;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::Holder;
use crate::protocol::model::operation::KeyInfo;
use crate::protocol::model::reply::UserDelegationKey;

/// Get User Delegation Key: derived, so no key is stored.
pub(crate) fn get(
    front: &FrontEnd,
    account: &Account,
    (holder, version): (Option<Holder>, String),
    asked: KeyInfo,
) -> Result<Reply, Refusal> {
    let holder = holder.ok_or(Reason::InternalError)?;
    let now = front.env.clock.now();
    let start = asked.start.unwrap_or(now);
    let invalid = |name: &'static str| {
        Refusal::new(Reason::InvalidXmlNodeValue).detail(Detail::ElementName, name).message(
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
    let secret = account.delegation.as_ref().ok_or(Reason::InternalError)?;
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
