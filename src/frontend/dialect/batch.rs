//! Blob Batch: each part is a request with its own signature and its own answer. Only Azure has it.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use http::Response;
use http::Uri;
use http::header::HOST;
use http::request::Parts;

use crate::env::boxed;
use crate::frontend::access::admitted::AddressedRequest;
use crate::frontend::access::admitted::AdmissionNotes;
use crate::frontend::access::admitted::Admitted;
use crate::frontend::audit_log::RequestStart;
use crate::frontend::audit_log::draft::AnswerFacts;
use crate::frontend::audit_log::draft::Draft;
use crate::frontend::body::RequestBody;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::Dialect;
use crate::frontend::dialect::admit::admit_at;
use crate::frontend::dialect::echo::Echo;
use crate::frontend::dispatch::RequestContent;
use crate::frontend::dispatch::dispatch;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::observe::RequestContext;
use crate::frontend::ops::Answer;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::Batch;
use crate::protocol::model::operation::BatchPart;

/// Parts carried out at a time.
const PARALLEL_PARTS: usize = 16;

/// A part that was admitted, or its refusal.
struct Ready<'a> {
    id: Option<String>,
    head: Parts,
    echo: Echo<'a>,
    /// The account, container and blob that it names.
    address: Option<Address>,
    /// Its line of the audit log.
    draft: Option<Box<Draft>>,
    context: RequestContext,
    admitted: Result<Admitted, Refusal>,
}

/// Blob Batch.
pub(crate) async fn run(
    front: &FrontEnd,
    Requester { account, arrival, .. }: Requester<'_>,
    mut batch: Batch,
    memory: Option<DocumentMemory>,
) -> Answer {
    if let Some(container) = batch.container.as_ref().filter(|name| !azure::may_be_made(name)) {
        // A container that another dialect made is served. Otherwise the whole batch is refused,
        // not each part.
        lookup::container(&front.rows, account, container).await?;
    }
    if let Some(fault) = batch.fault.take() {
        return Ok(refused(front, arrival, &fault).into());
    }
    let parts = std::mem::take(&mut batch.parts);
    let mut ready = Vec::with_capacity(parts.len());
    for part in parts {
        ready.push(admit_part(front, arrival, &batch, part).await);
    }
    if let Err(fault) = check_kinds(&ready) {
        return Ok(refused(front, arrival, &fault).into());
    }
    // A part's future is created only when it may run: creating all of them immediately would take
    // much memory.
    let mut running = FuturesOrdered::new();
    let mut answers: Vec<(Option<String>, Response<Bytes>)> = Vec::with_capacity(ready.len());
    for part in ready {
        if running.len() == PARALLEL_PARTS {
            answers.extend(running.next().await);
        }
        running.push_back(answer(front, arrival, part));
    }
    answers.extend(running.collect::<Vec<_>>().await);
    drop(memory);
    let boundary = format!("batchresponse_{}", front.request_id());
    let body = azure::write_batch(&answers, &boundary);
    Ok(Reply::Batch { boundary, body }.into())
}

/// The answer to a batch of which no part is carried out: one part with the reason.
fn refused(front: &FrontEnd, outer: Arrival<'_>, fault: &Refusal) -> Reply {
    front.count_refused(fault);
    let id = front.request_id().to_string();
    let echo = outer.dialect.echo(outer.head, id, front.env.clock.now());
    let boundary = format!("batchresponse_{}", front.request_id());
    let body = azure::write_refused_batch(fault, &echo.render_refusal(fault), &boundary);
    Reply::Batch { boundary, body }
}

