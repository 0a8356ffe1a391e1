//! An HTTP/1.1 client that keeps its connections: one request at a time on each.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::Request;
use http::StatusCode;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::Limited;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::cli::trust;
use crate::env::Tasks;
use crate::env::net::Dial;
use crate::env::net::Stream;
use crate::env::net::TcpDial;

use super::endpoint::Endpoint;

/// The longest time to connect to one address, TLS included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(20);
/// The longest time until a connection is free for its next request. A server may have answered
/// before it has read the whole request.
const READY_TIME_MAX: Duration = Duration::from_secs(1);
/// The most header lines of an answer.
const HEADERS_MAX: usize = 256;
/// The most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 256 << 10;

type Sender = http1::SendRequest<Full<Bytes>>;

/// An answer, its body read to the end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// A header as text; empty if there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Connections to a few endpoints.
pub(super) struct Http {
    tls: TlsConnector,
    /// Connections that wait for a request, by scheme and authority.
    idle: Mutex<HashMap<(bool, String), Vec<Sender>>>,
    tasks: Tasks,
}

impl Http {
    /// Trusts the authorities of the machine, and those in a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate.
    pub(super) fn new(authority: Option<&Path>, tasks: Tasks) -> io::Result<Self> {
        let idle = Mutex::new(HashMap::new());
        Ok(Self { tls: trust::connector(authority)?, idle, tasks })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// Why there is no answer: nothing listens there, it took longer than `patience`, the
    /// connection broke, or the body has more than `body_max` bytes.
    pub(super) async fn send(
        &self,
        to: &Endpoint,
        request: Request<Full<Bytes>>,
        body_max: usize,
        patience: Duration,
    ) -> Result<Answer, String> {
        let mut sender = match self.waiting(to).await {
            Some(sender) => sender,
            None => self.connect(to).await?,
        };
        let exchange = async {
            let answered = sender.send_request(request).await;
            let (head, body) = answered.map_err(|error| broken(&error))?.into_parts();
            let body = Limited::new(body, body_max).collect().await;
            let body = body.map_err(|error| broken(error.as_ref()))?.to_bytes();
            Ok::<_, String>(Answer { status: head.status, headers: head.headers, body })
        };
        let late = |_| format!("no answer within {} s", patience.as_secs());
        let answer = tokio::time::timeout(patience, exchange).await.map_err(late)??;
        if !sender.is_closed() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.entry((to.tls, to.authority.clone())).or_default().push(sender);
        }
        Ok(answer)
    }

    /// A connection that can be used again.
    async fn waiting(&self, to: &Endpoint) -> Option<Sender> {
        loop {
            let mut sender = {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                idle.get_mut(&(to.tls, to.authority.clone()))?.pop()?
            };
            let ready = tokio::time::timeout(READY_TIME_MAX, sender.ready()).await;
            if ready.is_ok_and(|ready| ready.is_ok()) {
                return Some(sender);
            }
        }
    }

    async fn connect(&self, to: &Endpoint) -> Result<Sender, String> {
        let place = &to.authority;
        let addresses = TcpDial.resolve(&to.host, to.port).await;
        let addresses = addresses.map_err(|error| format!("{place}: {error}"))?;
        let mut why = format!("{place} has no address");
        for address in addresses {
            let opening = tokio::time::timeout(CONNECT_TIME_MAX, self.open(to, address));
            match opening.await {
                Ok(Ok(sender)) => return Ok(sender),
                Ok(Err(error)) => why = format!("cannot connect to {place}: {error}"),
                Err(_) => why = format!("cannot connect to {place}: it does not answer"),
            }
        }
        Err(why)
    }

    async fn open(&self, to: &Endpoint, address: std::net::SocketAddr) -> io::Result<Sender> {
        let stream = TcpDial.connect(address).await?;
        let stream: Box<dyn Stream> = if to.tls {
            let name = ServerName::try_from(to.host.clone()).map_err(io::Error::other)?;
            Box::new(self.tls.connect(name, stream).await?)
        } else {
            stream
        };
        let (sender, connection) = http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        drop(self.tasks.spawn("connection to a blob service", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        }));
        Ok(sender)
    }
}

/// A broken connection, with the causes that the library hides behind the first text.
fn broken(error: &dyn std::error::Error) -> String {
    let mut text = format!("the connection broke: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
