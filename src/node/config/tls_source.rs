//! The configuration of https.

use std::path::PathBuf;

use super::error::ConfigError;
use super::pfx_file::PfxFile;
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
    /// A PFX file.
    Pfx(PfxFile),
}

/// The files that are given.
#[derive(Debug)]
pub(super) struct GivenFiles {
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    /// Counts before the others: only a flag of `blockyard azurite` gives it.
    pub(super) pfx: Option<PfxFile>,
}

impl TlsSource {
    /// Checks the given values.
    ///
    /// # Errors
    /// [`ConfigError`] for a certificate without its key, and for files in addition to `auto`.
    pub(super) fn of(mode: Option<TlsMode>, files: GivenFiles) -> Result<Self, ConfigError> {
        let GivenFiles { cert, key, pfx } = files;
        match (mode, pfx, cert, key) {
            (Some(TlsMode::Off), ..) | (None, None, None, None) => Ok(Self::Off),
            (Some(TlsMode::Auto), None, None, None) => Ok(Self::Auto),
            (Some(TlsMode::Auto), ..) => Err(ConfigError::TlsTwice),
            (None, Some(pfx), _, _) => Ok(Self::Pfx(pfx)),
            (None, None, Some(cert), Some(key)) => Ok(Self::Files { cert, key }),
            (None, None, _, _) => Err(ConfigError::TlsHalf),
        }
    }
}
