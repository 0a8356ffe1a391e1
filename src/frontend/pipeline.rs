//! From a request to a response: its dialect, address, admission, document, dispatch, rendering,
//! counters.

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
use crate::frontend::access::admitted::Admitted;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::audit_log::RequestStart;
use crate::frontend::audit_log::draft::AnswerFacts;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::connections::InProgress;
use crate::frontend::cors;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::batch;
use crate::frontend::dialect::echo::Echo;
use crate::frontend::dialect::website;
use crate::frontend::dispatch::RequestContent;
use crate::frontend::dispatch::check_before_document;
use crate::frontend::dispatch::dispatch;
use crate::frontend::ingest::read_document;
use crate::frontend::observe::Cut;
use crate::frontend::observe::Seen;
use crate::frontend::ops::Answer;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::types::Peer;

/// Gives an answer the form that its request asked for.
fn framed(arrival: Arrival<'_>, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    match arrival.dialect.frame(arrival.head, response.headers_mut()) {
        Some(encoder) => response.map(|body| body.structured(encoder)),
        None => response,
    }
}

/// Writes a reply, with the body that streams or what was rendered.
fn rendered(reply: Reply, stream: Option<ResponseBody>, echo: &Echo<'_>) -> Response<ResponseBody> {
    let rendered = echo.render(&reply);
    // It is as large as what was rendered of it.
    drop(reply);
    match stream {
        Some(stream) => rendered.map(|bytes| stream.or_rendered(bytes)),
        None => rendered.map(ResponseBody::full),
    }
}

impl FrontEnd {
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
        let dialect = self.config.dialects.of(&head);
        let arrival = Arrival { dialect, head: &head, peer };
        let draft = self.draft(RequestStart { arrival, id: &id, begun });
        let mut seen = Seen { draft, ..Seen::nothing() };
        let mut echo = dialect.echo(&head, id, came);
        let mut body = RequestBody::new(incoming, &self.load.uploads, self.env.clone());
        let counted = self.metrics.begin();
        let acceptable = access::hosts::is_acceptable(self, &head, peer);
        let mut response = match acceptable.map(|()| dialect.site(&head)) {
            Err(error) => self.refused((&head, &mut body), &error, &echo, &seen).await,
            Ok(Some(site)) => {
                seen.operation = "GetWebContent";
                seen.principal = Principal::Anonymous;
                let told = (&echo, &mut seen.pass);
                // Boxed: otherwise every request would move its space too.
                boxed(|| website::serve(self, arrival, &site, told)).await
            }
            Ok(None) => {
                let answer = self.answer(arrival, (&mut body, begun), &mut echo, &mut seen).await;
                let response = match answer {
                    Ok((reply, stream)) => framed(arrival, rendered(reply, stream, &echo)),
                    Err(error) => {
                        let error = dialect.explain(error, || arrival.address());
                        self.metrics.refused(&error);
                        // What is left of the request's body may still be read: nobody waits for
                        // that.
                        seen.pass = None;
                        self.refused((&head, &mut body), &error, &echo, &seen).await
                    }
                };
                cors::decorate(self, arrival, response)
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
            let bytes = response.body().size_hint().lower();
            let code = dialect.error_code(response.headers());
            let answer = AnswerFacts { status: response.status(), code, bytes };
            let principal = std::mem::take(&mut seen.principal);
            draft.answered(seen.operation, principal, body.received(), answer).await;
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
            self.tell(arrival, &seen, (came, took), body.received(), response.as_ref().ok());
        }
        response
    }

    /// Answers with an error, and reads what the client still sends.
    async fn refused(
        &self,
        (head, body): (&http::request::Parts, &mut RequestBody),
        error: &Refusal,
        echo: &Echo<'_>,
        seen: &Seen,
    ) -> Response<ResponseBody> {
        // A client that asked first has sent nothing yet, and will not.
        if error.reason == Reason::ServerBusy {
            // Told at once; what it still sends is read after that.
            body.leave();
        } else if !head.headers.contains_key(http::header::EXPECT) {
            body.drain().await;
        }
        tracing::debug!(code = error.reason.name(), operation = seen.operation, "refused");
        self.refusals.render(error, echo)
    }

    async fn answer(
        &self,
        arrival: Arrival<'_>,
        (body, begun): (&mut RequestBody, Duration),
        echo: &mut Echo<'_>,
        seen: &mut Seen,
    ) -> Answer {
        if arrival.head.method == http::Method::OPTIONS {
            seen.pass = Some(self.load.gate.enter(UNKNOWN_ACCOUNT).await?);
            seen.operation = "PreflightBlobRequest";
            return cors::preflight(self, arrival).map(|reply| (reply, None));
        }
        let Admitted {
            account,
            mut operation,
            document,
            overrides,
            create_only,
            authenticated,
            pass,
        } = admit(self, arrival, (echo, &mut seen.principal)).await?;
        seen.authenticated = authenticated;
        if let Some(pass) = &pass {
            body.admitted(pass.account());
        }
        seen.pass = pass;
        account.traffic.requests.inc();
        seen.traffic = Some(Arc::clone(&account.traffic));
        body.pay(account.id);
        seen.operation = operation.name();
        self.meet_faults(arrival, seen)?;
        let id = echo.request_id();
        self.note_change(&operation, seen, RequestStart { arrival, id, begun });
        let admitted = body.admitted_for();
        let requester = Requester { account: &account, arrival, authenticated, admitted };
        let mut memory = None;
        if let Some(document) = document {
            check_before_document(&account, &operation)?;
            let read = boxed(|| read_document(&self.pool, body, document, &mut operation));
            memory = Some(read.await?);
        }
        let answer = if let Operation::Batch(batch) = operation {
            boxed(|| batch::run(self, requester, batch, memory)).await
        } else {
            dispatch(self, requester, operation, RequestContent { body, document: memory }).await
        };
        match answer {
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
        let dialect = self.config.dialects.of(&head);
        let arrival = Arrival { dialect, head: &head, peer };
        let draft = self.draft(RequestStart { arrival, id: &id, begun });
        let echo = dialect.echo(&head, id, came);
        RequestBody::unwanted(incoming, self.env.clone()).leave();
        let busy = self.metrics.refused_for_connections();
        let mut response = self.refusals.render(&busy, &echo);
        self.metrics.finished("Refused", response.status().as_u16(), 0.0);
        if let Some(mut draft) = draft {
            let bytes = response.body().size_hint().lower();
            let code = dialect.error_code(response.headers());
            draft.refused(AnswerFacts { status: response.status(), code, bytes });
            response = response.map(|body| body.drafting(Some(draft)));
        }
        if self.trace.is_watched() {
            let took = self.env.clock.monotonic().saturating_sub(begun);
            self.tell(arrival, &Seen::nothing(), (came, took), 0, Some(&response));
        }
        response
    }
}
