//! How content is encrypted, in addition to encryption of the disk.

use serde::{Deserialize, Serialize};

/// Encryption in addition to that of the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// With a customer-provided key, which each request brings. Its SHA-256.
    Customer([u8; 32]),
    /// Under a scope that is a name and nothing else: the content is plain.
    Scope(String),
    /// Under a scope with a key of its own, which the account has. A row has the key apart.
    KeyedScope {
        /// Its name.
        name: String,
        /// SHA-256 of its key.
        key_sha256: [u8; 32],
    },
}

impl Encryption {
    /// The name of the scope.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        match self {
            Self::Scope(name) | Self::KeyedScope { name, .. } => Some(name),
            Self::Customer(_) => None,
        }
    }

    /// SHA-256 of the key under which the content is.
    #[must_use]
    pub const fn key_sha256(&self) -> Option<[u8; 32]> {
        match self {
            Self::Customer(key_sha256) | Self::KeyedScope { key_sha256, .. } => Some(*key_sha256),
            Self::Scope(_) => None,
        }
    }

    /// Whether the key comes with each request.
    #[must_use]
    pub const fn is_by_customer(&self) -> bool {
        match self {
            Self::Customer(_) => true,
            Self::Scope(_) | Self::KeyedScope { .. } => false,
        }
    }
}

/// A container's default scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncryptionScope {
    /// Its name.
    pub name: String,
    /// Whether requests for blobs must not name another scope or bring a key.
    pub deny_override: bool,
}
