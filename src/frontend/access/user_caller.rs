//! Users of an account, and holders of temporary keys. They may do what their roles permit, and
//! everything in the containers that they own. Every user may create containers and list its own.
//!
//! Only this file decides about them. Policies of containers and users will be evaluated here too,
//! beside roles and ownership.

use std::sync::Arc;

use crate::auth;
use crate::auth::Action;
use crate::auth::Principal;
use crate::auth::Scope;
use crate::auth::TrustedIssuer;
use crate::frontend::accounts::User;
use crate::types::ContainerName;
use crate::types::USER_ISSUER;

/// A user of an account, or the holder of temporary keys.
#[derive(Clone, Debug)]
pub(crate) struct UserCaller {
    /// The holder of the roles.
    pub(crate) principal: Principal,
    /// The user; `None` for temporary keys that a token was exchanged for.
    pub(crate) user: Option<Arc<User>>,
    /// Containers of the request that it owns.
    pub(super) owned: Vec<ContainerName>,
}

impl UserCaller {
    /// A user.
    pub(crate) fn of_user(user: Arc<User>) -> Self {
        let issuer = TrustedIssuer { name: USER_ISSUER.to_owned(), accounts: Vec::new() };
        let principal = Principal {
            issuer,
            object: user.name.as_str().to_owned(),
            tenant: String::new(),
            claimed: None,
            groups: Vec::new(),
        };
        Self { principal, user: Some(user), owned: Vec::new() }
    }

    /// The principal of a token that was exchanged for temporary keys.
    pub(crate) const fn of_token(principal: Principal) -> Self {
        Self { principal, user: None, owned: Vec::new() }
    }

    /// Whether the user may do this in this scope.
    ///
    /// # Errors
    /// [`auth::Error::Permission`], [`auth::Error::Unauthorized`].
    pub(crate) fn permits(&self, action: Action, scope: Scope<'_>) -> Result<(), auth::Error> {
        let is_own = |name| self.owned.iter().any(|owned| owned.as_str() == name);
        if self.may_always(action) || scope.container.is_some_and(is_own) {
            return Ok(());
        }
        self.principal.permits(action, scope)
    }

    /// Whether a user may do this without a role and without a container of its own.
    pub(super) const fn may_always(&self, action: Action) -> bool {
        self.user.is_some() && matches!(action, Action::CreateContainer | Action::ListContainers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PrincipalKind;
    use crate::types::Role;
    use crate::types::RoleAssignment;
    use crate::types::UserName;

    fn caller() -> UserCaller {
        UserCaller::of_user(Arc::new(User {
            name: UserName::new("u").unwrap(),
            display: "U".to_owned(),
            canonical: "c".to_owned(),
            configured: false,
        }))
    }

    fn role(issuer: &str, role: Role, container: Option<&str>) -> RoleAssignment {
        RoleAssignment {
            issuer: issuer.to_owned(),
            kind: PrincipalKind::Subject,
            principal: "u".to_owned(),
            role,
            container: container.map(|name| ContainerName::new(name).unwrap()),
        }
    }

    #[test]
    fn a_user_without_a_role_makes_containers_and_has_those_it_owns() {
        let mut user = caller();
        let scope = |container| Scope { account: "acct", container, assignments: &[] };
        assert!(user.permits(Action::CreateContainer, scope(Some("new"))).is_ok());
        assert!(user.permits(Action::ListContainers, scope(None)).is_ok());
        for action in [
            Action::ReadBlob,
            Action::ListBlobs { tagged: false },
            Action::Policy,
            Action::DeleteContainer,
        ] {
            assert!(user.permits(action, scope(Some("own"))).is_err());
        }
        user.owned.push(ContainerName::new("own").unwrap());
        for action in [
            Action::ReadBlob,
            Action::ListBlobs { tagged: false },
            Action::Policy,
            Action::DeleteContainer,
        ] {
            assert!(user.permits(action, scope(Some("own"))).is_ok());
            assert!(user.permits(action, scope(Some("other"))).is_err());
        }
        for action in [Action::ReadAccount, Action::WriteAccount, Action::FilterByTags] {
            assert!(user.permits(action, scope(None)).is_err());
        }
    }

    #[test]
    fn roles_of_a_user_are_not_those_of_a_subject_of_the_same_name() {
        let user = caller();
        for (issuer, permitted) in [(USER_ISSUER, true), ("https://i", false)] {
            let assignments = [role(issuer, Role::Reader, Some("photos"))];
            let scope = |container| Scope { account: "a", container, assignments: &assignments };
            let reads = |container| user.permits(Action::ReadBlob, scope(container)).is_ok();
            assert_eq!(reads(Some("photos")), permitted);
            assert!(!reads(Some("secrets")));
            assert!(user.permits(Action::WriteBlob, scope(Some("photos"))).is_err());
        }
    }
}
