//! The line of a request that watchers of live requests receive, and the effects of the fault dial.
//! Both cost one atomic load while they are off.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use hyper::Response;

use crate::audit_log::Principal;
use crate::env::Env;
use crate::frontend::accounts::User;
use crate::frontend::admission::Pass;
use crate::frontend::audit_log::draft::Draft;
use crate::frontend::body::BodyError;
use crate::frontend::body::Next;
use crate::frontend::body::Pull;
use crate::frontend::body::ResponseBody;
use crate::frontend::dialect::Arrival;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::frontend::faults::FaultKind;
use crate::frontend::faults::FaultTarget;
use crate::frontend::faults::InjectedFault;
use crate::frontend::metrics::Traffic;
use crate::frontend::spans::Facts;
use crate::frontend::spans::Recording;
use crate::frontend::state::FrontEnd;
use crate::frontend::trace::TraceLine;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::Timestamp;
use crate::types::request;

/// Pieces of a slowed body a second.
const PIECES_PER_SECOND: u32 = 10;

/// The connection is to be cut instead of answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fault dial cuts the connection")]
pub struct ConnectionAborted;

/// The facts of a request while it is answered.
#[derive(Debug)]
pub(super) struct RequestContext {
    /// REST name of the operation, once the request was admitted.
    pub(super) operation: &'static str,
    /// The fault that the fault dial injects.
    pub(super) fault: Option<InjectedFault>,
    /// Whether the sender is authenticated and the request was admitted.
    pub(super) authenticated: bool,
    /// The sender, while the audit log is on.
    pub(super) principal: Principal,
    /// The actual address, if it differs from that of the URL.
    pub(super) meant: Option<Box<Address>>,
    /// Its lines of the audit log.
    pub(super) draft: Option<Box<Draft>>,
    /// Its place among the requests, until its answer is sent.
    pub(super) pass: Option<Pass>,
    /// The counters of its account, once the request was admitted.
    pub(super) traffic: Option<Arc<Traffic>>,
    /// The user that sends it, once the request was admitted.
    pub(super) user: Option<Arc<User>>,
    /// How long its admission took, if it is watched or recorded.
    pub(super) admission: Option<Duration>,
    /// Its span, if it is recorded.
    pub(super) span: Option<Box<Recording>>,
}

impl RequestContext {
    /// Of a request of which nothing is known yet.
    pub(super) const fn nothing() -> Self {
        Self {
            operation: "Refused",
            fault: None,
            authenticated: false,
            principal: Principal::Unknown,
            meant: None,
            draft: None,
            pass: None,
            traffic: None,
            user: None,
            admission: None,
            span: None,
        }
    }

    /// Notes that it was admitted as an operation on an account, and whether its sender is
    /// authenticated.
    pub(super) fn admitted(
        &mut self,
        operation: &'static str,
        account: &AccountName,
        authenticated: bool,
    ) {
        self.operation = operation;
        self.authenticated = authenticated;
        if let Some(span) = &mut self.span {
            span.admitted(operation, account, authenticated);
        }
    }

    /// The request with its answer, for a trace.
    pub(super) fn exchange<'a>(
        &'a self,
        request: Traced,
        answer: Option<&'a Response<ResponseBody>>,
    ) -> Exchange<'a> {
        Exchange {
            request,
            admission: self.admission,
            fault: self.fault.map(|fault| fault.kind),
            answer,
            user: self.user.as_deref(),
            meant: self.meant.as_deref(),
        }
    }

    pub(super) fn log_refusal(&self, refusal: &Refusal) {
        tracing::debug!(code = refusal.reason.name(), operation = self.operation, "refused");
    }
}

/// The measurements of a request for a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traced {
    /// When the request arrived.
    pub(super) arrived: Timestamp,
    /// How long it took until the head of its answer.
    pub(super) took: Duration,
    /// Bytes of its body that were read.
    pub(super) bytes_in: u64,
    /// How long bytes of its body were waited for.
    pub(super) body_wait: Duration,
}

