//! Accepts connections, within limits.

pub(in crate::frontend) mod config;

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::frontend::connection;
use crate::frontend::connection::ListenerContext;
use crate::frontend::connections::Connections;
use crate::frontend::connections::Entry;
use crate::frontend::connections::RefusedSlot;
use crate::frontend::opening::Opening;
use crate::frontend::state::FrontEnd;
use crate::frontend::tls::Alpn;
use crate::frontend::tls::Tls;
use crate::types::Peer;
use crate::types::Protocols;

pub use config::ServerConfig;

/// How long a refused connection may take to send its request and to read the answer.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);
/// At most one line about refused connections is logged in this time.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The listeners on which a front end accepts connections.
#[derive(Debug)]
pub struct Listeners {
    /// Serves every protocol.
    pub all: Box<dyn Listener>,
    /// Serves S3 alone.
    pub s3: Option<Box<dyn Listener>>,
}

/// A connection that was accepted.
struct Accepted {
    stream: Box<dyn Stream>,
    peer: Peer,
}

impl Listeners {
    async fn accept(&self) -> io::Result<Accepted> {
        let (protocols, accepted) = match &self.s3 {
            None => (Protocols::All, self.all.accept().await),
            Some(s3) => tokio::select! {
                biased;
                accepted = self.all.accept() => (Protocols::All, accepted),
                accepted = s3.accept() => (Protocols::S3, accepted),
            },
        };
        let (stream, address) = accepted?;
        Ok(Accepted { stream, peer: Peer { address, secure: false, protocols } })
    }
}

/// Serves connections until `stop` fires, then drains: running requests are answered, new ones are
/// not accepted. With a certificate, the same port serves TLS and plain HTTP: the first byte
/// distinguishes them.
pub async fn serve(
    listeners: Listeners,
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
        tls_warned_at: Mutex::default(),
    };
    let front_of_all = Arc::clone(&front);
    let metrics = front.connection_metrics();
    let context = ListenerContext { front: front_of_all, opening, config, stop: stop.clone() };
    let context = Arc::new(context);
    let connections =
        Connections::new(config.limits(), Arc::clone(&front.env.clock), metrics.clone());
    let mut logged = None;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listeners.accept() => accepted,
        };
        match accepted {
            Ok(Accepted { stream, peer }) => {
                let (context, address) = (Arc::clone(&context), peer.address);
                match connections.enter(address.ip()) {
                    Entry::Serve(slot) => {
                        drop(front.env.tasks.spawn("connection", async move {
                            tracing::trace!(?peer, "connected");
                            connection::run(stream, peer, &context, Some(&slot)).await;
                        }));
                        // The connection that makes room leaves before the next one is accepted.
                        tokio::task::yield_now().await;
                        continue;
                    }
                    Entry::Refuse(slot) => refuse(stream, peer, context, slot),
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
                // Probably out of file descriptors: only waiting helps.
                tracing::warn!(%error, "a connection cannot be accepted");
                pause(&front, &error).await;
            }
        }
    }
    // From now on the system refuses connections; otherwise they would wait during the drain.
    drop(listeners);
    tokio::select! {
        biased;
        () = connections.closed() => {}
        () = front.env.clock.sleep(config.drain) => {
            tracing::warn!("connections are cut: their requests did not end in time");
        }
    }
}

/// Answers 503 to the first request of a connection beyond the limit, and closes it.
fn refuse(stream: Box<dyn Stream>, peer: Peer, context: Arc<ListenerContext>, slot: RefusedSlot) {
    let env = context.front.env.clone();
    drop(env.tasks.clone().spawn("refused connection", async move {
        tokio::select! {
            biased;
            () = connection::run(stream, peer, &context, None) => {}
            () = env.clock.sleep(REFUSAL_TIME_MAX) => {}
        }
        drop(slot);
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
