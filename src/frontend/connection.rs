//! Serves one connection from its first byte to its last: with or without TLS, over HTTP/1.1 or
//! HTTP/2.

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
use crate::env::net::Stream;
use crate::env::working_on;
use crate::frontend::answers::Flow;
use crate::frontend::answers::Watch;
use crate::frontend::answers::paced;
use crate::frontend::body::ResponseBody;
use crate::frontend::connections::GOODBYE;
use crate::frontend::connections::HeldUntilSent;
use crate::frontend::connections::InProgress;
use crate::frontend::connections::Slot;
use crate::frontend::dialect::spelling::Noting;
use crate::frontend::dialect::spelling::Spelling;
use crate::frontend::layered::Layered;
use crate::frontend::linger;
use crate::frontend::observe::ConnectionAborted;
use crate::frontend::opening::Opened;
use crate::frontend::opening::Opening;
use crate::frontend::opening::Protocol;
use crate::frontend::server::config::ServerConfig;
use crate::frontend::sniff::Rewound;
use crate::frontend::state::FrontEnd;
use crate::types::Peer;

/// Bytes of one body that a client may send over HTTP/2 before the server has read them.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The same for all bodies of one connection. Bodies that are not read while they are stored may
/// use all of it; `docs/overload.md` describes the consequence.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Bytes of one answer that are buffered over HTTP/2 while the client does not take them.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// Concurrent requests on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;

/// The state that all connections of a listener use.
#[derive(Debug)]
pub(super) struct ListenerContext {
    pub(super) front: Arc<FrontEnd>,
    pub(super) opening: Opening,
    pub(super) config: ServerConfig,
    pub(super) stop: CancellationToken,
}

/// A connection that is served.
#[derive(Clone, Copy)]
struct Connection<'a> {
    peer: Peer,
    /// Its progress.
    flow: &'a Arc<Flow>,
    listener: &'a Arc<ListenerContext>,
    /// Its place; `None` when there are too many connections.
    slot: Option<&'a Arc<Slot>>,
}

/// Serves one client until it disconnects, is idle for too long, must make room for another, or the
/// server stops. Without a slot there are too many connections: the first request is refused, and
/// the connection is closed.
pub(super) async fn run(
    stream: Box<dyn Stream>,
    peer: Peer,
    listener: &Arc<ListenerContext>,
    slot: Option<&Arc<Slot>>,
) {
    let watch = listener.front.load.flows.connection();
    let clock = Arc::clone(&listener.front.env.clock);
    let metrics = listener.front.connection_metrics();
    let (stream, lender) = linger::lend(stream);
    let flow = Arc::clone(watch.flow());
    let stream = Box::new(paced(Box::new(stream), flow, Arc::clone(&clock), metrics));
    let ended = {
        // Pinned here: a future that is moved into another one takes its space twice in every idle
        // connection.
        let connection = Connection { peer, flow: watch.flow(), listener, slot };
        let served = pin!(connection.serve(stream));
        tokio::select! {
            biased;
            () = watch.flow().until_cut_off() => Err(io::ErrorKind::TimedOut.into()),
            ended = served => ended,
        }
    };
    match ended {
        // The process ends soon, and closes its sockets.
        Ok(()) if listener.stop.is_cancelled() => Box::pin(lender.linger(clock.as_ref())).await,
        Ok(()) => {}
        Err(error) => tracing::debug!(?peer, %error, "a connection ended early"),
    }
}

