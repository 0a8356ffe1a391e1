//! The entitlements that user delegation keys depend on. A key permits no more than what its holder
//! may do when it is used.

use std::collections::BTreeSet;

use crate::types::PrincipalKind;
use crate::types::Role;
use crate::types::RoleAssignment;

/// The largest number of groups of an issuer that user delegation keys of an account may depend on:
/// those that were given a role first. Each signature is compared with all of them, and any client
/// can send a forged one.
pub(super) const GROUPS_MAX: usize = 32;

/// A trusted issuer of tokens: its name, and where its claims count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// The exact value of the claim `iss` of its tokens.
    pub name: String,
    /// Accounts in which roles that its tokens claim count. In other accounts only role assignments
    /// count.
    pub accounts: Vec<String>,
}

impl TrustedIssuer {
    /// Whether roles that its tokens claim count in an account.
    #[must_use]
    pub fn rules(&self, account: &str) -> bool {
        self.accounts.iter().any(|own| own == account)
    }
}

/// The place where a role is needed.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The account.
    pub account: &'a str,
    /// The container; `None` for a role in the whole account.
    pub container: Option<&'a str>,
    /// The account's role assignments.
    pub assignments: &'a [RoleAssignment],
}

impl<'a> Scope<'a> {
    /// The whole account.
    pub(super) const fn whole_account(self) -> Self {
        Self { container: None, ..self }
    }

    /// Assignments to principals of an issuer that count here.
    fn of(self, issuer: &str) -> impl Iterator<Item = &'a RoleAssignment> {
        self.assignments.iter().filter(move |assignment| {
            let container = assignment.container.as_ref().map(crate::types::ContainerName::as_str);
            assignment.issuer == issuer && (container.is_none() || container == self.container)
        })
    }

    /// The highest role that is assigned to a subject.
    pub(super) fn of_subject(self, issuer: &str, subject: &str) -> Option<Role> {
        let own = self.of(issuer).filter(|assignment| {
            assignment.kind == PrincipalKind::Subject && assignment.principal == subject
        });
        own.map(|assignment| assignment.role).max()
    }

    /// Each role that is assigned to a group, with the group.
    pub(super) fn of_groups(self, issuer: &str) -> impl Iterator<Item = (&'a str, Role)> {
        let groups = self.of(issuer).filter(|assignment| assignment.kind == PrincipalKind::Group);
        groups.map(|assignment| (assignment.principal.as_str(), assignment.role))
    }
}

/// The entitlement of the holder of a user delegation key. The key is derived from it and not
/// stored. When the key is used, its entitlement is checked against the current role assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entitlement<'a> {
    /// An assignment to the holder.
    Subject {
        /// The holder's issuer.
        issuer: &'a str,
    },
    /// The holder's token claimed a role. Tokens are not stored, so this counts until the key
    /// expires.
    Claims {
        /// The holder's issuer.
        issuer: &'a str,
        /// The role.
        role: Role,
    },
    /// An assignment to a group that the holder's token claimed. The membership counts until the
    /// key expires.
    Group {
        /// The holder's issuer.
        issuer: &'a str,
        /// The group.
        name: &'a str,
    },
}

impl<'a> Entitlement<'a> {
    /// The holder's issuer.
    pub(super) const fn issuer(self) -> &'a str {
        match self {
            Self::Subject { issuer } | Self::Claims { issuer, .. } | Self::Group { issuer, .. } => {
                issuer
            }
        }
    }

    /// Its text, from which keys are derived. Names are preceded by their lengths, so that the text
    /// is unique.
    #[must_use]
    pub fn text(self) -> String {
        let issuer = self.issuer();
        let (kind, name) = match self {
            Self::Subject { .. } => ("subject", ""),
            Self::Claims { role, .. } => ("claims", role.name()),
            Self::Group { name, .. } => ("group", name),
        };
        format!("{kind} {} {issuer} {} {name}", issuer.len(), name.len())
    }

    /// All entitlements that user delegation keys of an account may depend on now: at most four,
    /// and [`GROUPS_MAX`] for each issuer.
    pub(super) fn all(
        issuers: &'a [TrustedIssuer],
        scope: Scope<'a>,
    ) -> impl Iterator<Item = Self> {
        issuers.iter().flat_map(move |trusted| {
            let issuer = trusted.name.as_str();
            let roles = if trusted.rules(scope.account) { Role::ALL.as_slice() } else { &[] };
            let claims = roles.iter().map(move |role| Self::Claims { issuer, role: *role });
            let mut seen = BTreeSet::new();
            let groups = scope.whole_account().of_groups(issuer).map(|(name, _)| name);
            let groups = groups.filter(move |name| seen.insert(*name)).take(GROUPS_MAX);
            let groups = groups.map(move |name| Self::Group { issuer, name });
            std::iter::once(Self::Subject { issuer }).chain(claims).chain(groups)
        })
    }

    /// The role of a key's holder, `object`, where the key is used.
    pub(super) fn role(self, object: &str, scope: Scope<'_>) -> Option<Role> {
        let own = scope.of_subject(self.issuer(), object);
        let more = match self {
            Self::Subject { .. } => None,
            Self::Claims { role, .. } => Some(role),
            Self::Group { issuer, name } => {
                let of_group = scope.of_groups(issuer).filter(|(group, _)| *group == name);
                of_group.map(|(_, role)| role).max()
            }
        };
        own.max(more)
    }
}

#[cfg(test)]
mod tests;
