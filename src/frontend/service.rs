//! From a request to a response: address, authenticate, parse, dispatch, render, count.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::Version;
use http::header::CONNECTION;
use hyper::Request;
use hyper::Response;
use hyper::body::Body;
use hyper::body::Incoming;
use prometheus_client::metrics::counter::Counter;
use uuid::Builder;
use uuid::Uuid;

use crate::audit_log::AuditLog;
use crate::audit_log::Principal;
use crate::capacity::Capacity;
use crate::coordinator::IdAllocator;
use crate::env::Env;
use crate::env::boxed;
use crate::frontend::access;
use crate::frontend::access::admit::Admitted;
use crate::frontend::access::admit::admit;
use crate::frontend::accounts::Accounts;
use crate::frontend::admission::Gate;
use crate::frontend::admission::Rates;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::answers::Budget;
use crate::frontend::answers::Fault;
use crate::frontend::answers::Flows;
use crate::frontend::answers::StallLimits;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::connections::InProgress;
use crate::frontend::cors;
use crate::frontend::dispatch;
use crate::frontend::dispatch::dispatch;
use crate::frontend::faults::Faults;
use crate::frontend::last_access::LastAccess;
use crate::frontend::metrics::ConnectionMetrics;
use crate::frontend::metrics::Metrics;
use crate::frontend::observe::Cut;
use crate::frontend::observe::Seen;
use crate::frontend::ops::copies::pending::Copies;
use crate::frontend::refusals::Refusals;
use crate::frontend::route::Router;
use crate::frontend::source::Listening;
use crate::frontend::source::Outside;
use crate::frontend::source::Requester;
use crate::frontend::tokens::Tokens;
use crate::frontend::trace::Trace;
use crate::frontend::website;
use crate::frontend::write::WritePool;
use crate::index::InFlight;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::KnownHosts;
use crate::protocol::Reply;
use crate::protocol::azure;
use crate::protocol::azure::structured;
use crate::types::Peer;

/// An upload that brings less in some seconds makes no progress of note, while others need what it
/// holds. At this rate a body that is held in memory is complete within a minute or so.
const UPLOAD_NOTE_BYTES: u64 = 64 << 10;

/// Limits of requests.
#[derive(Clone, Debug)]
pub struct FrontEndConfig {
    /// Host names under which accounts with the well-known development key are served.
    pub known_hosts: KnownHosts,
    /// Whether what comes by plain http is refused.
    pub https_only: bool,
    /// How hosts name accounts.
    pub addressing: azure::Addressing,
    /// Requests answered at a time, shared by the accounts; as many wait for a moment, and more get
    /// 503. Default 4,096.
    pub requests_max: usize,
    /// Requests a second of one account beyond which it gets 503; a second of them may come at
    /// once. 0, the default, is no limit.
    pub account_requests_per_second: u32,
    /// How long a blob takes out of the archive. Default 1 s, where the service takes hours.
    pub rehydration: Duration,
    /// Whether reads are remembered in the blobs' rows and shown. Default no.
    pub last_access: bool,
    /// A client that sends nothing of its body for so long is cut off. Default 60 s.
    pub body_idle: Duration,
    /// Bytes a second of a body that a client sends at least, over the time above; 0 asks for
    /// none. Default 1 KiB.
    pub request_rate_min: u64,
    /// A client that takes nothing of an answer for so long is cut off. Default 60 s.
    pub response_stall: Duration,
    /// Bytes a second of an answer that a client takes at least, over the time above; 0 asks for
    /// none. Default 1 KiB.
    pub response_rate_min: u64,
    /// Bytes that answers on their way out may hold together. Default 128 MiB.
    pub answer_bytes_max: u64,
    /// Where this process listens: URLs of copy sources that lead there are read inside.
    pub listening: Listening,
    /// How sources elsewhere are reached, and which may be.
    pub outside: Outside,
}

