//! What is configured of https.

use std::path::PathBuf;

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSource {
    /// None: plain HTTP only.
    Off,
    /// The node's own authority.
    Auto,
    /// PEM files.
    Files {
        /// The certificate chain, the server's own first.
        cert: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}
