//! The connections of the admin listener.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
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
use crate::frontend::connections::Guarded;
use crate::frontend::connections::Limits;
use crate::frontend::connections::Slot;
use crate::frontend::metrics::ConnectionMetrics;
use crate::frontend::opening::Opened;
use crate::frontend::opening::Opening;
use crate::frontend::tls::Alpn;

use super::audit_log::ClientAddress;
use super::work::WORK_MAX;
use super::work::Work;

/// Connections beyond those whose requests may be at work. There is always one for a health check:
/// a connection without work leaves for a new one, whether its client takes its answers or not.
const SPARE: usize = 16;
/// Open admin connections.
pub(super) const CONNECTIONS_MAX: usize = WORK_MAX + SPARE;
/// Connections that were told to leave and have not yet.
const LEAVING_MAX: usize = 1024;
/// Pause after a failed accept, for descriptors to become free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A new connection must say something within this.
const FIRST_BYTE: Duration = Duration::from_secs(5);
/// A TLS handshake must be complete within this.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// An admin connection without a request is closed after this.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Told to who speaks plain http where only https is served.
const HTTPS_ONLY: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    X-Content-Type-Options: nosniff\r\n\r\nthis admin listener speaks https only\n";

/// What all connections share.
#[derive(Debug)]
struct Shared {
    opening: Opening,
    router: Router,
    flows: Arc<Flows>,
    metrics: ConnectionMetrics,
    stop: CancellationToken,
}

/// The listener and its connections. They outlive a panic of the task that accepts them.
#[derive(Debug)]
struct Serving {
    listener: Box<dyn Listener>,
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    stall: StallLimits,
    env: Env,
}

/// Serves `router` on `listener` until `stop` fires, in a task that is started again after a panic;
/// over TLS only, when there is a certificate.
pub(super) fn serve(
    (listener, tls): (Box<dyn Listener>, Option<Tls>),
    (router, stall): (Router, StallLimits),
    env: &Env,
    stop: CancellationToken,
) {
    // Not registered: what is counted are the connections of the blob listener.
    let metrics = ConnectionMetrics::default();
    let connections = Connections::new(limits(), Arc::clone(&env.clock), metrics.clone());
    let flows = Arc::<Flows>::default();
    let opening = Opening {
        tls,
        alpn: Alpn::Http1,
        first_byte: FIRST_BYTE,
        handshake: HANDSHAKE,
        clock: Arc::clone(&env.clock),
    };
    let shared = Arc::new(Shared { opening, router, flows, metrics, stop: stop.clone() });
    let serving = Serving { listener, shared, connections, stall, env: env.clone() };
    let serving = Arc::new(serving);
    let run = move || {
        let serving = Arc::clone(&serving);
        async move { serving.run().await }
    };
    drop(env.supervise("admin", stop, run));
}

impl Serving {
    async fn run(&self) {
        // No answer here holds resources that others need: the number of requests has its own
        // limit.
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
                        if let Err(error) = connection((stream, address), &shared, &slot).await {
                            tracing::debug!(%error, "an admin connection ended early");
                        }
                    }));
                    // Who was told to leave for it does so before the next one comes.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept on the admin listener");
                    self.env.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Health checks come from anywhere: no peer has a cap, and none is preferred.
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
    (stream, address): (Box<dyn Stream>, SocketAddr),
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
        if shared.opening.tls.is_some() && !secure {
            // Nothing that came is read: the token may be in it, and is known to others now.
            stream.write_all(HTTPS_ONLY).await?;
            return stream.shutdown().await;
        }
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(ClientAddress(address));
            let has_body = !request.body().is_end_stream();
            let router = shared.router.clone();
            async move {
                // Not sooner: while an answer is not taken, hyper may hold the next request and
                // does not poll this.
                let running = slot.begin();
                let mut response = router.oneshot(request).await?;
                if has_body {
                    // Where it is left unread, hyper takes the next request before this answer is
                    // sent, and holds as many answers as the client asks for and does not read.
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(CONNECTION, close);
                }
                let running = response.extensions().get::<Work>().map(|_| running);
                Ok::<_, std::convert::Infallible>(response.map(|body| Guarded::new(body, running)))
            }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE_MAX).half_close(false);
        builder.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
    });
    let leaves = async {
        slot.told_to_leave().await;
        slot.idle_for(Duration::ZERO).await;
    };
    tokio::select! {
        biased;
        served = served => served,
        () = watch.flow().until_cut() => Err(io::ErrorKind::TimedOut.into()),
        // Nothing of value runs on these connections: they are cut.
        () = shared.stop.cancelled() => Ok(()),
        () = leaves => Ok(()),
    }
}
