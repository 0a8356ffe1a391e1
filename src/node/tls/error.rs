//! Why a certificate cannot be served.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::frontend::tls::TlsError;

/// Why a certificate cannot be served.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// A file cannot be read or written.
    #[error("{path}: {error}; make it accessible, or give others with --tls-cert and --tls-key")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The certificate or key cannot be used.
    #[error("{path}: {error}; give others with --tls-cert and --tls-key")]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why.
        error: TlsError,
    },
    /// Only one file of the authority exists.
    #[error(
        "{missing} is missing although {present} is there: restore it, or remove both for a new authority"
    )]
    HalfAuthority {
        /// The file that is not there.
        missing: PathBuf,
        /// The file that is.
        present: PathBuf,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate in {path}: {error}")]
    Make {
        /// The folder of the authority.
        path: PathBuf,
        /// Why.
        error: rcgen::Error,
    },
}
