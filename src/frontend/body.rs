//! Request bodies in, response bodies out.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::env::Clock;
use crate::env::Env;
use crate::frontend::admission::Pass;
use crate::frontend::admission::STRANGERS;
use crate::frontend::answers::Flow;
use crate::frontend::answers::Reservation;
use crate::frontend::audit_log::Draft;
use crate::frontend::source::MinimumRate;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::azure::structured::Decoder;
use crate::protocol::azure::structured::Encoder;
use crate::protocol::operation::Upload;
use crate::types::AccountId;

/// Bytes of an unwanted body that are read all the same.
const DRAIN_BYTES_MAX: u64 = 64 << 20;
/// How long an unwanted body is read.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Where a body comes from.
enum Origin {
    /// The client's connection.
    Client(Incoming),
    /// A blob of this store.
    Inside(Box<ResponseBody>),
    /// Another server, until a time by the monotonic clock.
    Outside(Incoming, Duration),
}

impl Origin {
    async fn frame(&mut self) -> Option<Result<Frame<Bytes>, String>> {
        match self {
            Self::Client(body) | Self::Outside(body, _) => {
                body.frame().await.map(|frame| frame.map_err(|error| error.to_string()))
            }
            Self::Inside(body) => {
                body.frame().await.map(|frame| frame.map_err(|error| error.to_string()))
            }
        }
    }

    /// What the client is told when it broke off or stalled.
    fn broken(&self, stalled: bool) -> Error {
        match self {
            Self::Client(_) if stalled => ErrorCode::RequestTimeout.into(),
            Self::Client(_) => Error::new(ErrorCode::InvalidInput)
                .message("The request body ended early or its framing is broken."),
            Self::Inside(_) | Self::Outside(..) => Error::new(ErrorCode::CannotVerifyCopySource)
                .status(500)
                .message("The copy source broke off before its end; try again."),
        }
    }
}

/// A request body under an idle limit: a client that sends nothing for so long is cut off.
pub struct RequestBody {
    origin: Origin,
    idle: Duration,
    received: u64,
    /// Where else they are counted.
    count: Option<Arc<AtomicU64>>,
    /// How fast it has to come.
    pace: Option<MinimumRate>,
    env: Env,
    /// Whose share of memory it takes.
    payer: AccountId,
    /// Takes a structured message apart.
    decoder: Option<Decoder>,
    /// Bytes of the message that the decoder has not seen.
    undecoded: Bytes,
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl RequestBody {
    /// Wraps hyper's body.
    #[must_use]
    pub const fn new(incoming: Incoming, idle: Duration, env: Env) -> Self {
        Self::of(Origin::Client(incoming), idle, env)
    }

    /// A blob of this store in the place of a client's body.
    #[must_use]
    pub fn of_source(body: ResponseBody, idle: Duration, env: Env) -> Self {
        Self::of(Origin::Inside(Box::new(body)), idle, env)
    }

    /// No body.
    #[must_use]
    pub fn empty(env: Env) -> Self {
        Self::of_source(ResponseBody::full(Bytes::new()), DRAIN_TIME_MAX, env)
    }

    /// Another server's answer in the place of a client's body; `until` by the monotonic clock.
    #[must_use]
    pub const fn of_outside(body: Incoming, idle: Duration, until: Duration, env: Env) -> Self {
        Self::of(Origin::Outside(body, until), idle, env)
    }

    const fn of(origin: Origin, idle: Duration, env: Env) -> Self {
        Self {
            origin,
            idle,
            received: 0,
            count: None,
            pace: None,
            env,
            payer: STRANGERS,
            decoder: None,
            undecoded: Bytes::new(),
        }
    }

    /// Counts what comes where others see it.
    #[must_use]
    pub fn counted(self, count: Option<Arc<AtomicU64>>) -> Self {
        Self { count, ..self }
    }

    /// Holds the body of another server to a minimum rate.
    #[must_use]
    pub(crate) fn paced(self, pace: MinimumRate) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// What the head says of the body: from here on [`Self::next`] gives the content of a
    /// structured message.
    pub fn expect(&mut self, upload: &Upload) {
        self.decoder = upload.message_len.map(|len| Decoder::new(len, upload.len));
    }

    /// The next piece of content; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// `OperationTimedOut` (408) when the client stalls, `InvalidInput` when the connection, its
    /// framing or the structured message broke, `Crc64Mismatch` when its content is not what it
    /// was.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(decoder) = &mut self.decoder
                && let Some(content) = decoder.next(&mut self.undecoded)?
            {
                return Ok(Some(content));
            }
            let piece = self.arrived().await?;
            match (&self.decoder, piece) {
                (None, piece) => return Ok(piece),
                (Some(_), Some(piece)) => self.undecoded = piece,
                (Some(decoder), None) => return decoder.finish().map(|()| None),
            }
        }
    }

    /// The next piece as it came.
    async fn arrived(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let patience = self.patience();
            let asked = self.pace.is_some().then(|| self.env.clock.monotonic());
            let frame = tokio::select! {
                biased;
                frame = self.origin.frame() => frame,
                () = self.env.clock.sleep(patience) => return Err(self.origin.broken(true)),
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    tracing::debug!(%error, "the request body broke off");
                    return Err(self.origin.broken(false));
                }
                // Trailers carry nothing we use.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => {
                        self.received += data.len() as u64;
                        if let (Some(pace), Some(asked)) = (&mut self.pace, asked) {
                            let waited = self.env.clock.monotonic().saturating_sub(asked);
                            if !pace.came(data.len() as u64, waited) {
                                return Err(too_slow());
                            }
                        }
                        if let Some(count) = &self.count {
                            count.store(self.received, Ordering::Relaxed);
                        }
                        return Ok(Some(data));
                    }
                    Err(_) => {}
                },
            }
        }
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// How long the next piece is waited for.
    fn patience(&self) -> Duration {
        match &self.origin {
            Origin::Client(_) | Origin::Inside(_) => self.idle,
            Origin::Outside(_, until) => {
                self.idle.min(until.saturating_sub(self.env.clock.monotonic()))
            }
        }
    }

    /// Counts the memory it takes for an account.
    pub(crate) const fn pay(&mut self, account: AccountId) {
        self.payer = account;
    }

    /// For whom its memory is counted.
    pub(crate) const fn payer(&self) -> AccountId {
        self.payer
    }

    /// As [`Self::drain`], but by itself: the answer need not wait for it.
    pub fn leave(&mut self) {
        let gone = Origin::Inside(Box::new(ResponseBody::full(Bytes::new())));
        match std::mem::replace(&mut self.origin, gone) {
            Origin::Client(body) if !body.is_end_stream() => {
                let mut rest = Self::new(body, DRAIN_TIME_MAX, self.env.clone());
                drop(self.env.tasks.spawn_part("refused body", async move { rest.drain().await }));
            }
            Origin::Client(_) | Origin::Inside(_) | Origin::Outside(..) => {}
        }
    }

    /// Reads and drops what still comes, within limits, so that a client still sending reads our
    /// answer instead of a reset.
    pub async fn drain(&mut self) {
        let limit = self.env.clock.monotonic() + DRAIN_TIME_MAX;
        let mut left = DRAIN_BYTES_MAX;
        self.idle = DRAIN_TIME_MAX;
        while let Ok(Some(piece)) = self.arrived().await {
            match left.checked_sub(piece.len() as u64) {
                Some(rest) if self.env.clock.monotonic() < limit => left = rest,
                _ => return,
            }
        }
    }
}

