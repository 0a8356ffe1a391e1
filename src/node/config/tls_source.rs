//! What is configured of https.

use std::path::PathBuf;

use super::error::ConfigError;
use super::settings::TlsMode;

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

impl TlsSource {
    /// Checks what is given.
    ///
    /// # Errors
    /// [`ConfigError`] for a certificate without its key, and for files in addition to `auto`.
    pub(super) fn of(
        mode: Option<TlsMode>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Self, ConfigError> {
        match (mode, cert, key) {
            (Some(TlsMode::Off), _, _) | (None, None, None) => Ok(Self::Off),
            (Some(TlsMode::Auto), None, None) => Ok(Self::Auto),
            (Some(TlsMode::Auto), _, _) => Err(ConfigError::TlsTwice),
            (None, Some(cert), Some(key)) => Ok(Self::Files { cert, key }),
            (None, _, _) => Err(ConfigError::TlsHalf),
        }
    }
}