/// What a front end is made of.
#[derive(Debug)]
pub struct Parts {
    /// Routes to partitions.
    pub router: Arc<Router>,
    /// Reads and writes extents.
    pub capacity: Arc<dyn Capacity>,
    /// Stores bodies.
    pub pool: WritePool,
    /// The accounts served.
    pub accounts: Accounts,
    /// Whose bearer tokens are believed.
    pub tokens: Tokens,
    /// What reclaim must leave alone.
    pub inflight: InFlight,
    /// The world.
    pub env: Env,
    /// Issues container ids.
    pub container_ids: Arc<IdAllocator>,
    /// Counters.
    pub metrics: Metrics,
    /// Tells watchers.
    pub trace: Trace,
    /// The fault dial.
    pub faults: Faults,
    /// Where changes and requests are told.
    pub audit_log: AuditLog,
}

/// A front end. Stateless but for caches and running requests.
#[derive(Debug)]
pub struct FrontEnd {
    pub(crate) router: Arc<Router>,
    pub(crate) capacity: Arc<dyn Capacity>,
    pub(crate) pool: WritePool,
    pub(crate) inflight: InFlight,
    pub(crate) env: Env,
    pub(crate) container_ids: Arc<IdAllocator>,
    pub(crate) accounts: Accounts,
    pub(crate) tokens: Tokens,
    pub(super) trace: Trace,
    pub(super) faults: Faults,
    pub(super) audit_log: AuditLog,
    pub(crate) config: FrontEndConfig,
    /// Copies that outlive their request.
    pub(crate) copies: Arc<Copies>,
    /// Reads to be remembered, when they are tracked.
    pub(crate) last_access: Option<LastAccess>,
    /// Memory of answers on their way out.
    pub(crate) answers: Arc<Budget>,
    /// How clients take them.
    pub(super) flows: Arc<Flows>,
    /// How clients send the bodies of their requests.
    pub(super) uploads: Arc<Flows>,
    /// Error answers on their way out.
    refusals: Refusals,
    pub(super) gate: Arc<Gate>,
    pub(super) rates: Rates,
    metrics: Metrics,
}

/// Answers a request that named the structured format in it: a Get Blob with such a body, an upload
/// with the header.
fn structured(
    request: &http::request::Parts,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    if !request.headers.contains_key(&structured::BODY_HEADER) {
        return response;
    }
    if request.method != http::Method::GET {
        structured::confirm(response.headers_mut());
        return response;
    }
    match structured::announce(response.headers_mut()) {
        Some(encoder) => response.map(|body| body.structured(encoder)),
        None => response,
    }
}

/// Writes a reply, with the body that streams or what was rendered.
fn rendered(
    reply: Reply,
    stream: Option<ResponseBody>,
    echo: &azure::RequestEcho,
) -> Response<ResponseBody> {
    let rendered = azure::render(&reply, echo);
    // It is as large as what was rendered of it.
    drop(reply);
    match stream {
        Some(stream) => rendered.map(|bytes| stream.or_rendered(bytes)),
        None => rendered.map(ResponseBody::full),
    }
}

