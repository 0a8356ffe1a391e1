//! Accepts connections, within limits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::frontend::connection;
use crate::frontend::connection::Admits;
use crate::frontend::connection::Shared;
use crate::frontend::service::FrontEnd;
use crate::frontend::tls::Tls;
use crate::types::Peer;

/// Connections that are being refused at a time.
const REFUSALS_MAX: usize = 256;
/// How long a connection that is refused may take to ask, and to be told.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Open connections; what further ones ask is answered 503, and they are closed. Default 4,096.
    pub connections_max: usize,
    /// A TLS handshake and a request head must each be complete within this; an HTTP/2 connection without requests is
    /// closed after it. Default 30 s.
    pub head_timeout: Duration,
    /// Header lines of a request; more are refused with 431. Default 128.
    pub headers_max: usize,
    /// Bytes of a request head, and of read-ahead of a body. Default 128 KiB.
    pub head_bytes_max: usize,
    /// How long running requests may take to end once the server stops. Default 30 s.
    pub drain: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            head_timeout: Duration::from_secs(30),
            headers_max: 128,
            head_bytes_max: 128 << 10,
            drain: Duration::from_secs(30),
        }
    }
}

/// Serves connections until `stop` fires, then drains: answers what runs, takes nothing new. With a certificate, the
/// same port speaks both TLS and plain HTTP: the first byte tells.
pub async fn serve(
    listener: Box<dyn Listener>,
    front: Arc<FrontEnd>,
    tls: Option<Tls>,
    config: ServerConfig,
    stop: CancellationToken,
) {
    let shared = Arc::new(Shared { front: Arc::clone(&front), tls, config, stop: stop.clone() });
    let permits = Arc::new(Semaphore::new(config.connections_max));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let shared = Arc::clone(&shared);
                let peer = Peer { address: peer, secure: false };
                let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                    refuse(stream, peer, shared, &refusals).await;
                    continue;
                };
                drop(front.env.tasks.spawn("connection", async move {
                    tracing::trace!(?peer, "connected");
                    connection::run(stream, peer, &shared, Admits::All).await;
                    drop(permit);
                }));
            }
            Err(error) => {
                // Out of file descriptors, most likely: waiting is all that helps.
                tracing::warn!(%error, "cannot accept");
                pause(&front, &error).await;
            }
        }
    }
    let all = u32::try_from(config.connections_max).unwrap_or(u32::MAX);
    tokio::select! {
        biased;
        _ = permits.acquire_many(all) => {}
        () = front.env.clock.sleep(config.drain) => {
            tracing::warn!("connections are cut: their requests did not end in time");
        }
    }
}

/// Answers what a connection beyond the limit asks, and closes it. Waits while too many are refused at a time: each takes a
/// moment only.
async fn refuse(
    stream: Box<dyn Stream>,
    peer: Peer,
    shared: Arc<Shared>,
    refusals: &Arc<Semaphore>,
) {
    let Ok(permit) = Arc::clone(refusals).acquire_owned().await else { return };
    let env = shared.front.env.clone();
    drop(env.tasks.clone().spawn("refused connection", async move {
        tokio::select! {
            biased;
            () = connection::run(stream, peer, &shared, Admits::None) => {}
            () = env.clock.sleep(REFUSAL_TIME_MAX) => {}
        }
        drop(permit);
    }));
}

async fn pause(front: &FrontEnd, error: &io::Error) {
    let own_fault =
        !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset);
    if own_fault {
        front.env.clock.sleep(Duration::from_millis(100)).await;
    }
}
