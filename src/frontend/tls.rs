//! TLS for the blob listener: a certificate made ready, and handshakes within a time.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use thiserror::Error;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::server::TlsStream;

/// HTTP/2 as ALPN names it.
const H2: &[u8] = b"h2";
/// HTTP/1.1 as ALPN names it.
const HTTP_1_1: &[u8] = b"http/1.1";

/// Why a certificate cannot be served.
#[derive(Debug, Error)]
pub enum TlsError {
    /// No certificate in the text.
    #[error("no certificate in it: a PEM file with -----BEGIN CERTIFICATE----- is needed")]
    NoCertificate,
    /// No private key in the text.
    #[error("no private key in it: a PEM file with -----BEGIN PRIVATE KEY----- is needed")]
    NoKey,
    /// Certificate and key do not belong together, or are of a kind not served.
    #[error("certificate and key are refused: {0}")]
    Refused(#[from] rustls::Error),
}

/// What TLS clients are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alpn {
    /// HTTP/2, else HTTP/1.1.
    Http2OrHttp1,
    /// HTTP/1.1 only.
    Http1,
}

/// A certificate made ready, once for each offer.
#[derive(Clone)]
struct Ready {
    http2_or_http1: TlsAcceptor,
    http1: TlsAcceptor,
}

/// A certificate ready to answer handshakes; cheap to clone. Clones share it, so that one may
/// replace it for all.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Ready>>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// Takes a certificate chain, the server's own first, and its private key (PKCS#8, PKCS#1 or SEC1), both PEM.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, TlsError> {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(chain.as_bytes()).filter_map(Result::ok).collect();
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| TlsError::NoKey)?;
        // Named, so that another crate that brings another provider into the build changes nothing here.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        let http1 = TlsAcceptor::from(Arc::new(config.clone()));
        config.alpn_protocols = vec![H2.to_vec(), HTTP_1_1.to_vec()];
        let http2_or_http1 = TlsAcceptor::from(Arc::new(config));
        Ok(Self(Arc::new(RwLock::new(Ready { http2_or_http1, http1 }))))
    }

    /// Has handshakes from now on, on all clones, show the certificate of `other`.
    pub fn replace(&self, other: &Self) {
        let ready = other.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = ready;
    }

    /// Shakes hands on `stream`. How long that may take is for the caller to bound.
    ///
    /// # Errors
    /// The client's or the stream's.
    pub(super) async fn accept<S>(&self, stream: S, alpn: Alpn) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = {
            let ready = self.0.read().unwrap_or_else(PoisonError::into_inner);
            match alpn {
                Alpn::Http2OrHttp1 => ready.http2_or_http1.clone(),
                Alpn::Http1 => ready.http1.clone(),
            }
        };
        acceptor.accept(stream).await
    }
}
