//! What watchers of live requests are told, and what the fault dial does to a request. Costs
//! nothing while neither is wanted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use hyper::Response;

use crate::audit_log::Principal;
use crate::env::Env;
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
use crate::frontend::state::FrontEnd;
use crate::frontend::trace::TraceLine;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::Timestamp;

/// Pieces of a slowed body a second.
const PIECES_PER_SECOND: u32 = 10;

/// The connection is to be cut instead of answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fault dial cuts the connection")]
pub struct Cut;

/// What is known of a request while it is answered.
#[derive(Debug)]
pub(super) struct Seen {
    /// REST name of the operation, once it was let in.
    pub(super) operation: &'static str,
    /// What the fault dial does to it.
    pub(super) strike: Option<InjectedFault>,
    /// Whether the sender proved who they are, and was let in.
    pub(super) authenticated: bool,
    /// Who that is, while the audit log is on.
    pub(super) principal: Principal,
    /// Its lines of the audit log.
    pub(super) draft: Option<Box<Draft>>,
    /// Its room among the requests, until its answer is out.
    pub(super) pass: Option<Pass>,
    /// What is counted of its account, once it was let in.
    pub(super) traffic: Option<Arc<Traffic>>,
}

impl Seen {
    /// Of a request of which nothing is known yet.
    pub(super) const fn nothing() -> Self {
        Self {
            operation: "Refused",
            strike: None,
            authenticated: false,
            principal: Principal::Unknown,
            draft: None,
            pass: None,
            traffic: None,
        }
    }
}

impl FrontEnd {
    /// Lets the fault dial have its way with a request that was let in.
    ///
    /// # Errors
    /// What the dial wants answered; also for [`FaultKind::Timeout`], whose connection is cut
    /// instead.
    pub(super) fn meet_faults(&self, arrival: Arrival<'_>, seen: &mut Seen) -> Result<(), Refusal> {
        if !self.faults.is_on() {
            return Ok(());
        }
        let Some(address) = arrival.address() else { return Ok(()) };
        seen.strike = self.faults.inject(FaultTarget {
            operation: seen.operation,
            account: address.account.as_str(),
            container: address.container.as_ref().map(ContainerName::as_str),
        });
        let said = "The fault dial answers this request.";
        match seen.strike.map(|strike| strike.kind) {
            None | Some(FaultKind::Lost | FaultKind::Slow) => Ok(()),
            Some(FaultKind::Busy) => Err(errors::busy(Busy::FaultDial).message(said)),
            Some(FaultKind::Error | FaultKind::Timeout) => {
                Err(Refusal::new(Reason::InternalError).message(said))
            }
        }
    }

    /// The rest of the fault dial's work, on a finished answer.
    ///
    /// # Errors
    /// [`Cut`] when the client is to get none.
    pub(super) async fn strike(
        &self,
        strike: Option<InjectedFault>,
        response: Response<ResponseBody>,
    ) -> Result<Response<ResponseBody>, Cut> {
        let Some(strike) = strike else { return Ok(response) };
        match strike.kind {
            FaultKind::Busy | FaultKind::Error => Ok(response),
            FaultKind::Slow => Ok(response.map(|body| slowed(body, strike, self.env.clone()))),
            FaultKind::Timeout | FaultKind::Lost => {
                self.env.clock.sleep(strike.delay).await;
                Err(Cut)
            }
        }
    }

    /// Tells whoever watches. The caller has seen that somebody does.
    pub(super) fn tell(
        &self,
        arrival: Arrival<'_>,
        seen: &Seen,
        (came, took): (Timestamp, Duration),
        bytes_in: u64,
        answer: Option<&Response<ResponseBody>>,
    ) {
        let Arrival { dialect, head, peer } = arrival;
        let address = arrival.address();
        let headers = answer.map(Response::headers);
        let code = headers.and_then(|headers| dialect.error_code(headers));
        let request_id = headers.and_then(|headers| dialect.request_id(headers));
        let client_request_id = dialect.client_request_id(&head.headers);
        let address = address.as_ref();
        self.trace.send(TraceLine {
            time: came.to_iso_millis(),
            method: head.method.as_str().to_owned(),
            operation: seen.operation.to_owned(),
            account: address.map_or_else(String::new, |a| a.account.as_str().to_owned()),
            container: address
                .and_then(|a| a.container.as_ref())
                .map(|name| ContainerName::as_str(name).to_owned()),
            blob: address
                .and_then(|a| a.blob.as_ref())
                .map(|name| BlobName::as_str(name).to_owned()),
            status: answer.map_or(0, |response| response.status().as_u16()),
            code: code.map(str::to_owned),
            ms: (took.as_secs_f64() * 1e6).round() / 1e3,
            bytes_in,
            bytes_out: answer.map_or(0, |r| r.body().size_hint().lower()),
            client: peer.address.to_string(),
            client_request_id: client_request_id.map(str::to_owned),
            request_id: request_id.unwrap_or_default().to_owned(),
            scheme: peer.scheme().to_owned(),
        });
    }
}

/// A body that trickles.
struct Slow {
    body: ResponseBody,
    /// Of the piece being given out.
    rest: Bytes,
    strike: InjectedFault,
    env: Env,
}

fn slowed(body: ResponseBody, strike: InjectedFault, env: Env) -> ResponseBody {
    let len = body.size_hint().lower();
    let slow = Slow { body, rest: Bytes::new(), strike, env };
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
            let pace = self.strike.bytes_per_second.max(1);
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
        let strike =
            InjectedFault { kind: FaultKind::Slow, delay: Duration::ZERO, bytes_per_second: 100 };
        let content = Bytes::from(vec![7; 1005]);
        let begun = env.clock.monotonic();
        let body = slowed(ResponseBody::full(content.clone()), strike, env.clone());
        assert_eq!(body.size_hint().exact(), Some(1005));
        assert_eq!(body.collect().await.unwrap().to_bytes(), content);
        let took = env.clock.monotonic() - begun;
        assert!((10.0..10.2).contains(&took.as_secs_f64()), "{took:?} of simulated time");
    }
}
