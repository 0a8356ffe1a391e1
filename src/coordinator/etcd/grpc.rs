//! Calls of gRPC over HTTP/2 (grpc.io, "gRPC over HTTP2"): one message there, one or more back.

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use bytes::Buf;
use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderMap;
use http::HeaderValue;
use http::Request;
use http::StatusCode;
use http::Uri;
use http::header::CONTENT_TYPE;
use http::header::TE;
use http::header::USER_AGENT;
use http_body::Body;
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use prost::Message;
use tokio::sync::oneshot;

use super::wire::Rpc;

/// The most bytes of one answer, gRPC's default. A server that is set up as usual takes requests of
/// 1.5 MiB and sends watches in parts of 2 MiB, so only a page of a range can be larger.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// What precedes each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(super) enum CallError {
    /// Nothing was sent.
    NotSent(String),
    /// The answer did not arrive, or it is none of gRPC.
    Lost(String),
    /// The answer has more than [`ANSWER_BYTES_MAX`] bytes.
    TooLarge,
    /// The server's refusal.
    Refused(Status),
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// A code of gRPC other than 0.
    pub code: u32,
    /// What the server says.
    pub message: String,
}

/// The one message of a request. The stream ends after it, or stays open as long as the sender of
/// `open` lives.
pub(super) struct Outgoing {
    message: Option<Bytes>,
    open: Option<oneshot::Receiver<Infallible>>,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        match &mut self.open {
            Some(open) => Pin::new(open).poll(cx).map(|_| None),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.open.is_none()
    }
}

/// How a call is made.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Of the server: scheme and authority.
    pub origin: Uri,
    /// The token of a user.
    pub token: Option<HeaderValue>,
    /// When the server may give up.
    pub timeout: Option<Duration>,
}

/// Sends a request. The stream stays open for the server until the answers are dropped if `open`
/// is set.
pub(super) async fn send<R: Rpc>(
    sender: &mut SendRequest<Outgoing>,
    head: Head,
    request: &R,
    open: bool,
) -> Result<Answers<R::Answer>, CallError> {
    let (held, released) = oneshot::channel();
    let body = Outgoing { message: Some(framed(request)), open: open.then_some(released) };
    let request = headed(head, R::PATH, body)
        .map_err(|error| CallError::NotSent(format!("a request cannot be made: {error}")))?;
    sender.ready().await.map_err(|error| CallError::NotSent(error.to_string()))?;
    let response = match sender.try_send_request(request).await {
        Ok(response) => response,
        Err(mut failed) => {
            let returned = failed.take_message().is_some();
            let why = failed.into_error().to_string();
            return Err(if returned { CallError::NotSent(why) } else { CallError::Lost(why) });
        }
    };
    let (head, body) = response.into_parts();
    // A refusal without an answer comes in the head.
    if let Some(status) = status_of(&head.headers) {
        return Err(status.map_or(lost("the server sent no answer"), CallError::Refused));
    }
    if head.status != StatusCode::OK {
        return Err(lost(&format!("the server answered HTTP {}", head.status)));
    }
    Ok(Answers { body, received: BytesMut::new(), _held: held, of: PhantomData })
}

/// The answers to a request.
pub(super) struct Answers<M> {
    body: Incoming,
    /// What was received and is no whole message.
    received: BytesMut,
    _held: oneshot::Sender<Infallible>,
    of: PhantomData<fn() -> M>,
}

impl<M: Message + Default> Answers<M> {
    /// The next answer, or `None` after the last one. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<M>, CallError> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            let Some(frame) = self.body.frame().await else {
                return Err(lost("the answer has no end"));
            };
            match frame.map_err(|error| lost(&error.to_string()))?.into_data() {
                Ok(data) => self.received.put(data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    return match status_of(&trailers) {
                        Some(None) => Ok(None),
                        Some(Some(status)) => Err(CallError::Refused(status)),
                        None => Err(lost("the answer has no status")),
                    };
                }
            }
        }
    }

    /// A whole message of what was received.
    fn take(&mut self) -> Result<Option<M>, CallError> {
        let Some(mut prefix) = self.received.get(..PREFIX_BYTES) else { return Ok(None) };
        if prefix.get_u8() != 0 {
            return Err(lost("the answer is compressed, which was not asked for"));
        }
        let len = usize::try_from(prefix.get_u32()).map_err(|_| CallError::TooLarge)?;
        if len > ANSWER_BYTES_MAX {
            return Err(CallError::TooLarge);
        }
        if self.received.len() < PREFIX_BYTES + len {
            return Ok(None);
        }
        self.received.advance(PREFIX_BYTES);
        // Read from a slice, so that values are copied and do not keep the whole answer in memory.
        let message = M::decode(&self.received[..len]);
        self.received.advance(len);
        message.map(Some).map_err(|error| lost(&error.to_string()))
    }
}

fn lost(why: &str) -> CallError {
    CallError::Lost(why.to_owned())
}

fn framed(message: &impl Message) -> Bytes {
    let len = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + len);
    framed.put_u8(0);
    // The server refuses far smaller requests.
    framed.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    message.encode(&mut framed).expect("the buffer grows");
    framed.freeze()
}

fn headed(head: Head, path: &str, body: Outgoing) -> Result<Request<Outgoing>, http::Error> {
    let mut target = head.origin.into_parts();
    target.path_and_query = Some(path.parse()?);
    let mut request = Request::post(Uri::from_parts(target)?)
        .header(TE, "trailers")
        .header(CONTENT_TYPE, "application/grpc")
        .header(USER_AGENT, concat!("blockyard/", env!("CARGO_PKG_VERSION")))
        // A member that knows no leader refuses immediately, and another member is asked.
        .header("hasleader", "true");
    if let Some(token) = head.token {
        request = request.header("token", token);
    }
    if let Some(timeout) = head.timeout {
        // At most eight digits.
        request =
            request.header("grpc-timeout", format!("{}m", timeout.as_millis().min(99_999_999)));
    }
    request.body(body)
}

/// The status in a head or in trailers: `Some(None)` if it is 0.
fn status_of(headers: &HeaderMap) -> Option<Option<Status>> {
    /// The code of an error that nobody knows.
    const UNKNOWN: u32 = 2;
    let code = headers.get("grpc-status")?;
    let code = code.to_str().ok().and_then(|code| code.parse().ok()).unwrap_or(UNKNOWN);
    if code == 0 {
        return Some(None);
    }
    let message = headers.get("grpc-message").map(HeaderValue::as_bytes).unwrap_or_default();
    let message = percent_encoding::percent_decode(message).decode_utf8_lossy().into_owned();
    Some(Some(Status { code, message }))
}
