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
    /// A PFX file cannot be used.
    #[error("{path}: {error}")]
    Pfx {
        /// The file.
        path: PathBuf,
        /// Why.
        error: PfxError,
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

/// Why a PFX file cannot be used.
#[derive(Debug, Error)]
pub enum PfxError {
    /// It cannot be opened with the password.
    #[error(
        "the password is wrong, the file is damaged, or its key is encrypted in a way that is not read: give its \
         password with --pwd, or export it again with `openssl pkcs12 -export`"
    )]
    Password,
    /// It is not a PFX file.
    #[error(
        "it is not a PFX file, or is damaged: give one with --cert and --pwd, or PEM files with --cert and --key"
    )]
    Damaged,
    /// It is encrypted or protected in a way that is not known.
    #[error(
        "it uses an algorithm, or a number of rounds, that is not read: export it again with `openssl pkcs12 -export`, \
         without -pbmac1_pbkdf2 and -iter"
    )]
    Algorithm,
    /// It has no private key.
    #[error(
        "it has no private key: export it again with the key (`openssl pkcs12 -export -inkey KEY.pem`)"
    )]
    NoKey,
    /// It has no certificate.
    #[error(
        "it has no certificate: export it again with the certificate (`openssl pkcs12 -export -in CERT.pem`)"
    )]
    NoCertificate,
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error("{0}; export it again with the key that belongs to the certificate")]
    Refused(TlsError),
}
