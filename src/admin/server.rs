//! Routes and connections of the admin listener.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::get;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::env::Clock;
use crate::env::Env;
use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::telemetry;
use crate::telemetry::Registry;

use super::readiness::Phase;
use super::readiness::Readiness;

/// Open admin connections; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// Pause after a failed accept, for descriptors to become free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What OpenMetrics asks scrapers to be told.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the routes show; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AdminState {
    /// Whether the node serves.
    pub readiness: Readiness,
    /// All metrics, once every role has registered its own.
    pub registry: Arc<OnceLock<Registry>>,
}

/// Serves the admin routes on a listener.
#[derive(Debug)]
pub struct AdminServer {
    listener: Box<dyn Listener>,
    state: AdminState,
    env: Env,
}

impl AdminServer {
    /// Serves `state` on `listener`.
    #[must_use]
    pub fn new(listener: Box<dyn Listener>, state: AdminState, env: Env) -> Self {
        Self { listener, state, env }
    }

    /// Serves until `stop` fires.
    ///
    /// # Errors
    /// The listener's address cannot be read.
    pub async fn run(self, stop: CancellationToken) -> io::Result<()> {
        self.listener.local_addr()?;
        let accepting = Accepting {
            listener: self.listener,
            clock: self.env.clock,
            permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        };
        let serving = axum::serve(accepting, routes(self.state)).into_future();
        tokio::select! {
            served = serving => served,
            // Nothing of value runs on these connections: they are cut.
            () = stop.cancelled() => Ok(()),
        }
    }
}

fn routes(state: AdminState) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(state)
}

async fn readyz(State(state): State<AdminState>) -> Response {
    let phase = state.readiness.phase();
    let status = match phase {
        Phase::Ready => StatusCode::OK,
        Phase::Starting | Phase::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{}\n", phase.word())).into_response()
}

async fn metrics(State(state): State<AdminState>) -> Response {
    let Some(registry) = state.registry.get() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response();
    };
    match telemetry::render(registry) {
        Ok(text) => ([(CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "a metric does not format");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// [`Listener`] as axum wants it, with a bound on open connections.
#[derive(Debug)]
struct Accepting {
    listener: Box<dyn Listener>,
    clock: Arc<dyn Clock>,
    permits: Arc<Semaphore>,
}

impl axum::serve::Listener for Accepting {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.expect("the semaphore is never closed");
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => return (Connection { stream, _permit: permit }, peer),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept on the admin listener");
                    self.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that holds its place among the open ones.
struct Connection {
    stream: Box<dyn Stream>,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