/// A request and its answer, as a trace shows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange<'a> {
    /// The measurements.
    pub(super) request: Traced,
    /// How long its admission took, if it was admitted.
    pub(super) admission: Option<Duration>,
    /// The kind of fault that the fault dial injected.
    pub(super) fault: Option<FaultKind>,
    /// The answer; `None` when the fault dial cuts the connection.
    pub(super) answer: Option<&'a Response<ResponseBody>>,
    /// The user that sent it, if it is one of the account.
    pub(super) user: Option<&'a User>,
    /// The actual address, if it differs from that of the URL.
    pub(super) meant: Option<&'a Address>,
}

impl FrontEnd {
    /// Applies the rules of the fault dial to a request that was admitted.
    ///
    /// # Errors
    /// The refusal that the dial orders; also for [`FaultKind::Timeout`], whose connection is cut
    /// before the refusal is sent.
    pub(super) fn inject_fault(
        &self,
        arrival: Arrival<'_>,
        context: &mut RequestContext,
    ) -> Result<(), Refusal> {
        if !self.faults.is_on() {
            return Ok(());
        }
        let Some(address) = arrival.address() else { return Ok(()) };
        context.fault = self.faults.inject(FaultTarget {
            operation: context.operation,
            account: address.account.as_str(),
            container: address.container.as_ref().map(ContainerName::as_str),
        });
        let said = "The fault dial answers this request.";
        match context.fault.map(|fault| fault.kind) {
            None | Some(FaultKind::Lost | FaultKind::Slow) => Ok(()),
            Some(FaultKind::Busy) => Err(errors::busy(Busy::FaultDial).message(said)),
            Some(FaultKind::Error | FaultKind::Timeout) => {
                Err(Refusal::new(Reason::InternalError).message(said))
            }
        }
    }

    /// Applies the rest of a fault to a finished answer.
    ///
    /// # Errors
    /// [`ConnectionAborted`] when the client gets no answer.
    pub(super) async fn apply_fault(
        &self,
        fault: Option<InjectedFault>,
        response: Response<ResponseBody>,
    ) -> Result<Response<ResponseBody>, ConnectionAborted> {
        let Some(fault) = fault else { return Ok(response) };
        match fault.kind {
            FaultKind::Busy | FaultKind::Error => Ok(response),
            FaultKind::Slow => Ok(response.map(|body| slowed(body, fault, self.env.clone()))),
            FaultKind::Timeout | FaultKind::Lost => {
                self.env.clock.sleep(fault.delay).await;
                Err(ConnectionAborted)
            }
        }
    }

    /// The time since `begun`, if a trace is being recorded.
    pub(super) fn trace_stage(&self, begun: Duration) -> Option<Duration> {
        let now = || self.env.clock.monotonic().saturating_sub(begun);
        (self.trace.is_watched() || self.spans.are_on()).then(now)
    }

    /// Sends the request's line to the watchers of live requests. The caller has checked that there
    /// are watchers.
    pub(super) fn send_trace_line(
        &self,
        arrival: Arrival<'_>,
        operation: &'static str,
        exchange: Exchange<'_>,
    ) {
        let Exchange { request, admission, fault, answer, user, meant } = exchange;
        let Traced { arrived, took, bytes_in, body_wait } = request;
        let Arrival { dialect, head, peer } = arrival;
        let address = arrival.address();
        let headers = answer.map(Response::headers);
        let code = headers.and_then(|headers| dialect.error_code(headers));
        let request_id = headers.and_then(|headers| dialect.request_id(headers));
        let request_id =
            request_id.map(str::to_owned).or_else(|| Some(request::current()?.to_string()));
        let now = self.env.clock.monotonic();
        let waited = request::current_waits().map(|waits| waits.times(now)).unwrap_or_default();
        let client_request_id = dialect.client_request_id(&head.headers);
        let address = meant.or(address.as_ref());
        self.trace.send(TraceLine {
            time: arrived.to_iso_millis(),
            method: head.method.as_str().to_owned(),
            operation: operation.to_owned(),
            account: address.map_or_else(String::new, |a| a.account.as_str().to_owned()),
            user: user.map(|user| user.name.as_str().to_owned()),
            container: address
                .and_then(|a| a.container.as_ref())
                .map(|name| ContainerName::as_str(name).to_owned()),
            blob: address
                .and_then(|a| a.blob.as_ref())
                .map(|name| BlobName::as_str(name).to_owned()),
            status: answer.map_or(0, |response| response.status().as_u16()),
            code: code.map(str::to_owned),
            fault: fault.map(|kind| kind.word().to_owned()),
            ms: milliseconds(took),
            admission_ms: admission.map(milliseconds),
            body_ms: milliseconds(body_wait),
            index_ms: milliseconds(waited.index),
            journal_ms: milliseconds(waited.journal),
            read_ms: milliseconds(waited.read),
            bytes_in,
            bytes_out: answer.map_or(0, |r| r.body().size_hint().lower()),
            client: peer.address.to_string(),
            client_request_id: client_request_id.map(str::to_owned),
            request_id: request_id.unwrap_or_default(),
            trace_id: request::current_trace().map(|trace| trace.to_string()),
            scheme: peer.scheme().to_owned(),
        });
    }
}

