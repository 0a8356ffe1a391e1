//! Roles of whoever comes with a token.

/// What a role may do; each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads and lists, and takes user delegation keys.
    Reader,
    /// Writes and deletes too, blobs and containers.
    Contributor,
    /// Everything a token can be used for: tags and access policies too.
    Owner,
}

impl Role {
    /// Every role, highest first.
    pub const ALL: [Self; 3] = [Self::Owner, Self::Contributor, Self::Reader];

    /// Its name, part of what user delegation keys are derived from.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Contributor => "contributor",
            Self::Owner => "owner",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}
