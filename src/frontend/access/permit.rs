//! Whether an identified caller is permitted to carry out its request.

use std::sync::Arc;

use crate::auth;
use crate::auth::Entitlement;
use crate::auth::Overrides;
use crate::auth::Permit;
use crate::auth::Principal;
use crate::auth::Scope;
use crate::frontend::access::actions::action;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::access::besides;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::replace;
use crate::frontend::access::scope;
use crate::frontend::access::sources;
use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::Holder;
use crate::protocol::model::operation::Parsed;
use crate::types::ContainerName;

/// The scope in which roles of an account's principals are searched: a role in a container is valid
/// only for URLs in that container.
pub(crate) fn scope_of<'a>(account: &'a Account, address: &'a Address) -> Scope<'a> {
    Scope {
        account: account.name.as_str(),
        container: address.container.as_ref().map(ContainerName::as_str),
        assignments: &account.assignments,
    }
}

/// A request whose account and sender are known.
#[derive(Debug)]
pub(crate) struct Identified<'a> {
    /// The account that it is about.
    pub(crate) account: Arc<Account>,
    /// The sender.
    pub(crate) caller: Caller,
    /// The account, container and blob that it names.
    pub(crate) address: &'a Address,
}

/// Admits an operation that its sender is permitted to do.
///
/// # Errors
/// The refusal, if the caller is not permitted.
pub(crate) fn permit(
    Identified { account, caller, address }: Identified<'_>,
    parsed: Parsed,
) -> Result<Admitted, Refusal> {
    let (mut operation, document) = parsed.into_parts();
    let refused = |error: auth::Error| errors::from_auth(&error);
    let authenticated = !matches!(caller, Caller::Anyone);
    if let Some(source) = operation.named_source() {
        sources::check_readable(&account, &caller, source)?;
    }
    besides::grant_optional(&mut operation, &caller, scope_of(&account, address));
    let (overrides, create_only) = match caller {
        Caller::Principal(principal) => {
            let scope = scope_of(&account, address);
            besides::permits(&principal, &operation, scope).map_err(refused)?;
            if let Operation::Account(AccountOperation::GetUserDelegationKey { holder, .. }) =
                &mut *operation
            {
                let entitlement = principal.entitlement(scope);
                let entitlement = entitlement.ok_or_else(|| refused(auth::Error::Permission))?;
                *holder = Some(key_holder(&principal, entitlement));
            }
            (Overrides::default(), false)
        }
        Caller::User(user) => {
            let scope = scope_of(&account, address);
            besides::user_permits(&user, &operation, scope).map_err(refused)?;
            (Overrides::default(), false)
        }
        // Admission has already checked callers without permissions of their own.
        Caller::Key | Caller::Outsider | Caller::Anyone => (Overrides::default(), false),
        Caller::Signature(grant, _) => {
            if let Operation::Account(AccountOperation::GetUserDelegationKey { .. }) = &*operation {
                return Err(errors::only_bearer());
            }
            if let Operation::Container(ContainerOperation::ListBlobs(list)) = &*operation {
                let prefix = list.prefix.as_deref().unwrap_or_default();
                grant.permits_prefix(prefix).map_err(refused)?;
            }
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
    Ok(Admitted {
        account,
        name: operation.name(),
        operation,
        document,
        overrides,
        create_only,
        not_open: None,
        authenticated,
        user: None,
        decoder: None,
        pass: None,
    })
}

/// The holder of the key to be made: the principal of the token, with its entitlement.
fn key_holder(principal: &Principal, entitlement: Entitlement<'_>) -> Holder {
    Holder {
        object: principal.object.clone(),
        tenant: principal.tenant.clone(),
        entitlement: entitlement.text(),
    }
}
