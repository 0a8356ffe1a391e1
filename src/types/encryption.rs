//! How content is encrypted, in addition to encryption of the disk.

use serde::{Deserialize, Serialize};

/// Encryption in addition to that of the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// With a customer-provided key, which each request brings. Its SHA-256.
    Customer([u8; 32]),
    /// Under a named scope.
    Scope(String),
}

/// A container's default scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncryptionScope {
    /// Its name.
    pub name: String,
    /// Whether requests for blobs must not name another scope or bring a key.
    pub deny_override: bool,
}