impl Connection<'_> {
    /// Serves it from its first byte.
    async fn serve(&self, stream: Box<dyn Stream>) -> io::Result<()> {
        let opened = tokio::select! {
            biased;
            opened = self.listener.opening.open(stream) => opened?,
            // There is no request yet, so no client waits for an answer.
            () = self.listener.stop.cancelled() => None,
            () = self.leave_requested() => None,
        };
        let Some(Opened { protocol, secure, stream }) = opened else { return Ok(()) };
        let secured = Self { peer: Peer { secure, ..self.peer }, ..*self };
        match protocol {
            // Boxed: it is larger than HTTP/1.1, whose idle connections must not reserve its space.
            Protocol::Http2 => boxed(|| secured.http2(stream)).await,
            Protocol::Http1 | Protocol::Tls => secured.http1(stream).await,
        }
    }

    /// Waits until it must make room for another connection.
    async fn leave_requested(&self) {
        match self.slot {
            Some(slot) => slot.leave_requested().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until it has been idle for the time `long`.
    async fn idle_for(&self, long: Duration) {
        match self.slot {
            Some(slot) => slot.idle_for(long).await,
            None => std::future::pending().await,
        }
    }

    /// Returns when the connection must end. `served` was asked to end gracefully, and does so once
    /// its client has taken the answers. Without a request or an answer in progress it gets a
    /// `moment`.
    async fn goodbye(
        &self,
        served: impl Future<Output = hyper::Result<()>>,
        moment: Duration,
    ) -> hyper::Result<()> {
        let Some(slot) = self.slot else { return served.await };
        let config = &self.listener.config;
        let most = config.drain.max(self.listener.front.config.stall_limits().stall);
        tokio::select! {
            biased;
            result = served => result,
            () = slot.goodbye(moment, most, || self.flow.is_outstanding()) => Ok(()),
        }
    }

    async fn http1(&self, stream: Rewound) -> io::Result<()> {
        let Self { peer, flow, listener, slot } = *self;
        // Azure's metadata names are case-preserving.
        let spelling = Arc::<Spelling>::default();
        let stream = Layered::new(Box::new(stream), Noting(Arc::clone(&spelling)));
        let service = service_fn(|mut request: Request<Incoming>| {
            spelling.give(request.extensions_mut());
            // Boxed: hyper reserves space for this future while the connection is idle, and
            // answering takes 13 KiB.
            let running = slot.map(Slot::begin);
            let spelling = &spelling;
            boxed(|| async move {
                let noted = |body: ResponseBody| body.noted(flow);
                let answered = answer(&listener.front, request, peer, running, noted).await;
                spelling.next();
                answered
            })
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(listener.config.head_timeout)
            .max_headers(listener.config.headers_max)
            .max_buf_size(listener.config.head_bytes_max)
            .keep_alive(slot.is_some())
            .half_close(false);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let moment = tokio::select! {
            biased;
            result = served.as_mut() => return result.map_err(io::Error::other),
            () = listener.stop.cancelled() => GOODBYE,
            // HTTP/1.1 has no GOAWAY, and new clients must not wait for the rest of a head.
            () = self.leave_requested() => Duration::ZERO,
        };
        served.as_mut().graceful_shutdown();
        self.goodbye(served, moment).await.map_err(io::Error::other)
    }

    async fn http2(&self, stream: Rewound) -> io::Result<()> {
        let Self { peer, flow, listener, slot } = *self;
        let (front, of_stream) = (Arc::clone(&listener.front), slot.cloned());
        let next = Arc::<Mutex<Option<Watch>>>::default();
        let streams = Streams { tasks: listener.front.env.tasks.clone(), next: Arc::clone(&next) };
        let of = Arc::clone(flow);
        let service = service_fn(move |request: Request<Incoming>| {
            let front = Arc::clone(&front);
            // A connection that leaves begins no new request: the stream is answered 503.
            let staying = of_stream.as_ref().filter(|slot| !slot.is_leaving());
            let running = staying.map(Slot::begin);
            let watch = front.load.flows.stream(&of);
            let flow = Arc::clone(watch.flow());
            *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
            async move {
                // Boxed: thousands of streams may wait for their turn, or for their client to take
                // the answer, and each would reserve the space that answering takes.
                let watched =
                    |body: ResponseBody| body.noted(&flow).flowing(&flow, &front.env.clock);
                boxed(|| answer(&front, request, peer, running, watched)).await
            }
        });
        let config = &listener.config;
        let mut builder = http2::Builder::new(streams);
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(u32::try_from(config.head_bytes_max).unwrap_or(u32::MAX))
            .keep_alive_interval(config.head_timeout)
            .keep_alive_timeout(config.head_timeout);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            biased;
            result = served.as_mut() => return result.map_err(io::Error::other),
            () = listener.stop.cancelled() => {}
            () = self.leave_requested() => {}
            // hyper does not limit the idle time of HTTP/2 connections.
            () = self.idle_for(config.head_timeout) => {}
        }
        served.as_mut().graceful_shutdown();
        self.goodbye(served, GOODBYE).await.map_err(io::Error::other)
    }
}

async fn answer(
    front: &FrontEnd,
    request: Request<Incoming>,
    peer: Peer,
    running: Option<InProgress>,
    watched: impl Fn(ResponseBody) -> ResponseBody,
) -> Result<
    Response<Either<HeldUntilSent<ResponseBody, InProgress>, ResponseBody>>,
    ConnectionAborted,
> {
    let mut response = match running {
        Some(running) => {
            let of = front.arriving(request.headers());
            let handled = {
                // Boxed, so that an idle connection does not reserve its space.
                let handling = boxed(|| front.handle(of.id.to_string(), request, peer, &running));
                working_on(Some(of), handling).await?
            };
            let response = handled.map(watched);
            response.map(|body| Either::Left(running.until_sent(body)))
        }
        None => front.refuse(request, peer).map(watched).map(Either::Right),
    };
    // A browser must not run a blob as a script because it looks like one.
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    Ok(response)
}

/// Runs the streams of an HTTP/2 connection as tasks of the node. A stream whose client does not
/// take the answer is dropped, which resets it: its body is not polled then, so nothing else would
/// end it.
#[derive(Clone, Debug)]
struct Streams {
    tasks: Tasks,
    /// The watch of the stream that is executed next: hyper calls the service and then immediately
    /// executes its stream.
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
                () = watch.flow().until_cut_off() => {}
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
        type ListenerRef = &'static Arc<ListenerContext>;
        type SlotRef = Option<&'static Arc<Slot>>;
        let task = size(|stream, peer, on: ListenerRef, slot: SlotRef| run(stream, peer, on, slot));
        assert!(task <= 2048, "{task} bytes");
    }
}
