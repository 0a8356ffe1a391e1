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

/// A Get User Delegation Key.
#[derive(Debug)]
pub(crate) struct KeyRequest {
    /// The user that the bearer token names.
    pub(crate) holder: Option<Holder>,
    /// The version of the service that the request names.
    pub(crate) version: String,
    pub(crate) wanted: KeyInfo,
}

/// Get User Delegation Key. The key is derived from the account's secret; none is stored.
pub(crate) fn get(
    front: &FrontEnd,
    account: &Account,
    request: KeyRequest,
) -> Result<Reply, Refusal> {
    let KeyRequest { holder, version, wanted } = request;
    let holder = holder.ok_or(Reason::InternalError)?;
    let now = front.env.clock.now();
    let start = wanted.start.unwrap_or(now);
    let invalid = |name: &'static str| {
        Refusal::new(Reason::InvalidElementValue).detail(Detail::ElementName, name).message(
            "A user delegation key ends after it begins, in the future, and lives at most 7 days.",
        )
    };
    if wanted.expiry <= now || wanted.expiry <= start {
        return Err(invalid("Expiry"));
    }
    if wanted.expiry.since(start) > DELEGATION_MAX || wanted.expiry.since(now) > DELEGATION_MAX {
        return Err(invalid("Expiry"));
    }
    let key = DelegationKey {
        object: holder.object,
        tenant: holder.tenant,
        start: start.to_iso_seconds(),
        expiry: wanted.expiry.to_iso_seconds(),
        version,
        delegated_tenant: wanted.delegated_tenant,
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
