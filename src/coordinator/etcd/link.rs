//! The connection to one member at a time.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::Mutex as Locked;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use http::uri::Scheme;
use hyper::client::conn::http2;
use hyper::client::conn::http2::SendRequest;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_util::sync::CancellationToken;

use crate::env::Env;
use crate::env::Tasks;
use crate::env::net::Dial;
use crate::env::net::Stream;

use super::config::EtcdConfig;
use super::config::EtcdTls;
use super::grpc::Outgoing;

/// Bytes of one answer that may be on the way. A watch that nobody reads holds this many of the
/// connection's.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of all answers that may be on the way.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// How often a connection with open calls is tested. Etcd ends one that is tested more often than
/// every 5 s (`--grpc-keepalive-min-time`).
const PING_EVERY: Duration = Duration::from_secs(10);
/// How long the answer to a test may take.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct Connection {
    pub sender: SendRequest<Outgoing>,
    /// Scheme and authority of the member.
    pub origin: Uri,
    number: u64,
}

/// The members, and the connection to one of them.
pub(super) struct Link {
    endpoints: Vec<Uri>,
    tls: Option<TlsConnector>,
    dial: Arc<dyn Dial>,
    env: Env,
    connect_timeout: Duration,
    current: Locked<Option<Connection>>,
    opening: Mutex<Opening>,
}

struct Opening {
    /// Ends the connections.
    cut: CancellationToken,
    /// Connections that were tried.
    tried: u64,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

impl Link {
    /// Checks the configuration. Connects to nobody yet.
    ///
    /// # Errors
    /// What is wrong, for the operator.
    pub(super) fn new(config: &EtcdConfig, dial: Arc<dyn Dial>, env: &Env) -> Result<Self, String> {
        if config.endpoints.is_empty() {
            return Err("no address of an etcd is given".to_owned());
        }
        let endpoints = config.endpoints.iter().map(|text| origin(text));
        let endpoints = endpoints.collect::<Result<Vec<Uri>, String>>()?;
        let secured = endpoints.iter().filter(|uri| is_tls(uri)).count();
        if config.tls.is_some() && secured < endpoints.len() {
            return Err("an address of etcd has no https, although TLS is set up".to_owned());
        }
        if secured > 0 && secured < endpoints.len() {
            return Err("addresses of etcd have https or http, not both".to_owned());
        }
        if config.user.is_some() && endpoints.iter().any(|uri| !is_tls(uri) && !is_here(uri)) {
            let why = "a password for etcd is sent over https only, except to this machine";
            return Err(why.to_owned());
        }
        let tls = match (secured, &config.tls) {
            (0, _) => None,
            (_, Some(tls)) => Some(connector(tls)?),
            (_, None) => Some(connector(&EtcdTls::default())?),
        };
        let cut = env.tasks.stopping().child_token();
        Ok(Self {
            endpoints,
            tls,
            dial,
            env: env.clone(),
            connect_timeout: config.connect_timeout,
            current: Locked::default(),
            opening: Mutex::new(Opening { cut, tried: 0 }),
        })
    }

    /// The connection, opened if there is none. One caller at a time connects, to one member. The
    /// next attempt takes the next member.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn connection(&self) -> Result<Connection, String> {
        let mut opening = self.opening.lock().await;
        if let Some(current) = self.current().clone().filter(|one| !one.sender.is_closed()) {
            return Ok(current);
        }
        if self.env.tasks.stopping().is_cancelled() {
            return Err("the program is stopping".to_owned());
        }
        let number = opening.tried;
        // Before the attempt, which the caller may drop.
        opening.tried += 1;
        let at = usize::try_from(number).unwrap_or(0) % self.endpoints.len();
        let origin = self.endpoints[at].clone();
        let cut = opening.cut.child_token();
        let sender = tokio::select! {
            biased;
            opened = self.open(&origin, cut) => opened,
            () = self.env.clock.sleep(self.connect_timeout) => Err("it takes too long".to_owned()),
        };
        let sender = sender.map_err(|why| format!("cannot connect to {origin}: {why}"))?;
        let opened = Connection { sender, origin, number };
        *self.current() = Some(opened.clone());
        Ok(opened)
    }

