//! The pipeline of a request: chooses its dialect, has it admitted, reads its document, dispatches
//! it, renders the reply, counts.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::Version;
use http::header::CONNECTION;
use hyper::Request;
use hyper::Response;
use hyper::body::Body;
use hyper::body::Incoming;

use crate::audit_log::Principal;
use crate::env::boxed;
use crate::frontend::access;
use crate::frontend::access::admit::admit;
use crate::frontend::access::admitted::AdmissionNotes;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::audit_log::RequestStart;
use crate::frontend::audit_log::draft::AnswerFacts;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::connections::InProgress;
use crate::frontend::cors;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::answer_token_call;
use crate::frontend::dialect::batch;
use crate::frontend::dialect::echo::Echo;
use crate::frontend::dialect::forms;
use crate::frontend::dialect::website;
use crate::frontend::dispatch::RequestContent;
use crate::frontend::dispatch::check_before_document;
use crate::frontend::dispatch::dispatch;
use crate::frontend::ingest::read_document;
use crate::frontend::observe;
use crate::frontend::observe::ConnectionAborted;
use crate::frontend::observe::RequestContext;
use crate::frontend::observe::Traced;
use crate::frontend::ops::Answer;
use crate::frontend::ops::Answered;
use crate::frontend::source::Requester;
use crate::frontend::spans::Begun;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::AccountOperation;
use crate::types::Peer;

/// Frames an answer as its request demands.
fn framed(arrival: Arrival<'_>, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    match arrival.dialect.frame(arrival.head, response.headers_mut()) {
        Some(encoder) => response.map(|body| body.structured(encoder)),
        None => response,
    }
}

/// Renders a reply. Its body is the stream, if there is one, else the rendered bytes.
fn rendered(answered: Answered, echo: &Echo<'_>) -> Response<ResponseBody> {
    let Answered { reply, stream } = answered;
    let rendered = echo.render(&reply);
    // The reply is about as large as the rendered body.
    drop(reply);
    match stream {
        Some(stream) => rendered.map(|bytes| stream.or_rendered(bytes)),
        None => rendered.map(ResponseBody::full),
    }
}

/// The facts of an answer for the audit log.
fn answer_facts<'a>(arrival: Arrival<'_>, response: &'a Response<ResponseBody>) -> AnswerFacts<'a> {
    let code = arrival.dialect.error_code(response.headers());
    // An answer of unknown length reports its end itself.
    let bytes = response.body().size_hint().exact().unwrap_or(u64::MAX);
    AnswerFacts { status: response.status(), code, bytes }
}

/// An answer whose end is noted in the audit log and in metrics, and frees the request's place.
fn noting(
    response: Response<ResponseBody>,
    context: &mut RequestContext,
) -> Response<ResponseBody> {
    response.map(|body| {
        let body = body.passing(context.pass.take()).counted(context.traffic.take());
        body.drafting(context.draft.take()).recorded(context.span.take())
    })
}

/// Whether the client waits for `100 Continue` and gets its answer immediately, because it has no
/// body to send. botocore then misreads the next answer of the connection if that request waits
/// too.
fn is_unawaited(head: &http::request::Parts, body: &RequestBody) -> bool {
    head.headers.contains_key(http::header::EXPECT) && body.received() == 0
}

/// A request that is being answered.
struct RequestInProgress<'a> {
    arrival: Arrival<'a>,
    /// When it arrived, by the monotonic clock.
    begun: Duration,
    body: &'a mut RequestBody,
}

