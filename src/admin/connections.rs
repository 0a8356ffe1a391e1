//! The connections of the admin listener.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
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
use crate::frontend::connections::Connections;
use crate::frontend::connections::Entry;
use crate::frontend::connections::Limits;
use crate::frontend::connections::Slot;
use crate::frontend::opening::Opened;
use crate::frontend::opening::Opening;
use crate::frontend::tls::Alpn;

use super::audit_log::ClientAddress;
use super::server::WORK_MAX;

/// Connections beyond those whose requests may be at work: there is always one for a health check,
/// since those are answered at once, and a connection without a request leaves for a new one.
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
    stop: CancellationToken,
}

/// Serves `router` on `listener` until `stop` fires; over TLS only, when there is a certificate.
pub(super) async fn serve(
    (listener, tls): (Box<dyn Listener>, Option<Tls>),
    router: Router,
    env: Env,
    stop: CancellationToken,
) {
    let connections = Connections::new(limits(), Arc::clone(&env.clock));
    let opening = Opening {
        tls,
        alpn: Alpn::Http1,
        first_byte: FIRST_BYTE,
        handshake: HANDSHAKE,
        clock: Arc::clone(&env.clock),
    };
    let shared = Arc::new(Shared { opening, router, stop: stop.clone() });
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let Entry::Serve(slot) = connections.enter(address.ip()) else { continue };
                let shared = Arc::clone(&shared);
                drop(env.tasks.spawn("admin connection", async move {
                    if let Err(error) = connection((stream, address), &shared, &slot).await {
                        tracing::debug!(%error, "an admin connection ended early");
                    }
                }));
                // Who was told to leave for it does so before the next one comes.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept on the admin listener");
                env.clock.sleep(ACCEPT_PAUSE).await;
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
    let served = async {
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
            let (router, running) = (shared.router.clone(), slot.begin());
            async move {
                let response = router.oneshot(request).await?;
                Ok::<_, std::convert::Infallible>(response.map(|body| running.until_sent(body)))
            }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE_MAX).half_close(false);
        builder.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
    };
    let leaves = async {
        slot.told_to_leave().await;
        slot.idle_for(Duration::ZERO).await;
    };
    tokio::select! {
        biased;
        served = served => served,
        // Nothing of value runs on these connections: they are cut.
        () = shared.stop.cancelled() => Ok(()),
        () = leaves => Ok(()),
    }
}