    /// Uses this connection no longer. Calls on it go on.
    pub(super) fn leave(&self, failed: &Connection) {
        let mut current = self.current();
        if current.as_ref().is_some_and(|current| current.number == failed.number) {
            *current = None;
        }
    }

    /// As [`Self::leave`], whichever it is.
    pub(super) fn leave_current(&self) {
        *self.current() = None;
    }

    /// Breaks the connections, with all calls on them.
    #[cfg(test)]
    pub(super) async fn break_all(&self) {
        let mut opening = self.opening.lock().await;
        opening.cut.cancel();
        opening.cut = self.env.tasks.stopping().child_token();
        *self.current() = None;
    }

    fn current(&self) -> MutexGuard<'_, Option<Connection>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(
        &self,
        origin: &Uri,
        cut: CancellationToken,
    ) -> Result<SendRequest<Outgoing>, String> {
        let authority = origin.authority().ok_or("it has no host")?;
        let host = host(authority);
        let port = authority.port_u16().unwrap_or(2379);
        let addresses = self.dial.resolve(host, port).await.map_err(|error| error.to_string())?;
        let mut opened = Err("its name has no address".to_owned());
        for address in addresses {
            opened = self.dial.connect(address).await.map_err(|error| error.to_string());
            if opened.is_ok() {
                break;
            }
        }
        let stream = opened?;
        let stream: Box<dyn Stream> = match &self.tls {
            Some(tls) if is_tls(origin) => {
                let name = ServerName::try_from(host.to_owned()).map_err(|e| e.to_string())?;
                let secured = tls.connect(name, stream).await;
                Box::new(secured.map_err(|error| format!("TLS: {error}"))?)
            }
            Some(_) | None => stream,
        };
        let tasks = self.env.tasks.clone();
        let spawn = Spawn { tasks, cut };
        let (sender, connection) = http2::Builder::new(spawn.clone())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        spawn.execute(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to etcd ended");
            }
        });
        Ok(sender)
    }
}

/// Runs the parts of a connection until it is cut.
#[derive(Clone)]
struct Spawn {
    tasks: Tasks,
    cut: CancellationToken,
}

impl<F> Executor<F> for Spawn
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, part: F) {
        let cut = self.cut.clone();
        drop(self.tasks.spawn("connection to etcd", async move {
            tokio::select! {
                biased;
                () = cut.cancelled() => {}
                _ = part => {}
            }
        }));
    }
}

/// Scheme and authority of an address; `https://` or `http://` must precede it.
fn origin(text: &str) -> Result<Uri, String> {
    // It may have a password.
    let shown = if text.contains('@') { "an address with a user" } else { text };
    let refused = || format!("{shown} is no address of etcd, such as https://etcd-1:2379");
    let uri: Uri = text.parse().map_err(|_| refused())?;
    let is_known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
    let is_bare = uri.path() == "/" && uri.query().is_none();
    let has_name = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if is_known && is_bare && has_name { Ok(uri) } else { Err(refused()) }
}

fn is_tls(origin: &Uri) -> bool {
    origin.scheme() == Some(&Scheme::HTTPS)
}

/// Whether it is on this machine, by its own words.
fn is_here(origin: &Uri) -> bool {
    let name = origin.authority().map_or("", host);
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Without the brackets of an IPv6 address.
fn host(authority: &Authority) -> &str {
    authority.host().trim_matches(['[', ']'])
}

fn connector(tls: &EtcdTls) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    let found = match &tls.authorities {
        Some(pem) => certificates(pem)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    if roots.add_parsable_certificates(found).0 == 0 {
        return Err("no authority for the certificates of etcd is given in PEM".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = match &tls.identity {
        None => config.with_no_client_auth(),
        Some(identity) => {
            let key = PrivateKeyDer::from_pem_slice(&identity.key)
                .map_err(|error| format!("the key for etcd is no private key in PEM: {error}"))?;
            config
                .with_client_auth_cert(certificates(&identity.certificates)?, key)
                .map_err(|error| format!("the certificate for etcd is refused: {error}"))?
        }
    };
    // Etcd serves gRPC only to clients that ask for HTTP/2 here.
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("a certificate for etcd is not in PEM: {error}"))
}
