//! Response bodies: their sources, and the resources that they hold until they are sent.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use tokio::sync::OwnedSemaphorePermit;

use crate::env::Clock;
use crate::frontend::admission::Pass;
use crate::frontend::answers::Flow;
use crate::frontend::answers::MemoryUse;
use crate::frontend::answers::Reservation;
use crate::frontend::audit_log::draft::Draft;
use crate::frontend::dialect::framing::Encoder;
use crate::frontend::metrics::Traffic;
use crate::frontend::spans::Recording;

/// The next pieces of a body, and the source for those after.
pub type Next =
    Pin<Box<dyn Future<Output = Option<(Result<VecDeque<Bytes>, BodyError>, Source)>> + Send>>;

/// The source of a streamed body: returns the next pieces and itself.
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

/// Bytes given to an HTTP/2 stream at a time: by default a frame. The client's rate is measured in
/// such pieces.
const STREAM_PIECE_BYTES: usize = 16 << 10;
/// The last byte of a longer body over HTTP/2 is sent alone: a body that was given to a stream
/// whole can no longer be cut.
const STREAM_WHOLE_BYTES: u64 = 512;

/// The length of a body that ends where its source does.
const UNKNOWN_BYTES: u64 = u64::MAX;

/// How the client of an HTTP/2 stream reads the body.
struct StreamFlow {
    flow: Arc<Flow>,
    clock: Arc<dyn Clock>,
    /// Bytes that were given to the stream and that it has not taken.
    offered: u64,
}

/// The resources that a body holds until it is sent, and the observers of its sending.
#[derive(Default)]
struct Sending {
    /// The request's admission.
    pass: Option<Arc<Pass>>,
    /// The place among the refusals that are being sent.
    _refusal: Option<OwnedSemaphorePermit>,
    /// The request's lines of the audit log, written when the body is dropped.
    draft: Option<Box<Draft>>,
    /// The request's span, which ends when the body is dropped.
    span: Option<Box<Recording>>,
    /// Memory for what is rendered into it.
    reserved: Option<Box<Reservation>>,
    /// All of the memory for answers that it holds.
    holding: Option<Arc<MemoryUse>>,
    /// Set over HTTP/2 only.
    stream: Option<StreamFlow>,
    /// Counts the bytes for the account.
    traffic: Option<Arc<Traffic>>,
}

/// The structured message that a body is sent as.
struct Message {
    encoder: Encoder,
    /// Pieces of the message, to be sent before anything else.
    encoded: VecDeque<Bytes>,
}

/// A response body. It is moved often, so its rare parts are boxed.
pub struct ResponseBody {
    ready: VecDeque<Bytes>,
    /// Bytes to send; [`UNKNOWN_BYTES`] if only the source knows.
    remaining: u64,
    next: Option<Next>,
    /// Set if the body is sent as a structured message.
    message: Option<Box<Message>>,
    sending: Sending,
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("remaining", &self.remaining).finish_non_exhaustive()
    }
}

