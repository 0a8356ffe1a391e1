//! Blob Batch: every part is a request of its own, signed for itself and answered for itself.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use http::Request;
use http::Response;
use http::Uri;
use http::header::HOST;
use http::request::Parts;

use crate::env::boxed;
use crate::frontend::access::admit::Admitted;
use crate::frontend::access::admit::admit_at;
use crate::frontend::audit_log::Arrival;
use crate::frontend::audit_log::draft::AnswerFacts;
use crate::frontend::audit_log::draft::Draft;
use crate::frontend::body::RequestBody;
use crate::frontend::dispatch::RequestContent;
use crate::frontend::dispatch::dispatch;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::observe::Seen;
use crate::frontend::ops::Answer;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure;
use crate::protocol::azure::Address;
use crate::protocol::azure::RequestEcho;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::Batch;
use crate::protocol::model::operation::BatchPart;
use crate::types::Peer;

/// Parts carried out at a time.
const PARALLEL_PARTS: usize = 16;

/// A part that was let in, or its refusal.
struct Ready {
    id: Option<String>,
    head: Parts,
    peer: Peer,
    echo: RequestEcho,
    /// Its line of the audit log.
    draft: Option<Box<Draft>>,
    seen: Seen,
    admitted: Result<Admitted, Refusal>,
}

/// Blob Batch.
pub(crate) async fn run(
    front: &FrontEnd,
    Requester { head, peer, .. }: Requester<'_>,
    mut batch: Batch,
    memory: Option<DocumentMemory>,
) -> Answer {
    let parts = std::mem::take(&mut batch.parts);
    let mut ready = Vec::with_capacity(parts.len());
    for part in parts {
        ready.push(admit_part(front, (head, peer), &batch, part).await);
    }
    check_kinds(&ready)?;
    let answers: Vec<(Option<String>, Response<Bytes>)> = stream::iter(ready)
        .map(|ready| answer(front, ready))
        .buffered(PARALLEL_PARTS)
        .collect()
        .await;
    drop(memory);
    let boundary = format!("batchresponse_{}", front.request_id());
    let body = azure::write_batch(&answers, &boundary);
    Ok((Reply::Batch { boundary, body }, None))
}

/// Deletions or changes of tier, not both: decided before any is carried out.
fn check_kinds(ready: &[Ready]) -> Result<(), Refusal> {
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

async fn admit_part(
    front: &FrontEnd,
    (outer, peer): (&Parts, Peer),
    batch: &Batch,
    part: BatchPart,
) -> Ready {
    let (mut head, ()) = Request::new(()).into_parts();
    (head.method, head.uri, head.headers) = (part.method, part.uri, part.headers);
    if let (None, Some(value)) = (head.headers.get(HOST), outer.headers.get(HOST)) {
        head.headers.insert(HOST, value.clone());
    }
    let (id, begun) = (front.request_id().to_string(), front.env.clock.monotonic());
    let mut echo = RequestEcho::new(&head, id, front.env.clock.now());
    let mut seen = Seen::nothing();
    let told = (&mut echo, &mut seen.principal);
    let (address, admitted) = match address(front, (&head, outer), batch) {
        Ok(address) => {
            let admitted = admit_at(front, (&head, peer), &address, told).await;
            (Some(address), admitted)
        }
        Err(error) => (None, Err(error)),
    };
    let logged = front.audit_log.has_requests();
    let arrival = Arrival { head: &head, peer, id: echo.request_id(), begun };
    let draft = logged.then(|| front.draft_at(address.as_ref(), arrival));
    if let Ok(admitted) = &admitted {
        seen.operation = admitted.operation.name();
    }
    Ready { id: part.id, head, peer, echo, draft, seen, admitted }
}

/// What a part is about, which has to be what the batch is about.
fn address(
    front: &FrontEnd,
    (head, outer): (&Parts, &Parts),
    batch: &Batch,
) -> Result<Address, Refusal> {
    let host = head.headers.get(HOST).and_then(|h| h.to_str().ok());
    let host = outer.uri.authority().map(http::uri::Authority::as_str).or(host);
    let uri = whole_uri(&head.uri, batch)?;
    let address = azure::address(&head.method, &uri, host, &front.config.addressing)?;
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

async fn answer(front: &FrontEnd, ready: Ready) -> (Option<String>, Response<Bytes>) {
    let Ready { id, head, peer, echo, draft, mut seen, admitted } = ready;
    let done = match admitted {
        Ok(Admitted { account, operation, authenticated, .. }) => {
            let mut none = RequestBody::empty(front.env.clone());
            // The batch has the place among the requests.
            let (account, head) = (&account, &head);
            let requester = Requester { account, head, peer, authenticated, admitted: None };
            let content = RequestContent { body: &mut none, document: None };
            boxed(|| dispatch(front, requester, operation, content)).await
        }
        Err(error) => Err(error),
    };
    let response = match done {
        Ok((reply, _)) => azure::render(&reply, &echo),
        Err(error) => {
            front.count_refused(&error);
            azure::render_error(&error, &echo)
        }
    };
    if let Some(mut draft) = draft {
        let bytes_out = response.body().len() as u64;
        draft.sent(bytes_out);
        let principal = std::mem::take(&mut seen.principal);
        let (status, headers) = (response.status(), response.headers());
        let answer = AnswerFacts { status, headers, bytes: bytes_out };
        draft.answered(seen.operation, principal, 0, answer).await;
    }
    (id, response)
}