/// What is said of another server that is slower than it has to be.
fn too_slow() -> Error {
    Error::new(ErrorCode::CannotVerifyCopySource).status(500).message(
        "The copy source sends too slowly and was given up; see --copy-source-bytes-per-second-min.",
    )
}

/// The next pieces of a body, and the source for those after.
pub type Next =
    Pin<Box<dyn Future<Output = Option<(Result<VecDeque<Bytes>, BodyError>, Source)>> + Send>>;

/// Where a streamed body comes from: gives the next pieces and itself back.
pub type Source = Box<dyn Pull>;

/// Pulls pieces of a response body.
pub trait Pull: Send {
    /// The next pieces; `None` at the end.
    fn pull(self: Box<Self>) -> Next;
}

/// A failed response body: hyper cuts the connection, so that a short body never looks complete.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the response body cannot be completed: {0}")]
pub struct BodyError(pub String);

/// Bytes given to an HTTP/2 stream at a time: a frame, by default. Its pace is known as exactly as
/// this.
const STREAM_PIECE_BYTES: usize = 16 << 10;
/// Of a longer body over HTTP/2 the last byte goes by itself: what was given to a stream whole
/// cannot be taken back from it.
const STREAM_WHOLE_BYTES: u64 = 512;

/// What a body takes with it, and who looks at how it goes.
#[derive(Default)]
struct Sending {
    /// Room among the requests.
    pass: Option<Pass>,
    /// The request's lines of the audit log, written when it is gone.
    draft: Option<Box<Draft>>,
    /// Memory for what is rendered into it.
    held: Option<Reservation>,
    /// Over HTTP/2, how its client takes it, and the bytes it has to take.
    stream: Option<(Arc<Flow>, Arc<dyn Clock>, u64)>,
}

/// A response body of known length.
pub struct ResponseBody {
    ready: VecDeque<Bytes>,
    remaining: u64,
    next: Option<Next>,
    /// Makes it a structured message.
    encoder: Option<Encoder>,
    /// Pieces of the message, to be sent before anything else.
    encoded: VecDeque<Bytes>,
    sending: Sending,
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("remaining", &self.remaining).finish_non_exhaustive()
    }
}

