//! Accepts connections and drives HTTP/1.1 on them, within limits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::frontend::service::FrontEnd;
use crate::types::Peer;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Open connections; further ones wait to be accepted. Default 4,096.
    pub connections_max: usize,
    /// A request head must be complete within this. Default 30 s.
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

/// Serves connections until `stop` fires, then drains: answers what runs, takes nothing new.
pub async fn serve(
    listener: Box<dyn Listener>,
    front: Arc<FrontEnd>,
    config: ServerConfig,
    stop: CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(config.connections_max));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (front, stop) = (Arc::clone(&front), stop.clone());
                let tasks = front.env.tasks.clone();
                let peer = Peer { address: peer, secure: false };
                drop(tasks.spawn("connection", async move {
                    tracing::trace!(?peer, "connected");
                    connection(stream, peer, front, config, stop).await;
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
        _ = permits.acquire_many(all) => {}
        () = front.env.clock.sleep(config.drain) => {
            tracing::warn!("connections are cut: their requests did not end in time");
        }
    }
}

async fn pause(front: &FrontEnd, error: &io::Error) {
    let own_fault =
        !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset);
    if own_fault {
        front.env.clock.sleep(Duration::from_millis(100)).await;
    }
}

async fn connection(
    stream: Box<dyn Stream>,
    peer: Peer,
    front: Arc<FrontEnd>,
    config: ServerConfig,
    stop: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let front = Arc::clone(&front);
        async move { Ok::<_, std::convert::Infallible>(front.handle(request, peer).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(config.head_timeout)
        .max_headers(config.headers_max)
        .max_buf_size(config.head_bytes_max)
        .keep_alive(true)
        .half_close(false);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
