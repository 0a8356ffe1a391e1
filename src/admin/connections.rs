//! The connections of the admin listener.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use http::HeaderValue;
use http::header::CONNECTION;
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::env::Env;
use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::frontend::Tls;
use crate::frontend::answers::Flows;
use crate::frontend::answers::StallCheck;
use crate::frontend::answers::StallLimits;
use crate::frontend::answers::paced;
use crate::frontend::connections::Connections;
use crate::frontend::connections::Entry;
use crate::frontend::connections::HeldUntilSent;
use crate::frontend::connections::Limits;
use crate::frontend::connections::Slot;
use crate::frontend::metrics::ConnectionMetrics;
use crate::frontend::opening::Opened;
use crate::frontend::opening::Opening;
use crate::frontend::tls::Alpn;

use super::audit_log::ClientAddress;
use super::work::WORK_MAX;
use super::work::Work;

/// Connections beyond those that may have running requests. A new connection, for example of a
/// health check, always finds room: a connection without a running request is closed for it,
/// whether its client reads its answers or not.
const SPARE: usize = 16;
/// Open admin connections.
pub(super) const CONNECTIONS_MAX: usize = WORK_MAX + SPARE;
/// Connections that are closing.
const LEAVING_MAX: usize = 1024;
/// Pause after a failed accept, for descriptors to become free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A new connection must send its first byte within this.
const FIRST_BYTE: Duration = Duration::from_secs(5);
/// A TLS handshake must be complete within this.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// An admin connection without a request is closed after this.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The answer to plain http where only https is served.
const HTTPS_ONLY: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    X-Content-Type-Options: nosniff\r\n\r\nthis admin listener speaks https only\n";

/// State that all connections use.
#[derive(Debug)]
struct Shared {
    /// The name of the endpoint.
    name: &'static str,
    /// Whether plain http is refused.
    tls_only: bool,
    opening: Opening,
    routes: Router,
    flows: Arc<Flows>,
    metrics: ConnectionMetrics,
    stop: CancellationToken,
}

/// The listener and its connections. They survive a panic of the accepting task.
#[derive(Debug)]
struct Serving {
    listener: Box<dyn Listener>,
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    stall: StallLimits,
    env: Env,
}

/// The listener and the routes that it serves.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// The name of its task.
    pub(super) name: &'static str,
    pub(super) listener: Box<dyn Listener>,
    /// With a certificate, over TLS, and over TLS only unless `plain`.
    pub(super) tls: Option<Tls>,
    /// Whether plain http is served beside TLS.
    pub(super) plain: bool,
    pub(super) routes: Router,
    /// When a client that does not read its answer is disconnected.
    pub(super) stall: StallLimits,
}

/// Serves an endpoint until `stop` fires, in a task that is restarted after a panic.
pub(super) fn serve(endpoint: Endpoint, env: &Env, stop: CancellationToken) {
    let Endpoint { name, listener, tls, plain, routes, stall } = endpoint;
    // Not registered: the metrics count connections of the blob listener only.
    let metrics = ConnectionMetrics::default();
    let connections = Connections::new(limits(), Arc::clone(&env.clock), metrics.clone());
    let flows = Arc::<Flows>::default();
    let opening = Opening {
        tls,
        alpn: Alpn::Http1,
        first_byte: FIRST_BYTE,
        handshake: HANDSHAKE,
        clock: Arc::clone(&env.clock),
        tls_warned_at: Mutex::default(),
    };
    let tls_only = opening.tls.is_some() && !plain;
    let shared = Shared { name, opening, tls_only, routes, flows, metrics, stop: stop.clone() };
    let shared = Arc::new(shared);
    let serving = Serving { listener, shared, connections, stall, env: env.clone() };
    let serving = Arc::new(serving);
    let run = move || {
        let serving = Arc::clone(&serving);
        async move { serving.run().await }
    };
    drop(env.supervise(name, stop, run));
}

impl Serving {
    async fn run(&self) {
        // Answers hold no memory that other requests wait for: the number of requests is limited.
        let contended = |_| Vec::new();
        let check = StallCheck {
            flows: self.shared.flows.as_ref(),
            limits: self.stall,
            clock: self.env.clock.as_ref(),
            stop: self.shared.stop.clone(),
        };
        let watching = check.run(contended, |_, _| ());
        tokio::join!(self.accept(), watching);
    }

    async fn accept(&self) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, address)) => {
                    let Entry::Serve(slot) = self.connections.enter(address.ip()) else { continue };
                    let shared = Arc::clone(&self.shared);
                    drop(self.env.tasks.spawn("admin connection", async move {
                        if let Err(error) = connection(stream, address, &shared, &slot).await {
                            tracing::debug!(%error, of = shared.name, "a connection ended early");
                        }
                    }));
                    // The connection that closes for it does so before the next one is accepted.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(%error, of = self.shared.name, "cannot accept connections");
                    self.env.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Health checks may come from any address: no peer has a limit of its own, and none is preferred.
const fn limits() -> Limits {
    Limits {
        open_max: CONNECTIONS_MAX,
        peer_max: usize::MAX,
        loopback_max: usize::MAX,
        reserved: 0,
        leaving_max: LEAVING_MAX,
        refused_max: 0,
        refused_peer_max: 0,
    }
}

async fn connection(
    stream: Box<dyn Stream>,
    address: SocketAddr,
    shared: &Shared,
    slot: &Arc<Slot>,
) -> io::Result<()> {
    let watch = shared.flows.connection();
    let clock = Arc::clone(&shared.opening.clock);
    let stream = Box::new(paced(stream, Arc::clone(watch.flow()), clock, &shared.metrics));
    let served = pin!(async {
        let Some(Opened { mut stream, secure, .. }) = shared.opening.open(stream).await? else {
            return Ok(());
        };
        if shared.tls_only && !secure {
            // The request is not read. It may carry the token, which others have seen then.
            stream.write_all(HTTPS_ONLY).await?;
            return stream.shutdown().await;
        }
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(ClientAddress(address));
            let has_body = !request.body().is_end_stream();
            let routes = shared.routes.clone();
            async move {
                // Begun when this is polled: while the client does not read an answer, hyper may
                // hold the next request without polling this.
                let running = slot.begin();
                let mut response = routes.oneshot(request).await?;
                if has_body {
                    // If the body stays unread, hyper takes the next request before this answer is
                    // sent, and would buffer every answer that the client does not read.
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(CONNECTION, close);
                }
                let running = response.extensions().get::<Work>().map(|_| running);
                Ok::<_, std::convert::Infallible>(
                    response.map(|body| HeldUntilSent::new(body, running)),
                )
            }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE_MAX).half_close(false);
        builder.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
    });
    let leaves = async {
        slot.leave_requested().await;
        slot.idle_for(Duration::ZERO).await;
    };
    tokio::select! {
        biased;
        served = served => served,
        () = watch.flow().until_cut_off() => Err(io::ErrorKind::TimedOut.into()),
        // Admin requests are not waited for.
        () = shared.stop.cancelled() => Ok(()),
        () = leaves => Ok(()),
    }
}
