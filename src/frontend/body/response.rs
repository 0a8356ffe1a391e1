//! Response bodies: what they are made of, what they hold until they are out.

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
    pass: Option<Arc<Pass>>,
    /// Room among the refusals.
    _refusal: Option<OwnedSemaphorePermit>,
    /// The request's lines of the audit log, written when it is gone.
    draft: Option<Box<Draft>>,
    /// Memory for what is rendered into it.
    reserved: Option<Reservation>,
    /// All of the memory for answers that it holds.
    holding: Option<Arc<MemoryUse>>,
    /// Over HTTP/2, how its client takes it, and the bytes it has to take.
    stream: Option<(Arc<Flow>, Arc<dyn Clock>, u64)>,
    /// Whose bytes they are.
    traffic: Option<Arc<Traffic>>,
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
    pub(crate) fn reserved(reservation: Reservation) -> Self {
        let mut body = Self::empty();
        body.sending.holding = reservation.holding().cloned();
        body.sending.reserved = Some(reservation);
        body
    }

    /// A body whose bytes are counted in `holding`.
    pub(crate) fn holding(mut self, holding: Option<Arc<MemoryUse>>) -> Self {
        self.sending.holding = holding;
        self
    }

    /// This body, or what was rendered if it was reserved for that.
    #[must_use]
    pub(crate) fn or_rendered(self, rendered: Bytes) -> Self {
        let Some(reservation) = self.sending.reserved else { return self };
        let holding = self.sending.holding;
        let remaining = rendered.len() as u64;
        let ready = reservation.pieces(rendered);
        Self { ready, remaining, ..Self::empty() }.holding(holding)
    }

    /// Keeps a request's room until the body is out.
    #[must_use]
    pub(crate) fn passing(mut self, pass: Option<Pass>) -> Self {
        self.sending.pass = pass.map(Arc::new);
        self
    }

    /// Counts as a refusal until the body is out.
    pub(crate) fn refusing(mut self, refusal: OwnedSemaphorePermit) -> Self {
        self.sending._refusal = Some(refusal);
        self
    }

    /// Notes in a flow what it holds that others may need.
    pub(crate) fn noted(self, flow: &Flow) -> Self {
        flow.hold(self.sending.pass.as_ref(), self.sending.holding.as_ref());
        self
    }

    /// Counts what is given out.
    #[must_use]
    pub(crate) fn counted(mut self, traffic: Option<Arc<Traffic>>) -> Self {
        self.sending.traffic = traffic;
        self
    }

    /// Counts what is given out for the audit log.
    #[must_use]
    pub(in crate::frontend) fn drafting(mut self, draft: Option<Box<Draft>>) -> Self {
        self.sending.draft = draft;
        self
    }

    /// Tells how a client takes it over HTTP/2.
    #[must_use]
    pub(crate) fn flowing(mut self, flow: &Arc<Flow>, clock: &Arc<dyn Clock>) -> Self {
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
        if let Some(traffic) = &self.sending.traffic {
            traffic.sent.inc_by(bytes);
        }
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
