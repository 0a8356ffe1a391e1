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