impl ResponseBody {
    /// A body that is here.
    #[must_use]
    pub fn full(bytes: Bytes) -> Self {
        let remaining = bytes.len() as u64;
        let ready = if bytes.is_empty() { VecDeque::new() } else { VecDeque::from([bytes]) };
        Self { ready, remaining, ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            ready: VecDeque::new(),
            remaining: 0,
            next: None,
            encoder: None,
            encoded: VecDeque::new(),
            sending: Sending::default(),
        }
    }

    /// A body that is to be rendered within memory that is held for it.
    pub(crate) fn reserved(held: Reservation) -> Self {
        let mut body = Self::empty();
        body.sending.held = Some(held);
        body
    }

    /// This body, or what was rendered if it was reserved for that.
    #[must_use]
    pub(crate) fn or_rendered(self, rendered: Bytes) -> Self {
        let Some(mut held) = self.sending.held else { return self };
        held.shrink(rendered.len() as u64);
        let remaining = rendered.len() as u64;
        Self { ready: held.count(vec![rendered]), remaining, ..Self::empty() }
    }

    /// Keeps a request's room until the body is out.
    #[must_use]
    pub(crate) fn passing(mut self, pass: Option<Pass>) -> Self {
        self.sending.pass = pass;
        self
    }

    /// Counts what is given out for the audit log.
    #[must_use]
    pub(super) fn drafting(mut self, draft: Option<Box<Draft>>) -> Self {
        self.sending.draft = draft;
        self
    }

    /// Tells how a client takes it over HTTP/2.
    #[must_use]
    pub(crate) fn flowing(mut self, flow: &Arc<Flow>, clock: &Arc<dyn Clock>) -> Self {
        if self.sending.pass.is_some() {
            flow.hold();
        }
        self.sending.stream = Some((Arc::clone(flow), Arc::clone(clock), 0));
        self
    }

    /// A body of `len` bytes: the first pieces are here, the rest comes from `source`.
    #[must_use]
    pub fn stream(first: VecDeque<Bytes>, source: Option<Source>, len: u64) -> Self {
        let next = source.map(Pull::pull);
        Self { ready: first, remaining: len, next, ..Self::empty() }
    }

    /// The same content as a structured message.
    #[must_use]
    pub fn structured(mut self, mut encoder: Encoder) -> Self {
        self.remaining = encoder.message_len();
        encoder.start(&mut self.encoded);
        self.encoder = Some(encoder);
        self
    }
}

impl ResponseBody {
    /// The part of a piece that is given out now, and what comes after it.
    fn cut(&self, mut piece: Bytes) -> (Bytes, Option<Bytes>) {
        if self.sending.stream.is_none() {
            return (piece, None);
        }
        let mut most = piece.len().min(STREAM_PIECE_BYTES);
        if most as u64 == self.remaining && self.remaining > STREAM_WHOLE_BYTES {
            most -= 1;
        }
        let rest = (most < piece.len()).then(|| piece.split_off(most));
        (piece, rest)
    }

    /// Gives a piece out.
    fn give(&mut self, piece: Bytes) -> Frame<Bytes> {
        let bytes = piece.len() as u64;
        self.remaining = self.remaining.saturating_sub(bytes);
        if let Some(draft) = &mut self.sending.draft {
            draft.sent(bytes);
        }
        if let Some((flow, clock, offered)) = &mut self.sending.stream {
            *offered = bytes;
            flow.offer(clock.monotonic());
        }
        Frame::data(piece)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            if let Some(piece) = self.encoded.pop_front() {
                let (piece, rest) = self.cut(piece);
                if let Some(rest) = rest {
                    self.encoded.push_front(rest);
                }
                return Poll::Ready(Some(Ok(piece)));
            }
            if let Some(piece) = self.ready.pop_front() {
                if let Some(encoder) = &mut self.encoder {
                    encoder.push(piece, &mut self.encoded);
                    continue;
                }
                let (piece, rest) = self.cut(piece);
                if let Some(rest) = rest {
                    self.ready.push_front(rest);
                }
                return Poll::Ready(Some(Ok(piece)));
            }
            let Some(next) = self.next.as_mut() else { return Poll::Ready(None) };
            match next.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.next = None,
                Poll::Ready(Some((Ok(pieces), source))) => {
                    self.ready = pieces;
                    self.next = Some(source.pull());
                }
                Poll::Ready(Some((Err(error), _))) => {
                    self.next = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        // Asked for more: the stream has taken what it was given.
        if let Some((flow, clock, offered)) = &mut self.sending.stream {
            flow.took(std::mem::take(offered), clock.monotonic());
        }
        let piece = std::task::ready!(self.poll_piece(cx));
        Poll::Ready(piece.map(|piece| piece.map(|piece| self.give(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
