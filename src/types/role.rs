//! Roles and role assignments.

use serde::{Deserialize, Serialize};

use crate::types::ContainerName;

/// A role for blob data. Each role includes those before it. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Storage Blob Data Reader: reads, lists and gets user delegation keys.
    Reader,
    /// Storage Blob Data Contributor: also writes and deletes blobs and containers.
    Contributor,
    /// Storage Blob Data Owner: everything a token permits, tags and access policies included.
    Owner,
}

impl Role {
    /// Every role, highest first.
    pub const ALL: [Self; 3] = [Self::Owner, Self::Contributor, Self::Reader];

    /// Its name in commands. User delegation keys are derived from it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Contributor => "contributor",
            Self::Owner => "owner",
        }
    }

    /// Azure's name for it.
    #[must_use]
    pub const fn azure_name(self) -> &'static str {
        match self {
            Self::Reader => "Storage Blob Data Reader",
            Self::Contributor => "Storage Blob Data Contributor",
            Self::Owner => "Storage Blob Data Owner",
        }
    }

    /// The role with this name of either kind.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name || role.azure_name() == name)
    }
}

/// The kind of principal in a role assignment. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrincipalKind {
    /// One user or application: the `oid` of its tokens, or `sub` if there is none.
    Subject,
    /// Every principal whose tokens have this value in the groups claim.
    Group,
}

/// A role that a principal has in an account, or in one of its containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleAssignment {
    /// The issuer of the principal's tokens. Two issuers may use the same subject for different
    /// people.
    pub issuer: String,
    /// Whether `principal` is a subject or a group.
    pub kind: PrincipalKind,
    /// The subject or the group.
    pub principal: String,
    /// The role.
    pub role: Role,
    /// The name of the container it is limited to; `None` for the whole account.
    pub container: Option<ContainerName>,
}
