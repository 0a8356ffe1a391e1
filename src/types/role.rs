//! Roles, and who has them where.

use serde::{Deserialize, Serialize};

use crate::types::ContainerName;

/// A role for blob data; each may do what those before it may. The order of the variants is on
/// disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Storage Blob Data Reader: reads and lists, and takes user delegation keys.
    Reader,
    /// Storage Blob Data Contributor: writes and deletes too, blobs and containers.
    Contributor,
    /// Storage Blob Data Owner: everything a token can be used for; tags and access policies too.
    Owner,
}

impl Role {
    /// Every role, highest first.
    pub const ALL: [Self; 3] = [Self::Owner, Self::Contributor, Self::Reader];

    /// Its name in commands; part of what user delegation keys are derived from.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Contributor => "contributor",
            Self::Owner => "owner",
        }
    }

    /// The name Azure has for it.
    #[must_use]
    pub const fn azure_name(self) -> &'static str {
        match self {
            Self::Reader => "Storage Blob Data Reader",
            Self::Contributor => "Storage Blob Data Contributor",
            Self::Owner => "Storage Blob Data Owner",
        }
    }

    /// The role of that name, in either form.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name || role.azure_name() == name)
    }
}

/// What a role assignment names. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrincipalKind {
    /// One user or application: `oid` of its tokens, or `sub` where there is none.
    Subject,
    /// Everybody whose tokens have this value in the claim for groups.
    Group,
}

/// A role that a principal has in an account, or in one of its containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleAssignment {
    /// Whose tokens: two issuers may use the same subject or group for different people.
    pub issuer: String,
    /// What `principal` is.
    pub kind: PrincipalKind,
    /// The subject or the group.
    pub principal: String,
    /// The role.
    pub role: Role,
    /// The only container it holds in, by name; the whole account if there is none.
    pub container: Option<ContainerName>,
}