impl FrontEnd {
    /// Answers one request of the client at `peer`, which is in progress as `running`. Errors are
    /// responses.
    ///
    /// # Errors
    /// [`ConnectionAborted`] when a fault demands that the client gets no answer.
    pub(super) async fn handle(
        &self,
        id: String,
        request: Request<Incoming>,
        peer: Peer,
        running: &InProgress,
    ) -> Result<Response<ResponseBody>, ConnectionAborted> {
        let arrived = self.env.clock.now();
        let begun = self.env.clock.monotonic();
        let (mut head, incoming) = request.into_parts();
        let dialect = self.config.dialects.of(&head, peer.protocols);
        let mut body = RequestBody::new(incoming, &self.load.uploads, self.env.clone());
        let counted = self.metrics.begin();
        let (method, scheme) = (observe::known_method(&head.method), peer.scheme());
        let span = self.spans.begin(Begun { arrived, at: begun, method, scheme });
        let mut host = access::hosts::is_acceptable(self, &head, peer);
        if host.is_ok() && dialect.has_form(&head) {
            host = boxed(|| forms::read(self, &mut head, &mut body, peer)).await;
        }
        let arrival = Arrival { dialect, head: &head, peer };
        let draft = self.draft(RequestStart { arrival, id: &id, begun });
        let mut context = RequestContext { draft, span, ..RequestContext::nothing() };
        let mut echo = dialect.echo(&head, id, arrived);
        let mut response = match host.map(|()| dialect.site(&head)) {
            Err(error) => {
                context.log_refusal(&error);
                self.refused(&head, &mut body, &error, &echo).await
            }
            Ok(Some(site)) => {
                context.operation = "GetWebContent";
                context.principal = Principal::Anonymous;
                // Boxed: otherwise every request would reserve the space of this future too.
                let served = boxed(|| website::serve(self, arrival, &site, &echo)).await;
                context.pass = served.pass;
                served.response
            }
            Ok(None) if dialect.token_service(&head).is_some() => {
                let start = RequestStart { arrival, id: echo.request_id(), begun };
                boxed(|| self.serve_tokens(start, &mut body, &mut context)).await
            }
            Ok(None) => {
                let request = RequestInProgress { arrival, begun, body: &mut body };
                self.respond(request, &mut echo, &mut context).await
            }
        };
        drop(counted);
        if head.version < Version::HTTP_2 && (body.is_unread() || is_unawaited(&head, &body)) {
            // When a body stays unread, hyper takes the next request before this answer is sent,
            // and holds as many answers as the client requests without reading them.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if context.authenticated {
            running.is_authenticated();
        }
        let took = self.env.clock.monotonic().saturating_sub(begun);
        self.metrics.finished(context.operation, response.status().as_u16(), took.as_secs_f64());
        if let Some(draft) = &mut context.draft {
            let principal = std::mem::take(&mut context.principal);
            let answer = answer_facts(arrival, &response);
            draft.answered(context.operation, principal, body.received(), answer).await;
        }
        let response = self.apply_fault(context.fault, response).await;
        if let Some(traffic) = &context.traffic {
            traffic.received.inc_by(body.received());
        }
        let request = Traced { arrived, took, bytes_in: body.received(), body_wait: body.waited() };
        if let Some(mut span) = context.span.take() {
            span.answered(observe::facts(arrival, &context, request, response.as_ref().ok()));
            context.span = Some(span);
        }
        let response = response.map(|response| noting(response, &mut context));
        if self.trace.is_watched() {
            let exchange = context.exchange(request, response.as_ref().ok());
            self.send_trace_line(arrival, context.operation, exchange);
        }
        response
    }

    /// Answers a request of a dialect. Errors are responses.
    async fn respond(
        &self,
        RequestInProgress { arrival, begun, body }: RequestInProgress<'_>,
        echo: &mut Echo<'_>,
        context: &mut RequestContext,
    ) -> Response<ResponseBody> {
        let request = RequestInProgress { arrival, begun, body: &mut *body };
        let response = match self.answer(request, echo, context).await {
            Ok(answered) => framed(arrival, rendered(answered, echo)),
            Err(error) => {
                let error = arrival.dialect.explain(error, || arrival.address());
                self.metrics.refused(&error);
                // Reading the rest of the request's body needs no admission.
                context.pass = None;
                context.log_refusal(&error);
                self.refused(arrival.head, body, &error, echo).await
            }
        };
        cors::decorate(self, arrival, response).await
    }

    /// Answers a call of the token service.
    async fn serve_tokens(
        &self,
        start: RequestStart<'_>,
        body: &mut RequestBody,
        context: &mut RequestContext,
    ) -> Response<ResponseBody> {
        let RequestStart { arrival, id, .. } = start;
        let Some(settings) = arrival.dialect.token_service(arrival.head) else {
            return Response::new(ResponseBody::full(bytes::Bytes::new()));
        };
        let answer = answer_token_call(self, settings, (arrival, id), body).await;
        context.operation = answer.operation;
        context.pass = answer.pass;
        context.traffic = answer.account.as_ref().map(|account| Arc::clone(&account.traffic));
        if let (Some(span), Some(account)) = (&mut context.span, &answer.account) {
            // Its signature or token was valid.
            let is_known = answer.response.status().is_success();
            span.admitted(answer.operation, &account.name, is_known);
        }
        if let Some(change) = answer.change.filter(|_| self.audit_log.is_on()) {
            let account = answer.account.as_ref().map(|account| account.name.as_str().to_owned());
            let draft = Box::new(self.draft_at(None, start).of_account(account));
            let draft = context.draft.insert(draft);
            draft.asked(answer.operation, answer.principal.clone(), Some(change));
        }
        context.principal = answer.principal;
        answer.response
    }