impl ResponseBody {
    /// A body that is in memory.
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
            message: None,
            sending: Sending::default(),
        }
    }

    /// A body that is to be rendered within memory that is held for it.
    pub(crate) fn reserved(reservation: Reservation) -> Self {
        let mut body = Self::empty();
        body.sending.holding = reservation.holding().cloned();
        body.sending.reserved = Some(Box::new(reservation));
        body
    }

    /// A body whose bytes are counted in `holding`.
    pub(crate) fn holding(mut self, holding: Option<Arc<MemoryUse>>) -> Self {
        self.sending.holding = holding;
        self
    }

    /// This body, or the rendered bytes if it was reserved for them.
    #[must_use]
    pub(crate) fn or_rendered(self, rendered: Bytes) -> Self {
        let Some(reservation) = self.sending.reserved else { return self };
        let holding = self.sending.holding;
        let remaining = rendered.len() as u64;
        let ready = reservation.pieces(rendered);
        Self { ready, remaining, ..Self::empty() }.holding(holding)
    }

    /// Keeps a request's admission until the body is sent.
    #[must_use]
    pub(crate) fn passing(mut self, pass: Option<Pass>) -> Self {
        self.sending.pass = pass.map(Arc::new);
        self
    }

    /// Counts as a refusal until the body is sent.
    pub(crate) fn refusing(mut self, refusal: OwnedSemaphorePermit) -> Self {
        self.sending._refusal = Some(refusal);
        self
    }

    /// Notes in a flow the resources of the body that other requests may need.
    pub(crate) fn noted(self, flow: &Flow) -> Self {
        flow.hold(self.sending.pass.as_ref(), self.sending.holding.as_ref());
        self
    }

    /// Counts the bytes that are sent.
    #[must_use]
    pub(crate) fn counted(mut self, traffic: Option<Arc<Traffic>>) -> Self {
        self.sending.traffic = traffic;
        self
    }

    /// Counts the bytes that are sent for the audit log.
    #[must_use]
    pub(in crate::frontend) fn drafting(mut self, draft: Option<Box<Draft>>) -> Self {
        self.sending.draft = draft;
        self
    }

    /// Ends the request's span when it is sent.
    #[must_use]
    pub(in crate::frontend) fn recorded(mut self, span: Option<Box<Recording>>) -> Self {
        self.sending.span = span;
        self
    }

    /// Reports to `flow` how a client reads the body over HTTP/2.
    #[must_use]
    pub(crate) fn flowing(mut self, flow: &Arc<Flow>, clock: &Arc<dyn Clock>) -> Self {
        let (flow, clock) = (Arc::clone(flow), Arc::clone(clock));
        self.sending.stream = Some(StreamFlow { flow, clock, offered: 0 });
        self
    }

    /// A body of `len` bytes: the first pieces are in memory, the rest comes from `source`.
    #[must_use]
    pub fn stream(first: VecDeque<Bytes>, source: Option<Source>, len: u64) -> Self {
        let next = source.map(Pull::pull);
        Self { ready: first, remaining: len, next, ..Self::empty() }
    }

    /// A body that ends where `source` does: its length is not known when the head is sent.
    pub(crate) fn open_ended(first: VecDeque<Bytes>, source: Source) -> Self {
        Self::stream(first, Some(source), UNKNOWN_BYTES)
    }

    /// The same content as a structured message.
    #[must_use]
    pub fn structured(mut self, mut encoder: Encoder) -> Self {
        self.remaining = encoder.message_len();
        let mut encoded = VecDeque::new();
        encoder.start(&mut encoded);
        self.message = Some(Box::new(Message { encoder, encoded }));
        self
    }
}

impl ResponseBody {
    /// Splits a piece into the part that is sent now and the rest.
    fn split(&self, mut piece: Bytes) -> (Bytes, Option<Bytes>) {
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
        if self.remaining != UNKNOWN_BYTES {
            self.remaining = self.remaining.saturating_sub(bytes);
        }
        if let Some(traffic) = &self.sending.traffic {
            traffic.sent.inc_by(bytes);
        }
        if let Some(draft) = &mut self.sending.draft {
            draft.sent(bytes);
        }
        if let Some(stream) = &mut self.sending.stream {
            stream.offered = bytes;
            stream.flow.offer(stream.clock.monotonic());
        }
        Frame::data(piece)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            let encoded = self.message.as_mut().and_then(|message| message.encoded.pop_front());
            if let Some(piece) = encoded {
                let (piece, rest) = self.split(piece);
                if let (Some(rest), Some(message)) = (rest, &mut self.message) {
                    message.encoded.push_front(rest);
                }
                return Poll::Ready(Some(Ok(piece)));
            }
            if let Some(piece) = self.ready.pop_front() {
                if let Some(message) = &mut self.message {
                    message.encoder.push(piece, &mut message.encoded);
                    continue;
                }
                let (piece, rest) = self.split(piece);
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
        // A poll for more means that the stream has taken what it was given.
        if let Some(stream) = &mut self.sending.stream {
            let taken = std::mem::take(&mut stream.offered);
            stream.flow.took(taken, stream.clock.monotonic());
        }
        let piece = std::task::ready!(self.poll_piece(cx));
        if piece.is_none()
            && self.remaining == UNKNOWN_BYTES
            && let Some(draft) = &mut self.sending.draft
        {
            draft.ended();
        }
        Poll::Ready(piece.map(|piece| piece.map(|piece| self.give(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self.remaining {
            UNKNOWN_BYTES => SizeHint::default(),
            remaining => SizeHint::with_exact(remaining),
        }
    }
}