/// Deletions or changes of tier, not both: decided before any is carried out.
fn check_kinds(ready: &[Ready<'_>]) -> Result<(), Refusal> {
    let mut kind = None;
    for admitted in ready.iter().filter_map(|ready| ready.admitted.as_ref().ok()) {
        let name = admitted.operation.name();
        if !matches!(name, "DeleteBlob" | "SetBlobTier") {
            return Err(Refusal::new(Reason::InvalidInput)
                .message(format!("A batch may delete blobs or set their tiers; {name} may not.")));
        }
        if *kind.get_or_insert(name) != name {
            return Err(Refusal::new(Reason::InvalidInput)
                .message("A batch may delete blobs or set their tiers, not both."));
        }
    }
    Ok(())
}

async fn admit_part<'a>(
    front: &'a FrontEnd,
    outer: Arrival<'a>,
    batch: &Batch,
    part: BatchPart,
) -> Ready<'a> {
    let (mut head, ()) = part.request.into_parts();
    if let (None, Some(value)) = (head.headers.get(HOST), outer.head.headers.get(HOST)) {
        head.headers.insert(HOST, value.clone());
    }
    let (id, begun) = (front.request_id().to_string(), front.env.clock.monotonic());
    let mut echo = outer.dialect.echo(&head, id, front.env.clock.now());
    let mut context = RequestContext::nothing();
    let (principal, meant) = (&mut context.principal, &mut context.meant);
    let notes = AdmissionNotes { echo: &mut echo, principal, meant };
    let (address, admitted) = match address(outer, &head, batch) {
        Ok(address) => {
            let arrival = Arrival { head: &head, ..outer };
            let request = AddressedRequest { arrival, address: &address };
            let admitted = admit_at(front, request, notes).await;
            (Some(context.meant.take().map_or(address, |meant| *meant)), admitted)
        }
        Err(error) => (None, Err(error)),
    };
    let logged = front.audit_log.has_requests();
    let arrival = Arrival { head: &head, ..outer };
    let start = RequestStart { arrival, id: echo.request_id(), begun };
    let draft = logged.then(|| front.draft_at(address.as_ref(), start));
    if let Ok(admitted) = &admitted {
        context.operation = admitted.name;
    }
    Ready { id: part.id, head, echo, address, draft, context, admitted }
}

/// The address of a part, which must lie in the account or container of the batch.
fn address(outer: Arrival<'_>, head: &Parts, batch: &Batch) -> Result<Address, Refusal> {
    let Dialect::Azure(addressing) = outer.dialect else {
        return Err(Reason::NotImplemented.into());
    };
    let host = head.headers.get(HOST).and_then(|h| h.to_str().ok());
    let host = outer.head.uri.authority().map(http::uri::Authority::as_str).or(host);
    let uri = whole_uri(&head.uri, batch)?;
    let address = azure::address(&head.method, &uri, host, addressing)?;
    let inside = batch.container.is_none() || batch.container == address.container;
    if address.account != batch.account || !inside {
        return Err(Refusal::new(Reason::InvalidInput)
            .message("The part is about another account or container than the batch."));
    }
    Ok(address)
}

/// Clients leave the account out of the paths of parts even when the URL of the batch has it in its
/// own.
fn whole_uri(uri: &Uri, batch: &Batch) -> Result<Uri, Refusal> {
    let prefix = format!("/{}/", batch.account);
    let has_account =
        uri.path().strip_prefix(&prefix).is_some_and(|rest| rest.trim_matches('/').contains('/'));
    if !batch.path_style || has_account {
        return Ok(uri.clone());
    }
    let target = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    format!("/{}{target}", batch.account).parse().map_err(|_| Reason::InvalidUri.into())
}

async fn answer(
    front: &FrontEnd,
    outer: Arrival<'_>,
    ready: Ready<'_>,
) -> (Option<String>, Response<Bytes>) {
    let Ready { id, head, echo, address, draft, mut context, admitted } = ready;
    let arrival = Arrival { head: &head, ..outer };
    let done = match admitted {
        Ok(Admitted { account, operation, authenticated, create_only, .. }) => {
            let mut none = RequestBody::empty(front.env.clone());
            // The batch holds the place among the requests.
            let admitted = None;
            let requester =
                Requester { account: &account, arrival, authenticated, create_only, admitted };
            let content = RequestContent { body: &mut none, document: None };
            boxed(|| dispatch(front, requester, operation, content)).await
        }
        Err(error) => Err(error),
    };
    let response = match done {
        Ok(answered) => echo.render(&answered.reply),
        Err(error) => {
            let error = outer.dialect.explain(error, || address);
            front.count_refused(&error);
            echo.render_refusal(&error)
        }
    };
    if let Some(mut draft) = draft {
        let bytes_out = response.body().len() as u64;
        draft.sent(bytes_out);
        let principal = std::mem::take(&mut context.principal);
        let code = outer.dialect.error_code(response.headers());
        let answer = AnswerFacts { status: response.status(), code, bytes: bytes_out };
        draft.answered(context.operation, principal, 0, answer).await;
    }
    (id, response)
}