    /// Renders a refusal, and reads the rest of the request's body.
    async fn refused(
        &self,
        head: &http::request::Parts,
        body: &mut RequestBody,
        error: &Refusal,
        echo: &Echo<'_>,
    ) -> Response<ResponseBody> {
        if error.reason == Reason::ServerBusy {
            // Refused immediately; the rest of the body is read after that.
            body.drain_in_background();
        } else if !head.headers.contains_key(http::header::EXPECT) {
            // A client that sent `Expect` sends no body after a refusal.
            body.drain().await;
        }
        self.refusals.render(error, echo)
    }

    async fn answer(
        &self,
        RequestInProgress { arrival, begun, body }: RequestInProgress<'_>,
        echo: &mut Echo<'_>,
        context: &mut RequestContext,
    ) -> Answer {
        if arrival.head.method == http::Method::OPTIONS {
            context.pass = Some(self.load.gate.enter(UNKNOWN_ACCOUNT).await?);
            context.operation = "PreflightBlobRequest";
            return boxed(|| cors::preflight(self, arrival)).await.map(Answered::from);
        }
        let (principal, meant) = (&mut context.principal, &mut context.meant);
        let notes = AdmissionNotes { echo, principal, meant };
        let Admitted {
            account,
            mut operation,
            name,
            document,
            overrides,
            create_only,
            not_open,
            authenticated,
            user,
            decoder,
            pass,
        } = admit(self, arrival, notes).await?;
        context.admitted(name, &account.name, authenticated);
        context.admission = self.trace_stage(begun);
        if let Some(pass) = &pass {
            body.admitted(pass.account());
        }
        context.pass = pass;
        if let Some(decoder) = decoder {
            body.decode(decoder);
        }
        account.traffic.requests.inc();
        if let Some(user) = user {
            self.accounts.count_user(&account.name, &user);
            context.user = Some(user);
        }
        context.traffic = Some(Arc::clone(&account.traffic));
        body.pay(account.id);
        self.inject_fault(arrival, context)?;
        let id = echo.request_id();
        self.note_change(&operation, context, RequestStart { arrival, id, begun });
        let admitted = body.admitted_for();
        let requester =
            Requester { account: &account, arrival, authenticated, create_only, admitted };
        let mut memory = None;
        if let Some(document) = document {
            check_before_document(&account, &operation)?;
            let read = boxed(|| read_document(&self.pool, body, document, &mut operation));
            memory = Some(read.await?);
        }
        let answer = if let Operation::Account(AccountOperation::Batch(batch)) = *operation {
            boxed(|| batch::run(self, requester, batch, memory)).await
        } else {
            dispatch(self, requester, operation, RequestContent { body, document: memory }).await
        };
        match answer {
            Ok(mut answered) => {
                access::overrides::apply(overrides, &mut answered.reply);
                if let Reply::BlobsDeleted(deleted) = &answered.reply {
                    let start = RequestStart { arrival, id: echo.request_id(), begun };
                    let logged = (start, &*echo);
                    boxed(|| self.log_deletions(deleted, context, logged)).await;
                }
                Ok(answered)
            }
            Err(error) if error.reason == Reason::BlobNotOpen => Err(not_open.unwrap_or(error)),
            Err(error) if create_only => Err(access::replace::explain(error)),
            Err(error) => Err(error),
        }
    }

    /// Refuses a request of a connection that is beyond the limit or is closing.
    pub(super) fn refuse(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        let (head, incoming) = request.into_parts();
        let (arrived, begun) = (self.env.clock.now(), self.env.clock.monotonic());
        let id = self.request_id().to_string();
        let dialect = self.config.dialects.of(&head, peer.protocols);
        let arrival = Arrival { dialect, head: &head, peer };
        let draft = self.draft(RequestStart { arrival, id: &id, begun });
        let echo = dialect.echo(&head, id, arrived);
        RequestBody::unwanted(incoming, self.env.clone()).drain_in_background();
        let busy = self.metrics.refused_for_connections();
        let mut response = self.refusals.render(&busy, &echo);
        self.metrics.finished("Refused", response.status().as_u16(), 0.0);
        if let Some(mut draft) = draft {
            draft.refused(answer_facts(arrival, &response));
            response = response.map(|body| body.drafting(Some(draft)));
        }
        if self.trace.is_watched() {
            let took = self.env.clock.monotonic().saturating_sub(begun);
            let nothing = RequestContext::nothing();
            let request = Traced { arrived, took, bytes_in: 0, body_wait: Duration::ZERO };
            let exchange = nothing.exchange(request, Some(&response));
            self.send_trace_line(arrival, nothing.operation, exchange);
        }
        response
    }
}
