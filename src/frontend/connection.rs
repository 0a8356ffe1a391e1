//! One connection, from its first byte to its last: TLS or not, HTTP/1.1 or HTTP/2, each within
//! limits.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use http::HeaderValue;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http_body_util::Either;
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
use crate::env::boxed;
use crate::env::identified;
use crate::env::net::Stream;
use crate::frontend::answers::Flow;
use crate::frontend::answers::Watch;
use crate::frontend::answers::paced;
use crate::frontend::body::ResponseBody;
use crate::frontend::connections::GOODBYE;
use crate::frontend::connections::Guarded;
use crate::frontend::connections::InProgress;
use crate::frontend::connections::Slot;
use crate::frontend::linger;
use crate::frontend::observe::Cut;
use crate::frontend::opening::Opened;
use crate::frontend::opening::Opening;
use crate::frontend::opening::Speaks;
use crate::frontend::server::config::ServerConfig;
use crate::frontend::sniff::Rewound;
use crate::frontend::state::FrontEnd;
use crate::types::Peer;

/// What a client may send of one body before we have read it, over HTTP/2.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The same of all bodies of one connection. Those that are read no further while they are stored
/// may use it up; `docs/overload.md` says what becomes of the others.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// What we hold of one answer that the client does not take, over HTTP/2.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// Requests at a time on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;

/// What all connections of a listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) front: Arc<FrontEnd>,
    pub(super) opening: Opening,
    pub(super) config: ServerConfig,
    pub(super) stop: CancellationToken,
}

/// Serves one client until it leaves, is idle for too long, has to leave for another, or the server
/// stops. Without a slot there are too many connections: the first request is told so, and the
/// connection is closed.
pub(super) async fn run(
    stream: Box<dyn Stream>,
    peer: Peer,
    shared: &Arc<Shared>,
    slot: Option<&Arc<Slot>>,
) {
    let watch = shared.front.flows.connection();
    let clock = Arc::clone(&shared.front.env.clock);
    let metrics = shared.front.connection_metrics();
    let (stream, lender) = linger::lend(stream);
    let flow = Arc::clone(watch.flow());
    let stream = Box::new(paced(Box::new(stream), flow, Arc::clone(&clock), metrics));
    let ended = {
        // Pinned here: a future that is moved into another one is kept twice by every idle
        // connection.
        let served = pin!(opened(stream, (peer, watch.flow()), shared, slot));
        tokio::select! {
            biased;
            () = watch.flow().until_cut() => Err(io::ErrorKind::TimedOut.into()),
            ended = served => ended,
        }
    };
    match ended {
        // The process ends soon, and its sockets with it.
        Ok(()) if shared.stop.is_cancelled() => Box::pin(lender.linger(clock.as_ref())).await,
        Ok(()) => {}
        Err(error) => tracing::debug!(?peer, %error, "a connection ended early"),
    }
}

/// Serves a connection from its first byte.
async fn opened(
    stream: Box<dyn Stream>,
    (peer, flow): (Peer, &Arc<Flow>),
    shared: &Arc<Shared>,
    slot: Option<&Arc<Slot>>,
) -> io::Result<()> {
    let opened = tokio::select! {
        biased;
        opened = shared.opening.open(stream) => opened?,
        // Nothing was asked yet, so nobody waits for an answer.
        () = shared.stop.cancelled() => None,
        () = told_to_leave(slot) => None,
    };
    let Some(Opened { speaks, secure, stream }) = opened else { return Ok(()) };
    let peer = Peer { secure, ..peer };
    match speaks {
        // Boxed: it is larger than HTTP/1.1, whose idle connections need not have room for it.
        Speaks::Http2 => boxed(|| http2(stream, (peer, flow), shared, slot)).await,
        Speaks::Http1 | Speaks::Tls => http1(stream, (peer, flow), shared, slot).await,
    }
}

async fn told_to_leave(slot: Option<&Arc<Slot>>) {
    match slot {
        Some(slot) => slot.told_to_leave().await,
        None => std::future::pending().await,
    }
}

/// Ends when the connection must: `connection` was asked to end gracefully and does so once its
/// client has taken the answers. One without a request or an answer in progress has a moment.
async fn goodbye(
    connection: impl Future<Output = hyper::Result<()>>,
    flow: &Flow,
    shared: &Shared,
    (slot, moment): (Option<&Arc<Slot>>, Duration),
) -> hyper::Result<()> {
    let Some(slot) = slot else { return connection.await };
    let most = shared.config.drain.max(shared.front.config.stall_limits().stall);
    tokio::select! {
        biased;
        result = connection => result,
        () = slot.goodbye(moment, most, || flow.is_outstanding()) => Ok(()),
    }
}

