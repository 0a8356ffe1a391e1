//! TLS for the listeners: a certificate and its handshakes.

#![deny(clippy::indexing_slicing)]

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::time::Duration;

use thiserror::Error;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::server::TlsStream;
use yasna::ASN1Result;
use yasna::BERReaderSeq;
use yasna::Tag;
use yasna::tags::TAG_UTCTIME;

use crate::types::Timestamp;

/// The ALPN name of HTTP/2.
const H2: &[u8] = b"h2";
/// The ALPN name of HTTP/1.1.
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
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error("certificate and key are refused: {0}")]
    Refused(#[from] rustls::Error),
}

/// The `notAfter` of a certificate (RFC 5280, 4.1).
fn expiry(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let ends = yasna::parse_der(certificate, |reader| {
        reader.read_sequence(|reader| {
            let ends = reader.next().read_sequence(|reader| {
                reader.read_optional(|reader| {
                    reader.read_tagged(Tag::context(0), |reader| reader.read_i64())
                })?;
                // The serial number, the algorithm of the signature, the issuer.
                for _ in 0..3 {
                    reader.next().read_der()?;
                }
                let ends = reader.next().read_sequence(|reader| {
                    reader.next().read_der()?;
                    let ends = reader.next();
                    if ends.lookahead_tag()? == TAG_UTCTIME {
                        return Ok(*ends.read_utctime()?.datetime());
                    }
                    Ok(*ends.read_generalized_time()?.datetime())
                })?;
                skip_rest(reader)?;
                Ok(ends)
            })?;
            skip_rest(reader)?;
            Ok(ends)
        })
    });
    let seconds = u64::try_from(ends.ok()?.unix_timestamp()).ok()?;
    Some(Timestamp::from_unix(Duration::from_secs(seconds)))
}

fn skip_rest(reader: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    while reader.read_optional(|reader| reader.read_der())?.is_some() {}
    Ok(())
}

/// The protocols that TLS clients are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alpn {
    /// HTTP/2, else HTTP/1.1.
    Http2OrHttp1,
    /// HTTP/1.1 only.
    Http1,
}

/// A certificate, with an acceptor for each offer of protocols.
#[derive(Clone)]
struct Ready {
    expires: Option<Timestamp>,
    http2_or_http1: TlsAcceptor,
    http1: TlsAcceptor,
}

/// A certificate that can be replaced. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Ready>>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// Takes a certificate chain, the server's own first, and its private key (PKCS#8, PKCS#1 or
    /// SEC1), both PEM.
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
        Self::of(chain, key)
    }

    /// Takes a certificate chain, the server's own first, and its private key (PKCS#8), both DER.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_der(chain: Vec<Vec<u8>>, key: &[u8]) -> Result<Self, TlsError> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key)).clone_key();
        Self::of(chain.into_iter().map(CertificateDer::from).collect(), key)
    }

    fn of(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let first = chain.first().ok_or(TlsError::NoCertificate)?;
        let expires = expiry(first);
        // Explicit, so that another crate that adds another provider to the build has no effect.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        let http1 = TlsAcceptor::from(Arc::new(config.clone()));
        config.alpn_protocols = vec![H2.to_vec(), HTTP_1_1.to_vec()];
        let http2_or_http1 = TlsAcceptor::from(Arc::new(config));
        Ok(Self(Arc::new(RwLock::new(Ready { expires, http2_or_http1, http1 }))))
    }

    /// When the current certificate expires; `None` when that cannot be read.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).expires
    }

    /// Replaces the certificate for later handshakes, of all clones too.
    pub fn replace(&self, other: &Self) {
        let ready = other.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = ready;
    }

    /// Performs the handshake on `stream`. The caller limits its time.
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

#[cfg(test)]
mod tests {
    use rcgen::CertificateParams;
    use rcgen::KeyPair;

    use super::*;

    fn ending(seconds: u64) -> Tls {
        let ends = Timestamp::from_unix(Duration::from_secs(seconds));
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = ends.to_system_time().into();
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        Tls::from_pem(&made.pem(), &key.serialize_pem()).unwrap()
    }

    #[test]
    fn end_of_the_certificate_that_is_shown_is_known() {
        // 2026, and a year that needs the longer form of times.
        for seconds in [1_795_334_400, 2_700_000_000] {
            let ends = Timestamp::from_unix(Duration::from_secs(seconds));
            let tls = ending(1_795_000_000);
            let shared = tls.clone();
            tls.replace(&ending(seconds));
            assert_eq!(shared.expires(), Some(ends), "{seconds}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        for bytes in [&b""[..], b"\x30", b"\x30\x03\x02\x01\x01", &[0xff; 64]] {
            assert_eq!(expiry(&CertificateDer::from(bytes.to_vec())), None);
        }
    }
}
