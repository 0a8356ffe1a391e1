//! Whom commands trust over TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// Trusts the authorities of the machine, and those in the PEM file `authority`.
///
/// # Errors
/// The file cannot be read, or holds no certificate.
pub(super) fn connector(authority: Option<&Path>) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = authority {
        let text = std::fs::read_to_string(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        let found = CertificateDer::pem_slice_iter(text.as_bytes()).filter_map(Result::ok);
        if roots.add_parsable_certificates(found).0 == 0 {
            let error = format!("{} holds no certificate in PEM", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
