//! Whether the sender of a copy is permitted to read the blob that it names as its source.

use crate::auth;
use crate::auth::Action;
use crate::auth::Scope;
use crate::frontend::access::caller::Caller;
use crate::frontend::accounts::Account;
use crate::frontend::errors;
use crate::protocol::model::Refusal;
use crate::protocol::model::named_copy::NamedSource;

/// Checks permission to read a source in the requester's own account.
///
/// # Errors
/// The refusal, if the caller is not permitted.
pub(super) fn check_readable(
    account: &Account,
    caller: &Caller,
    source: &NamedSource,
) -> Result<(), Refusal> {
    let scope = Scope {
        account: account.name.as_str(),
        container: Some(source.path.container.as_str()),
        assignments: &account.assignments,
    };
    permits(caller, scope).map_err(|error| errors::from_auth(&error))
}

/// Whether a caller may read blobs in a container. A signature is valid only for the URL that it
/// signs, so it permits no other blob.
fn permits(caller: &Caller, container: Scope<'_>) -> Result<(), auth::Error> {
    match caller {
        Caller::Key => Ok(()),
        Caller::Principal(principal) => principal.permits(Action::ReadBlob, container),
        Caller::User(user) => user.permits(Action::ReadBlob, container),
        Caller::Signature(..) | Caller::Outsider => Err(auth::Error::Permission),
        Caller::Anyone => Err(auth::Error::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Principal;
    use crate::auth::TrustedIssuer;
    use crate::types::ContainerName;
    use crate::types::PrincipalKind;
    use crate::types::Role;
    use crate::types::RoleAssignment;

    #[test]
    fn a_principal_needs_a_role_in_the_container_of_the_source() {
        let caller = Caller::Principal(Principal {
            issuer: TrustedIssuer { name: "a".to_owned(), accounts: Vec::new() },
            object: "s".to_owned(),
            tenant: "t".to_owned(),
            claimed: None,
            groups: Vec::new(),
        });
        let assignments = [RoleAssignment {
            issuer: "a".to_owned(),
            kind: PrincipalKind::Subject,
            principal: "s".to_owned(),
            role: Role::Reader,
            container: Some(ContainerName::new("photos").unwrap()),
        }];
        let within = |container| Scope {
            account: "acme",
            container: Some(container),
            assignments: &assignments,
        };
        assert!(permits(&caller, within("photos")).is_ok());
        assert!(permits(&caller, within("secrets")).is_err());
        assert!(permits(&Caller::Key, within("secrets")).is_ok());
        assert!(permits(&Caller::Anyone, within("photos")).is_err());
    }
}
