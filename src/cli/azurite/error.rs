//! Why `blockyard azurite` does not start.

use thiserror::Error;

/// Why `blockyard azurite` does not start.
#[derive(Debug, Error)]
pub enum AzuriteError {
    /// A host is no address.
    #[error("{flag} {host}: write an IP address or localhost; names are not looked up")]
    Host {
        /// The flag.
        flag: &'static str,
        /// The host.
        host: String,
    },
    /// A PFX file.
    #[error(
        "{0} is a PFX file, and certificates are read from PEM files: convert it with `openssl pkcs12 -in {0} \
         -clcerts -nokeys -out cert.pem` and `openssl pkcs12 -in {0} -nocerts -nodes -out key.pem`, and give these \
         with --cert cert.pem --key key.pem"
    )]
    Pfx(String),
}
