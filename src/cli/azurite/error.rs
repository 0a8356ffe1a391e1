//! Why `blockyard azurite` does not start.

use thiserror::Error;

/// Why `blockyard azurite` does not start.
#[derive(Debug, Error)]
pub enum AzuriteError {
    /// A host is not an address.
    #[error("{flag} {host}: write an IP address or localhost; names are not looked up")]
    Host {
        /// The flag.
        flag: &'static str,
        /// The host.
        host: String,
    },
}