/// The facts of a request and its answer for a span.
pub(super) fn facts(
    arrival: Arrival<'_>,
    context: &RequestContext,
    request: Traced,
    answer: Option<&Response<ResponseBody>>,
) -> Facts {
    let Arrival { dialect, head, peer } = arrival;
    let spelled = arrival.address();
    let address = context.meant.as_deref().or(spelled.as_ref());
    let container = address.and_then(|address| address.container.as_ref());
    let code = answer.and_then(|answer| dialect.error_code(answer.headers()));
    Facts {
        operation: context.operation,
        method: known_method(&head.method),
        scheme: peer.scheme(),
        account: address.map(|address| address.account.as_str().to_owned()),
        container: container.map(|name| name.as_str().to_owned()),
        status: answer.map(|answer| answer.status().as_u16()),
        code: code.map(str::to_owned),
        bytes_in: request.bytes_in,
        bytes_out: answer.and_then(|answer| answer.body().size_hint().exact()),
        admission: context.admission,
        body: request.body_wait,
    }
}

/// The method, or OpenTelemetry's name for unknown ones.
pub(super) fn known_method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "PUT", "HEAD", "DELETE", "POST", "OPTIONS", "PATCH"];
    KNOWN.into_iter().find(|known| method == known).unwrap_or("_OTHER")
}

/// Milliseconds with three digits behind the point.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// A body that is sent at the rate of a fault.
struct Slow {
    body: ResponseBody,
    /// The rest of the piece that is being sent.
    rest: Bytes,
    fault: InjectedFault,
    env: Env,
}

fn slowed(body: ResponseBody, fault: InjectedFault, env: Env) -> ResponseBody {
    let len = body.size_hint().lower();
    let slow = Slow { body, rest: Bytes::new(), fault, env };
    ResponseBody::stream(VecDeque::new(), Some(Box::new(slow)), len)
}

impl Pull for Slow {
    fn pull(mut self: Box<Self>) -> Next {
        Box::pin(async move {
            while self.rest.is_empty() {
                match self.body.frame().await? {
                    Ok(frame) => self.rest = frame.into_data().unwrap_or_default(),
                    Err(error) => return Some((Err::<_, BodyError>(error), self as _)),
                }
            }
            let pace = self.fault.bytes_per_second.max(1);
            let wanted = pace.div_ceil(PIECES_PER_SECOND) as usize;
            let piece = self.rest.split_to(wanted.min(self.rest.len()));
            #[expect(clippy::cast_precision_loss, reason = "pieces are small")]
            let pause = piece.len() as f64 / f64::from(pace);
            self.env.clock.sleep(Duration::from_secs_f64(pause)).await;
            Some((Ok(VecDeque::from([piece])), self as _))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::env::SeededRand;
    use crate::env::Tasks;
    use crate::env::clock::SimClock;

    #[tokio::test(start_paused = true)]
    async fn slowed_bodies_are_whole_and_take_their_time() {
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        let fault =
            InjectedFault { kind: FaultKind::Slow, delay: Duration::ZERO, bytes_per_second: 100 };
        let content = Bytes::from(vec![7; 1005]);
        let begun = env.clock.monotonic();
        let body = slowed(ResponseBody::full(content.clone()), fault, env.clone());
        assert_eq!(body.size_hint().exact(), Some(1005));
        assert_eq!(body.collect().await.unwrap().to_bytes(), content);
        let took = env.clock.monotonic() - begun;
        assert!((10.0..10.2).contains(&took.as_secs_f64()), "{took:?} of simulated time");
    }
}
