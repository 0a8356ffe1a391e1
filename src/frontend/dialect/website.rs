//! The web endpoint, which only Azure has: documents of `$web` for everybody, whatever access its
//! container gives, while the account's service properties have a static website.

use std::sync::Arc;

use http::Method;
use http::Response;
use http::StatusCode;
use http::request::Parts;

use crate::frontend::access::hosts;
use crate::frontend::accounts::Account;
use crate::frontend::admission::Pass;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::answers::Payer;
use crate::frontend::body::ResponseBody;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::Site;
use crate::frontend::dialect::echo::Echo;
use crate::frontend::errors;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::ops::Answer;
use crate::frontend::ops::content;
use crate::frontend::ops::content::WantedBytes;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::RequestEncryption;
use crate::types::AccountId;
use crate::types::BlobName;
use crate::types::ByteRange;
use crate::types::ContainerName;
use crate::types::Peer;
use crate::types::Website;

/// The container with the documents.
pub(crate) const CONTAINER: &str = "$web";

/// Answers a request of the web endpoint. Errors are pages.
pub(in crate::frontend) async fn serve(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    address: &Site,
    (echo, room): (&Echo<'_>, &mut Option<Pass>),
) -> Response<ResponseBody> {
    let Arrival { head, peer, .. } = arrival;
    let found = address.account.as_ref().map_or(Ok(None), |name| {
        let found = front.accounts.find(name);
        found.map_err(|unread| errors::unread_account(name, &unread))
    });
    let id =
        found.as_ref().ok().and_then(Option::as_ref).map_or(UNKNOWN_ACCOUNT, |account| account.id);
    match enter(front, id).await {
        Ok(pass) => *room = Some(pass),
        Err(error) => return page(front, &error, echo),
    }
    if let Err(error) = front.load.rates.count(id, || front.env.clock.monotonic()) {
        return page(front, &error, echo);
    }
    let known = match found {
        Ok(known) => known,
        Err(error) => return page(front, &error, echo),
    };
    let (found, site) = match find(front, (head, peer), (known, address)).await {
        Ok(found) => found,
        Err(error) => return page(front, &error, echo),
    };
    match found {
        Ok((reply, stream)) => shown(&reply, stream, echo),
        Err(error) if is_missing(&error) => {
            let missing = Refusal::from(Reason::WebContentNotFound);
            match error_document(front, (&head.method, peer), &site).await {
                Some(Ok((reply, stream))) => {
                    let mut response = shown(&reply, stream, echo);
                    *response.status_mut() = StatusCode::NOT_FOUND;
                    response
                }
                Some(Err(error)) if !is_missing(&error) => page(front, &error, echo),
                Some(Err(_)) | None => page(front, &missing, echo),
            }
        }
        Err(error) => page(front, &error, echo),
    }
}

fn page(front: &FrontEnd, error: &Refusal, echo: &Echo<'_>) -> Response<ResponseBody> {
    front.count_refused(error);
    tracing::debug!(code = error.reason.name(), "a request to the web endpoint was refused");
    echo.render_page(error).map(ResponseBody::full)
}

/// Room for a request; nobody says who sends it.
async fn enter(front: &FrontEnd, account: AccountId) -> Result<Pass, Refusal> {
    let mut pass = front.load.gate.enter(account).await?;
    pass.open()?;
    Ok(pass)
}

/// An account with what its site is.
type Owned = (Arc<Account>, Website);

/// The first document there is of those the path may mean.
async fn find(
    front: &FrontEnd,
    (head, peer): (&Parts, Peer),
    (account, address): (Option<Arc<Account>>, &Site),
) -> Result<(Answer, Owned), Refusal> {
    let wanted = azure::web_request(&head.method, &head.headers)?;
    // No such account, no site, no such path: a stranger is told the same.
    let missing = || Refusal::from(Reason::WebContentNotFound);
    let account = account.ok_or_else(missing)?;
    hosts::may_name(front, head, &account)?;
    let website = account.properties.website.clone().ok_or_else(missing)?;
    let path = address.path.as_deref().ok_or_else(missing)?;
    let mut found = Err(missing());
    for name in azure::web_documents(path, &website) {
        found = document(front, &account, (&head.method, peer, name), wanted.clone()).await;
        if !found.as_ref().is_err_and(is_missing) {
            break;
        }
    }
    Ok((found, (account, website)))
}

/// What is shown of a document that is not there, if the site has something.
async fn error_document(
    front: &FrontEnd,
    (method, peer): (&Method, Peer),
    (account, website): &Owned,
) -> Option<Answer> {
    let name = website.error_document.as_deref()?.trim_start_matches('/');
    let name = BlobName::new(name).ok()?;
    // The request's conditions and range are about another document.
    let encryption = RequestEncryption::Plain;
    let precondition = Precondition { encryption, ..Precondition::default() };
    Some(document(front, account, (method, peer, name), (precondition, None)).await)
}

async fn document(
    front: &FrontEnd,
    account: &Account,
    (method, peer, blob): (&Method, Peer, BlobName),
    (precondition, range): (Precondition, Option<ByteRange>),
) -> Answer {
    let container = ContainerName::new(CONTAINER).map_err(|_| Reason::InternalError)?;
    let path = BlobPath { container, blob, snapshot: None };
    if method == Method::HEAD {
        let facts = content::facts(front, BlobTarget { account, path, precondition }).await?;
        return Ok((Reply::BlobProperties(facts), None));
    }
    let payer = Payer { account: account.id, peer: peer.address.ip(), known: false };
    let blob = BlobTarget { account, path, precondition };
    content::get(front, blob, WantedBytes { range, checksum: None }, payer).await
}

fn is_missing(error: &Refusal) -> bool {
    matches!(
        error.reason,
        Reason::BlobNotFound | Reason::ContainerNotFound | Reason::WebContentNotFound
    )
}

fn shown(reply: &Reply, stream: Option<ResponseBody>, echo: &Echo<'_>) -> Response<ResponseBody> {
    let rendered = echo.render(reply);
    azure::web_answer(match stream {
        Some(stream) => rendered.map(|_| stream),
        None => rendered.map(ResponseBody::full),
    })
}
