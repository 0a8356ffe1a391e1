//! An HTTP/1.1 client for other servers: one request on each connection, no redirects. The caller
//! resolves the name once, checks the address, and passes the same address: so the name cannot
//! change to another address in between.

#![deny(clippy::indexing_slicing)]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderValue;
use http::Request;
use http::Response;
use http::Uri;
use http::header::HOST;
use http::header::USER_AGENT;
use http::uri::Authority;
use http::uri::PathAndQuery;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::env::Tasks;
use crate::env::net::Dial;
use crate::env::net::Stream;
use crate::env::net::TcpDial;

/// The most header lines of an answer.
const HEADERS_MAX: usize = 128;
/// The most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    /// The URL cannot be requested.
    #[error("not a URL that can be requested")]
    Url,
    /// The machine has no root certificates.
    #[error("this server has no root certificates for https")]
    Trust,
    /// The host is not a name that a certificate can have.
    #[error("it has no host name")]
    Name,
    /// No connection, or no trusted one.
    #[error("it cannot be reached: {0}")]
    Unreachable(io::Error),
    /// The server does not speak HTTP, or ended the connection.
    #[error("it ended the connection early: {0}")]
    Broken(hyper::Error),
}

/// A GET request.
#[derive(Debug)]
pub(crate) struct Get<'a> {
    pub(crate) url: &'a Uri,
    pub(crate) headers: HeaderMap,
}

/// A client; cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    dial: Arc<dyn Dial>,
    /// Made for the first request over https, because the machine's root certificates take a MiB.
    /// `None` when the machine has none.
    tls: Arc<OnceCell<Option<Arc<rustls::ClientConfig>>>>,
}

impl Client {
    /// Over TCP, trusting what the machine trusts.
    #[must_use]
    pub fn new() -> Self {
        Self { dial: Arc::new(TcpDial), tls: Arc::default() }
    }

    /// Without TLS, over connections of a test.
    #[cfg(test)]
    pub(crate) fn over(dial: Arc<dyn Dial>) -> Self {
        Self { dial, tls: Arc::new(OnceCell::from(None)) }
    }

    /// Over TCP, trusting a root of a test.
    #[cfg(test)]
    pub(crate) fn trusting(root: rustls::pki_types::CertificateDer<'static>) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(root).unwrap();
        Self { dial: Arc::new(TcpDial), tls: Arc::new(OnceCell::from(with_roots(roots))) }
    }

    /// The addresses of a host.
    ///
    /// # Errors
    /// The resolver's error.
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.dial.resolve(host.trim_matches(['[', ']']), port).await
    }

    /// Sends a request to `address`, which must be an address of the URL's host. The body of the
    /// answer is received as it is read.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn get(
        &self,
        Get { url, headers }: Get<'_>,
        address: SocketAddr,
        tasks: &Tasks,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut request = Request::get(url.clone());
        if let Some(wanted) = request.headers_mut() {
            *wanted = headers;
        }
        let request = request.body(Full::default()).map_err(|_| ClientError::Url)?;
        self.send(request, address, tasks).await
    }

    /// As [`Self::get`], with any method and a body.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        address: SocketAddr,
        tasks: &Tasks,
    ) -> Result<Response<Incoming>, ClientError> {
        let url = request.uri().clone();
        let request = to_origin(request)?;
        let host = url.host().ok_or(ClientError::Url)?;
        let stream = self.dial.connect(address).await.map_err(ClientError::Unreachable)?;
        let stream: Box<dyn Stream> = if url.scheme_str() == Some("https") {
            let tls = self.trust(tasks).await.ok_or(ClientError::Trust)?;
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
                .map_err(|_| ClientError::Name)?;
            let secured = TlsConnector::from(tls).connect(name, stream).await;
            Box::new(secured.map_err(ClientError::Unreachable)?)
        } else {
            stream
        };
        // Azure's metadata names are case-preserving.
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(ClientError::Broken)?;
        // The connection is closed when the body is dropped.
        drop(tasks.spawn_part("connection to another server", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another server ended early");
            }
        }));
        sender.send_request(request).await.map_err(ClientError::Broken)
    }

    /// What this client trusts. The files are read at the first call.
    async fn trust(&self, tasks: &Tasks) -> Option<Arc<rustls::ClientConfig>> {
        let read = || tasks.spawn_blocking("root certificates", trust);
        self.tls.get_or_try_init(read).await.ok()?.clone()
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// The port of a URL, or the default of its scheme.
pub(crate) fn port(url: &Uri, authority: &Authority) -> u16 {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    authority.port_u16().unwrap_or(default)
}

/// The request as the server of its URL gets it.
fn to_origin(mut request: Request<Full<Bytes>>) -> Result<Request<Full<Bytes>>, ClientError> {
    let authority = request.uri().authority().ok_or(ClientError::Url)?;
    let host = HeaderValue::from_str(authority.as_str()).map_err(|_| ClientError::Url)?;
    let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let target: Uri = target.parse().map_err(|_| ClientError::Url)?;
    *request.uri_mut() = target;
    let name = HeaderValue::from_static(concat!("Blockyard/", env!("CARGO_PKG_VERSION")));
    request.headers_mut().insert(HOST, host);
    request.headers_mut().insert(USER_AGENT, name);
    Ok(request)
}

/// The machine's root certificates.
fn trust() -> Option<Arc<rustls::ClientConfig>> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _unreadable) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return None;
    }
    with_roots(roots)
}

fn with_roots(roots: rustls::RootCertStore) -> Option<Arc<rustls::ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn root_certificates_are_read_when_they_are_needed() {
        let client = Client::new();
        assert!(!client.tls.initialized());
        let found = client.trust(&Tasks::new()).await;
        assert_eq!(client.tls.get().map(Option::is_some), Some(found.is_some()));
    }
}