async fn answer(
    front: &FrontEnd,
    request: Request<Incoming>,
    peer: Peer,
    running: Option<InProgress>,
    watched: impl Fn(ResponseBody) -> ResponseBody,
) -> Result<Response<Either<Guarded<ResponseBody, InProgress>, ResponseBody>>, Cut> {
    let mut response = match running {
        Some(running) => {
            let id = front.request_id();
            let handled = {
                // Pinned here: a future that is moved into another one is kept twice.
                let handling = pin!(front.handle((id.to_string(), request), peer, &running));
                identified(Some(id), handling).await?
            };
            let response = handled.map(watched);
            response.map(|body| Either::Left(running.until_sent(body)))
        }
        None => front.refuse(request, peer).map(watched).map(Either::Right),
    };
    // A browser must not take a blob for a script because it looks like one.
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    Ok(response)
}

async fn http1(
    stream: Rewound,
    (peer, flow): (Peer, &Arc<Flow>),
    shared: &Shared,
    slot: Option<&Arc<Slot>>,
) -> io::Result<()> {
    let service = service_fn(|request: Request<Incoming>| {
        // Boxed: hyper keeps room for this future while the connection is idle, and an answer takes
        // 13 KiB to make.
        let running = slot.map(Slot::begin);
        boxed(|| answer(&shared.front, request, peer, running, |body| body.noted(flow)))
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(shared.config.head_timeout)
        .max_headers(shared.config.headers_max)
        .max_buf_size(shared.config.head_bytes_max)
        .keep_alive(slot.is_some())
        .half_close(false);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let moment = tokio::select! {
        biased;
        result = connection.as_mut() => return result.map_err(io::Error::other),
        () = shared.stop.cancelled() => GOODBYE,
        // HTTP/1.1 has no goodbye, and half a head is not worth the wait of those who come.
        () = told_to_leave(slot) => Duration::ZERO,
    };
    connection.as_mut().graceful_shutdown();
    goodbye(connection, flow, shared, (slot, moment)).await.map_err(io::Error::other)
}

async fn http2(
    stream: Rewound,
    (peer, flow): (Peer, &Arc<Flow>),
    shared: &Arc<Shared>,
    slot: Option<&Arc<Slot>>,
) -> io::Result<()> {
    let (front, of_stream) = (Arc::clone(&shared.front), slot.cloned());
    let next = Arc::<Mutex<Option<Watch>>>::default();
    let streams = Streams { tasks: shared.front.env.tasks.clone(), next: Arc::clone(&next) };
    let of = Arc::clone(flow);
    let service = service_fn(move |request: Request<Incoming>| {
        let front = Arc::clone(&front);
        // A connection that leaves begins nothing new: the stream is answered 503.
        let staying = of_stream.as_ref().filter(|slot| !slot.is_leaving());
        let running = staying.map(Slot::begin);
        let watch = front.flows.stream(&of);
        let flow = Arc::clone(watch.flow());
        *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        async move {
            // Boxed: thousands of streams may wait for their turn, or for their client to take the
            // answer, and each would keep room for what an answer takes to make.
            let watched = |body: ResponseBody| body.noted(&flow).flowing(&flow, &front.env.clock);
            boxed(|| answer(&front, request, peer, running, watched)).await
        }
    });
    let mut builder = http2::Builder::new(streams);
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
        () = told_to_leave(slot) => {}
        // HTTP/2 has no limit on idle connections of its own.
        () = idle_for(shared.config.head_timeout, slot) => {}
    }
    connection.as_mut().graceful_shutdown();
    goodbye(connection, flow, shared, (slot, GOODBYE)).await.map_err(io::Error::other)
}

async fn idle_for(long: Duration, slot: Option<&Arc<Slot>>) {
    match slot {
        Some(slot) => slot.idle_for(long).await,
        None => std::future::pending().await,
    }
}

/// Runs the streams of an HTTP/2 connection among the node's tasks. A stream is dropped, which
/// resets it, when its client does not take the answer: its body is not polled then, so nothing
/// else would end it.
#[derive(Clone, Debug)]
struct Streams {
    tasks: Tasks,
    /// Of the stream that is executed next: hyper calls the service and executes its stream in one
    /// go.
    next: Arc<Mutex<Option<Watch>>>,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let watch = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut stream = Box::pin(stream);
        drop(self.tasks.spawn("stream", async move {
            let Some(watch) = watch else { return stream.await };
            tokio::select! {
                biased;
                () = watch.flow().until_cut() => {}
                () = stream.as_mut() => {}
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, D, F: Future>(_: impl FnOnce(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn task_of_a_connection_is_small() {
        type SharedRef = &'static Arc<Shared>;
        type SlotRef = Option<&'static Arc<Slot>>;
        let task =
            size(|stream, peer, shared: SharedRef, slot: SlotRef| run(stream, peer, shared, slot));
        assert!(task <= 2048, "{task} bytes");
    }
}
