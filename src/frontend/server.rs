//! Accepts connections, within limits.

pub(in crate::frontend) mod config;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::frontend::connection;
use crate::frontend::connection::Shared;
use crate::frontend::connections::Connections;
use crate::frontend::connections::Entry;
use crate::frontend::connections::Refusal;
use crate::frontend::opening::Opening;
use crate::frontend::state::FrontEnd;
use crate::frontend::tls::Alpn;
use crate::frontend::tls::Tls;
use crate::types::Peer;

pub use config::ServerConfig;

/// How long a connection that is refused may take to ask, and to be told.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);
/// Connections that cannot be served are logged once in so long.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Serves connections until `stop` fires, then drains: answers what runs, takes nothing new. With a
/// certificate, the same port speaks both TLS and plain HTTP: the first byte tells.
pub async fn serve(
    listener: Box<dyn Listener>,
    front: Arc<FrontEnd>,
    tls: Option<Tls>,
    config: ServerConfig,
    stop: CancellationToken,
) {
    let opening = Opening {
        tls,
        alpn: Alpn::Http2OrHttp1,
        first_byte: config.first_byte_timeout,
        handshake: config.handshake_timeout,
        clock: Arc::clone(&front.env.clock),
    };
    let front_of_all = Arc::clone(&front);
    let metrics = front.connection_metrics();
    let shared = Arc::new(Shared { front: front_of_all, opening, config, stop: stop.clone() });
    let connections =
        Connections::new(config.limits(), Arc::clone(&front.env.clock), metrics.clone());
    let mut logged = None;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let shared = Arc::clone(&shared);
                let peer = Peer { address, secure: false };
                match connections.enter(address.ip()) {
                    Entry::Serve(slot) => {
                        drop(front.env.tasks.spawn("connection", async move {
                            tracing::trace!(?peer, "connected");
                            connection::run(stream, peer, &shared, Some(&slot)).await;
                        }));
                        // Who was told to leave for it does so before the next one comes.
                        tokio::task::yield_now().await;
                        continue;
                    }
                    Entry::Refuse(refusal) => refuse(stream, peer, shared, refusal),
                    Entry::Close => drop(stream),
                }
                let now = front.env.clock.monotonic();
                if logged.is_none_or(|then| now.saturating_sub(then) >= LOG_EVERY) {
                    logged = Some(now);
                    tracing::warn!(
                        %address,
                        "too many connections, of this address or in all: new ones are refused; --connections-max and \
                         --peer-connections-max set the limits"
                    );
                }
            }
            Err(error) => {
                metrics.accept_errors.inc();
                // Out of file descriptors, most likely: waiting is all that helps.
                tracing::warn!(%error, "a connection cannot be accepted");
                pause(&front, &error).await;
            }
        }
    }
    // New connections are refused from now on; otherwise they would wait for the drain in vain.
    drop(listener);
    tokio::select! {
        biased;
        () = connections.closed() => {}
        () = front.env.clock.sleep(config.drain) => {
            tracing::warn!("connections are cut: their requests did not end in time");
        }
    }
}

/// Answers what a connection beyond the limit asks, and closes it.
fn refuse(stream: Box<dyn Stream>, peer: Peer, shared: Arc<Shared>, refusal: Refusal) {
    let env = shared.front.env.clone();
    drop(env.tasks.clone().spawn("refused connection", async move {
        tokio::select! {
            biased;
            () = connection::run(stream, peer, &shared, None) => {}
            () = env.clock.sleep(REFUSAL_TIME_MAX) => {}
        }
        drop(refusal);
    }));
}

async fn pause(front: &FrontEnd, error: &io::Error) {
    let own_fault =
        !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset);
    if own_fault {
        front.env.clock.sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_one_peer() {
        let limits = ServerConfig::default().limits();
        assert_eq!((limits.open_max, limits.peer_max), (4096, 1024));
        assert_eq!(limits.loopback_max, usize::MAX, "its connections give way to each other");
        assert_eq!(limits.reserved, 512);
        let given = ServerConfig { peer_connections_max: Some(7), ..ServerConfig::default() };
        assert_eq!((given.limits().peer_max, given.limits().loopback_max), (7, 7));
        let one = ServerConfig { connections_max: 1, ..ServerConfig::default() }.limits();
        assert_eq!((one.open_max, one.peer_max, one.reserved), (1, 1, 0));
    }
}