impl FrontEnd {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: Parts, config: FrontEndConfig) -> Self {
        let gate = Gate::new(config.requests_max, Arc::clone(&parts.env.clock));
        Self {
            answers: Budget::new(config.answer_bytes_max, Arc::clone(&parts.env.clock)),
            flows: Arc::default(),
            uploads: Arc::default(),
            refusals: Refusals::default(),
            gate,
            rates: Rates::new(config.account_requests_per_second),
            router: parts.router,
            capacity: parts.capacity,
            pool: parts.pool,
            inflight: parts.inflight,
            env: parts.env,
            container_ids: parts.container_ids,
            accounts: parts.accounts,
            tokens: parts.tokens,
            trace: parts.trace,
            faults: parts.faults,
            audit_log: parts.audit_log,
            copies: Arc::default(),
            last_access: config.last_access.then(|| LastAccess::new(&parts.metrics)),
            metrics: parts.metrics,
            config,
        }
    }

    /// Answers one request of the client at `peer`, which is in progress as `running`. Errors are
    /// responses.
    ///
    /// # Errors
    /// [`Cut`] when the fault dial wants the client to get no answer.
    pub(super) async fn handle(
        &self,
        (id, request): (String, Request<Incoming>),
        peer: Peer,
        running: &InProgress,
    ) -> Result<Response<ResponseBody>, Cut> {
        let came = self.env.clock.now();
        let begun = self.env.clock.monotonic();
        let (head, incoming) = request.into_parts();
        let mut seen = Seen { draft: self.draft((&head, peer), (&id, begun)), ..Seen::nothing() };
        let mut echo = azure::RequestEcho::new(&head, id, came);
        let mut body = RequestBody::new(incoming, &self.uploads, self.env.clone());
        let counted = self.metrics.begin();
        let acceptable = access::hosts::is_acceptable(self, &head, peer);
        let mut response = match acceptable.map(|()| website::named(self, &head)) {
            Err(error) => self.refused((&head, &mut body), &error, &echo, &seen).await,
            Ok(Some(site)) => {
                seen.operation = "GetWebContent";
                seen.principal = Principal::Anonymous;
                let told = (&echo, &mut seen.pass);
                // Boxed: otherwise every request would move its space too.
                boxed(|| website::serve(self, (&head, peer), &site, told)).await
            }
            Ok(None) => {
                let answer =
                    self.answer((&head, peer), (&mut body, begun), &mut echo, &mut seen).await;
                let response = match answer {
                    Ok((reply, stream)) => structured(&head, rendered(reply, stream, &echo)),
                    Err(error) => {
                        self.metrics.refused(&error);
                        // What is left of the request's body may still be read: nobody waits for
                        // that.
                        seen.pass = None;
                        self.refused((&head, &mut body), &error, &echo, &seen).await
                    }
                };
                cors::decorate(self, &head, response)
            }
        };
        drop(counted);
        if head.version < Version::HTTP_2 && body.is_unread() {
            // Where a body is left unread, hyper takes the next request before this answer is sent,
            // and holds as many answers as the client asks for and does not read.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if seen.authenticated {
            running.is_authenticated();
        }
        let took = self.env.clock.monotonic().saturating_sub(begun);
        self.metrics.finished(seen.operation, response.status().as_u16(), took.as_secs_f64());
        if let Some(mut draft) = seen.draft.take() {
            let bytes = (body.received(), response.body().size_hint().lower());
            let head = (response.status(), response.headers());
            draft.answered(&mut seen, bytes, head).await;
            seen.draft = Some(draft);
        }
        let response = self.strike(seen.strike, response).await;
        let traffic = seen.traffic.take();
        if let Some(traffic) = &traffic {
            traffic.received.inc_by(body.received());
        }
        let response = response.map(|response| {
            response.map(|body| {
                let body = body.passing(seen.pass.take()).counted(traffic);
                body.drafting(seen.draft.take())
            })
        });
        if self.trace.is_watched() {
            self.tell((&head, peer), &seen, (came, took), body.received(), response.as_ref().ok());
        }
        response
    }

    /// Answers with an error, and reads what the client still sends.
    async fn refused(
        &self,
        (head, body): (&http::request::Parts, &mut RequestBody),
        error: &Error,
        echo: &azure::RequestEcho,
        seen: &Seen,
    ) -> Response<ResponseBody> {
        // A client that asked first has sent nothing yet, and will not.
        if error.code == ErrorCode::ServerBusy {
            // Told at once; what it still sends is read after that.
            body.leave();
        } else if !head.headers.contains_key(http::header::EXPECT) {
            body.drain().await;
        }
        tracing::debug!(code = error.code.azure(), operation = seen.operation, "refused");
        self.refusals.render(error, echo)
    }

    async fn answer(
        &self,
        (head, peer): (&http::request::Parts, Peer),
        (body, begun): (&mut RequestBody, Duration),
        echo: &mut azure::RequestEcho,
        seen: &mut Seen,
    ) -> dispatch::Answer {
        if head.method == http::Method::OPTIONS {
            seen.pass = Some(self.gate.enter(UNKNOWN_ACCOUNT).await?);
            seen.operation = "PreflightBlobRequest";
            return cors::preflight(self, head).map(|reply| (reply, None));
        }
        let Admitted { account, operation, overrides, create_only, authenticated, pass } =
            admit(self, (head, peer), (echo, &mut seen.principal)).await?;
        seen.authenticated = authenticated;
        if let Some(pass) = &pass {
            body.admitted(pass.account());
        }
        seen.pass = pass;
        account.traffic.requests.inc();
        seen.traffic = Some(Arc::clone(&account.traffic));
        body.pay(account.id);
        seen.operation = operation.name();
        self.meet_faults(head, seen)?;
        self.note_change(&operation, (head, peer), (seen, (echo.request_id(), begun)));
        let admitted = body.admitted_for();
        let requester = Requester { head, peer, authenticated, admitted };
        match dispatch(self, (requester, &account), operation, body).await {
            Ok((mut reply, stream)) => {
                access::overrides::apply(overrides, &mut reply);
                Ok((reply, stream))
            }
            Err(error) if create_only => Err(access::replace::explain(error)),
            Err(error) => Err(error),
        }
    }

    /// Answers a request of a connection beyond the limit, or of one that leaves.
    pub(super) fn refuse(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        let (head, incoming) = request.into_parts();
        let (came, begun) = (self.env.clock.now(), self.env.clock.monotonic());
        let id = self.request_id().to_string();
        let draft = self.draft((&head, peer), (&id, begun));
        let echo = azure::RequestEcho::new(&head, id, came);
        RequestBody::unwanted(incoming, self.env.clone()).leave();
        let busy = self.metrics.refused_for_connections();
        let mut response = self.refusals.render(&busy, &echo);
        self.metrics.finished("Refused", response.status().as_u16(), 0.0);
        if let Some(mut draft) = draft {
            let (bytes, status) = (response.body().size_hint().lower(), response.status());
            draft.refused(bytes, (status, response.headers()));
            response = response.map(|body| body.drafting(Some(draft)));
        }
        if self.trace.is_watched() {
            let took = self.env.clock.monotonic().saturating_sub(begun);
            self.tell((&head, peer), &Seen::nothing(), (came, took), 0, Some(&response));
        }
        response
    }

    /// What is asked of clients that take an answer.
    pub(super) const fn stall_limits(&self) -> StallLimits {
        let FrontEndConfig { response_stall: stall, response_rate_min: rate_min, .. } = self.config;
        StallLimits { stall, rate_min, note: 1 }
    }

    /// What is asked of clients that send a body.
    pub(super) const fn upload_limits(&self) -> StallLimits {
        let FrontEndConfig { body_idle: stall, request_rate_min: rate_min, .. } = self.config;
        StallLimits { stall, rate_min, note: UPLOAD_NOTE_BYTES }
    }

    /// Counts an error that is answered, if it refuses its request.
    pub(crate) fn count_refused(&self, error: &Error) {
        self.metrics.refused(error);
    }

    /// What is counted of connections.
    pub(super) const fn connection_metrics(&self) -> &ConnectionMetrics {
        &self.metrics.connections
    }

    /// Counts content under customer-provided keys that was not what was stored.
    pub(super) fn not_authentic(&self) -> Counter {
        self.metrics.not_authentic.clone()
    }

    /// Counts an answer that is cut.
    pub(super) fn count_cut(&self, fault: Fault) {
        self.metrics.cut(fault.as_str());
    }

    /// Counts an upload that is cut.
    pub(super) fn count_upload_cut(&self, fault: Fault) {
        self.metrics.upload_cut(fault.as_str());
    }

    pub(super) const fn addressing(&self) -> &azure::Addressing {
        &self.config.addressing
    }

    /// Its limits.
    pub(crate) const fn config(&self) -> &FrontEndConfig {
        &self.config
    }

    /// A fresh GUID.
    pub(crate) fn request_id(&self) -> Uuid {
        let mut bytes = [0; 16];
        let (high, low) = (self.env.rand.next_u64(), self.env.rand.next_u64());
        bytes[..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        Builder::from_random_bytes(bytes).into_uuid()
    }
}
