//! Whether a known caller may do what it asks for.

use std::sync::Arc;

use crate::auth;
use crate::auth::Entitlement;
use crate::auth::Overrides;
use crate::auth::Permit;
use crate::auth::Principal;
use crate::auth::Scope;
use crate::frontend::access::actions::action;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::replace;
use crate::frontend::access::scope;
use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::Holder;
use crate::types::ContainerName;

/// Where the roles of an account's principals are looked for: a role in a container is good for
/// URLs in it alone.
pub(crate) fn scope_of<'a>(account: &'a Account, address: &'a Address) -> Scope<'a> {
    Scope {
        account: account.name.as_str(),
        container: address.container.as_ref().map(ContainerName::as_str),
        assignments: &account.assignments,
    }
}

/// Lets a known caller's operation in, if they may.
///
/// # Errors
/// The refusal of what the caller is not permitted.
pub(crate) fn permit(
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
            principal.permits(action(&operation), scope).map_err(refused)?;
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
            let create_only = match grant.permits(action(&operation)).map_err(refused)? {
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
