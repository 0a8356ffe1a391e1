//! The client of other servers, over HTTP/1.1: one request, one connection, no redirects. Who may
//! be asked is for the caller to say, of the very address it connects to: a name is resolved once,
//! so that it cannot turn to another address in between.

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
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::env::Tasks;
use crate::env::net::Dial;
use crate::env::net::Stream;
use crate::env::net::TcpDial;

/// Header lines of an answer.
const HEADERS_MAX: usize = 128;
/// Bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Why another server gives no answer.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    /// Nothing a request can be made of.
    #[error("not a URL that can be requested")]
    Url,
    /// The machine has no roots of trust.
    #[error("this server has no root certificates for https")]
    Trust,
    /// Its host is no name that a certificate could have.
    #[error("it has no host name")]
    Name,
    /// No connection, or none that is trusted.
    #[error("it cannot be reached: {0}")]
    Unreachable(io::Error),
    /// What answered does not speak HTTP, or broke off.
    #[error("it ended the connection early: {0}")]
    Broken(hyper::Error),
}

/// How other servers are reached; cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    dial: Arc<dyn Dial>,
    /// None when the machine has no roots of trust.
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Client {
    /// Over TCP, trusting what the machine trusts.
    #[must_use]
    pub fn new() -> Self {
        Self { dial: Arc::new(TcpDial), tls: trust() }
    }

    /// Without TLS, over connections of a test.
    #[cfg(test)]
    pub(crate) fn over(dial: Arc<dyn Dial>) -> Self {
        Self { dial, tls: None }
    }

    /// Over TCP, trusting a root of a test.
    #[cfg(test)]
    pub(crate) fn trusting(root: rustls::pki_types::CertificateDer<'static>) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(root).unwrap();
        Self { dial: Arc::new(TcpDial), tls: with_roots(roots) }
    }

    /// The addresses of a host.
    ///
    /// # Errors
    /// The resolver's error.
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.dial.resolve(host.trim_matches(['[', ']']), port).await
    }

    /// Sends a GET with these headers to `address`, as the server of `url`; its body follows as it
    /// is read.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn get(
        &self,
        (url, headers): (&Uri, HeaderMap),
        address: SocketAddr,
        tasks: &Tasks,
    ) -> Result<Response<Incoming>, ClientError> {
        let request = request(url, headers)?;
        let host = url.host().ok_or(ClientError::Url)?;
        let stream = self.dial.connect(address).await.map_err(ClientError::Unreachable)?;
        let stream: Box<dyn Stream> = if url.scheme_str() == Some("https") {
            let tls = self.tls.clone().ok_or(ClientError::Trust)?;
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
                .map_err(|_| ClientError::Name)?;
            let secured = TlsConnector::from(tls).connect(name, stream).await;
            Box::new(secured.map_err(ClientError::Unreachable)?)
        } else {
            stream
        };
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(ClientError::Broken)?;
        // Ends with the body: whoever drops that closes the connection.
        drop(tasks.spawn_part("connection to another server", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another server ended early");
            }
        }));
        sender.send_request(request).await.map_err(ClientError::Broken)
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// The port a URL names, or the one its scheme stands for.
pub(crate) fn port(url: &Uri, authority: &Authority) -> u16 {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    authority.port_u16().unwrap_or(default)
}

fn request(url: &Uri, headers: HeaderMap) -> Result<Request<Empty<Bytes>>, ClientError> {
    let authority = url.authority().ok_or(ClientError::Url)?;
    let target = url.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut request = Request::get(target).body(Empty::new()).map_err(|_| ClientError::Url)?;
    let host = HeaderValue::from_str(authority.as_str()).map_err(|_| ClientError::Url)?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, host);
    let name = HeaderValue::from_static(concat!("Blockyard/", env!("CARGO_PKG_VERSION")));
    request.headers_mut().insert(USER_AGENT, name);
    Ok(request)
}

/// The machine's roots of trust.
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
