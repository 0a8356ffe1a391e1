//! One connection, from its first byte to its last: TLS or not, HTTP/1.1 or HTTP/2, each within limits.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use hyper::Request;
use hyper::Response;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http1;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use tokio_util::sync::CancellationToken;

use crate::env::Tasks;
use crate::env::net::Stream;
use crate::frontend::body::ResponseBody;
use crate::frontend::observe::Cut;
use crate::frontend::server::ServerConfig;
use crate::frontend::service::FrontEnd;
use crate::frontend::sniff::Rewound;
use crate::frontend::sniff::Speaks;
use crate::frontend::sniff::sniff;
use crate::frontend::tls::Tls;
use crate::types::Peer;

/// What a client may send of one body before we have read it, over HTTP/2.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The same of all bodies of one connection.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// What we hold of one answer that the client does not take, over HTTP/2.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// Requests at a time on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;

/// What all connections of a listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) front: Arc<FrontEnd>,
    pub(super) tls: Option<Tls>,
    pub(super) config: ServerConfig,
    pub(super) stop: CancellationToken,
}

/// What becomes of a connection's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admits {
    /// They are answered.
    All,
    /// There are too many connections: the first is told so, and the connection is closed.
    None,
}

/// Serves one client until it leaves, is idle for too long, or the server stops.
pub(super) async fn run(
    stream: Box<dyn Stream>,
    mut peer: Peer,
    shared: &Arc<Shared>,
    admits: Admits,
) {
    let served = async {
        let Some((mut speaks, mut stream)) = first_bytes(stream, shared).await? else {
            return Ok(());
        };
        if speaks == Speaks::Tls {
            let Some(tls) = &shared.tls else {
                return Err(io::Error::other(
                    "the client speaks TLS and this server has no certificate: start it with --tls auto",
                ));
            };
            peer.secure = true;
            let shaking = Box::pin(tls.accept(stream));
            let secured = within(shared, shaking).await?;
            let inner = first_bytes(Box::new(secured), shared).await?;
            let Some(told) = inner else { return Ok(()) };
            (speaks, stream) = told;
        }
        match speaks {
            Speaks::Http2 => http2(stream, peer, shared, admits).await,
            Speaks::Http1 | Speaks::Tls => http1(stream, peer, shared, admits).await,
        }
    };
    if let Err(error) = served.await {
        tracing::debug!(?peer, %error, "a connection ended early");
    }
}

async fn first_bytes(
    stream: Box<dyn Stream>,
    shared: &Shared,
) -> io::Result<Option<(Speaks, Rewound)>> {
    tokio::select! {
        biased;
        told = within(shared, sniff(stream)) => told,
        // Nothing was asked yet, so nobody waits for an answer.
        () = shared.stop.cancelled() => Ok(None),
    }
}

/// Bounds one step of a connection's beginning.
async fn within<T>(shared: &Shared, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::select! {
        biased;
        done = step => done,
        () = shared.front.env.clock.sleep(shared.config.head_timeout) => {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

async fn answer(
    front: &FrontEnd,
    request: Request<Incoming>,
    peer: Peer,
    admits: Admits,
) -> Result<Response<ResponseBody>, Cut> {
    match admits {
        Admits::All => front.handle(request, peer).await,
        Admits::None => Ok(front.refuse(request)),
    }
}

async fn http1(stream: Rewound, peer: Peer, shared: &Shared, admits: Admits) -> io::Result<()> {
    let service =
        service_fn(|request: Request<Incoming>| answer(&shared.front, request, peer, admits));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(shared.config.head_timeout)
        .max_headers(shared.config.headers_max)
        .max_buf_size(shared.config.head_bytes_max)
        .keep_alive(admits == Admits::All)
        .half_close(false);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        result = connection.as_mut() => result,
        () = shared.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
    .map_err(io::Error::other)
}

async fn http2(
    stream: Rewound,
    peer: Peer,
    shared: &Arc<Shared>,
    admits: Admits,
) -> io::Result<()> {
    let activity = Arc::new(Activity::default());
    let (front, begun) = (Arc::clone(&shared.front), Arc::clone(&activity));
    let service = service_fn(move |request: Request<Incoming>| {
        let (front, running) = (Arc::clone(&front), begun.begin());
        async move {
            let response = answer(&front, request, peer, admits).await;
            drop(running);
            response
        }
    });
    let mut builder = http2::Builder::new(Streams(shared.front.env.tasks.clone()));
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(shared.config.head_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(shared.config.head_timeout)
        .keep_alive_timeout(shared.config.head_timeout);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        result = connection.as_mut() => return result.map_err(io::Error::other),
        () = shared.stop.cancelled() => {}
        () = activity.idle(shared) => {}
    }
    connection.as_mut().graceful_shutdown();
    // Streams that still carry an answer end in their own time; the stop of the server bounds that.
    connection.await.map_err(io::Error::other)
}

/// Runs the streams of HTTP/2 connections among the node's tasks.
#[derive(Clone, Debug)]
struct Streams(Tasks);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        drop(self.0.spawn("stream", stream));
    }
}

/// Requests of one connection: HTTP/2 has no limit on idle connections of its own.
#[derive(Debug, Default)]
struct Activity {
    begun: AtomicUsize,
    running: Arc<AtomicUsize>,
}

/// One request being answered.
#[derive(Debug)]
struct Running(Arc<AtomicUsize>);

impl Activity {
    fn begin(&self) -> Running {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(&self.running))
    }

    /// Returns once a whole head timeout has passed without a request.
    async fn idle(&self, shared: &Shared) {
        let mut seen = usize::MAX;
        loop {
            let begun = self.begun.load(Ordering::Relaxed);
            if begun == seen && self.running.load(Ordering::Relaxed) == 0 {
                return;
            }
            seen = begun;
            shared.front.env.clock.sleep(shared.config.head_timeout).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
