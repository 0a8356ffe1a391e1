//! The web endpoint, which only Azure has. While the service properties of an account have a static
//! website, it serves the documents of `$web` to everyone, whatever the public access of that
//! container.

use std::sync::Arc;

use http::Method;
use http::Response;
use http::StatusCode;

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
use crate::frontend::ops::Answered;
use crate::frontend::ops::content;
use crate::frontend::ops::content::WantedBytes;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure;
use crate::protocol::azure::WebConditions;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::RequestEncryption;
use crate::types::AccountId;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::Revision;
use crate::types::Website;

/// The container with the documents.
pub(crate) const CONTAINER: &str = "$web";

/// The answer to a request of the web endpoint.
pub(in crate::frontend) struct WebAnswer {
    /// A document or the page of an error.
    pub(in crate::frontend) response: Response<ResponseBody>,
    /// The request's place among the requests, until its answer is sent.
    pub(in crate::frontend) pass: Option<Pass>,
}

/// A request of the web endpoint.
#[derive(Clone, Copy)]
struct SiteRequest<'a> {
    front: &'a FrontEnd,
    arrival: Arrival<'a>,
    site: &'a Site,
}

/// The website of an account.
struct OwnedWebsite {
    account: Arc<Account>,
    website: Website,
}

/// Answers a request of the web endpoint. Errors are pages.
pub(in crate::frontend) async fn serve(
    front: &FrontEnd,
    arrival: Arrival<'_>,
    site: &Site,
    echo: &Echo<'_>,
) -> WebAnswer {
    let found = site.account.as_ref().map_or(Ok(None), |name| {
        let found = front.accounts.find(name);
        found.map_err(|unread| errors::unread_account(name, &unread))
    });
    let id =
        found.as_ref().ok().and_then(Option::as_ref).map_or(UNKNOWN_ACCOUNT, |account| account.id);
    let pass = match enter(front, id).await {
        Ok(pass) => Some(pass),
        Err(error) => return WebAnswer { response: page(front, &error, echo), pass: None },
    };
    let request = SiteRequest { front, arrival, site };
    let response = match request.answer(found, echo).await {
        Ok(response) => response,
        Err(error) => page(front, &error, echo),
    };
    WebAnswer { response, pass }
}

impl SiteRequest<'_> {
    /// Answers a request that has a place among the requests.
    ///
    /// # Errors
    /// The refusal, of which the caller makes a page.
    async fn answer(
        self,
        found: Result<Option<Arc<Account>>, Refusal>,
        echo: &Echo<'_>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let front = self.front;
        let id = found.as_ref().ok().and_then(Option::as_ref);
        let id = id.map_or(UNKNOWN_ACCOUNT, |account| account.id);
        front.load.rates.count(id, || front.env.clock.monotonic())?;
        let account = found?;
        let head = self.arrival.head;
        let conditions = azure::web_request(&head.method, &head.headers)?;
        let owned = self.website(account)?;
        match self.document(&owned, conditions).await {
            Ok(Answered { reply, stream }) => Ok(shown(&reply, stream, echo)),
            Err(error) if is_missing(&error) => match self.error_document(&owned).await {
                Some(Ok(Answered { reply, stream })) => {
                    let mut response = shown(&reply, stream, echo);
                    *response.status_mut() = StatusCode::NOT_FOUND;
                    Ok(response)
                }
                Some(Err(error)) if !is_missing(&error) => Err(error),
                Some(Err(_)) | None => Err(Reason::WebContentNotFound.into()),
            },
            Err(error) => Err(error),
        }
    }

    /// # Errors
    /// `WebContentNotFound`, the same for an account that does not exist as for one without a
    /// website.
    fn website(self, account: Option<Arc<Account>>) -> Result<OwnedWebsite, Refusal> {
        let missing = || Refusal::from(Reason::WebContentNotFound);
        let account = account.ok_or_else(missing)?;
        hosts::may_name(self.front, self.arrival.head, &account)?;
        let website = account.properties.website.clone().ok_or_else(missing)?;
        Ok(OwnedWebsite { account, website })
    }

    /// The first existing document among those that the path may mean.
    async fn document(self, owned: &OwnedWebsite, conditions: WebConditions) -> Answer {
        let missing = || Refusal::from(Reason::WebContentNotFound);
        let path = self.site.path.as_deref().ok_or_else(missing)?;
        let mut found = Err(missing());
        for name in azure::web_documents(path, &owned.website) {
            found = self.read(&owned.account, name, conditions.clone()).await;
            if !found.as_ref().is_err_and(is_missing) {
                break;
            }
        }
        found
    }

    /// The document that the website shows in place of a missing one, if it has such a document.
    async fn error_document(self, owned: &OwnedWebsite) -> Option<Answer> {
        let name = owned.website.error_document.as_deref()?.trim_start_matches('/');
        let name = BlobName::new(name).ok()?;
        // The request's conditions and range are about another document.
        let encryption = RequestEncryption::Plain;
        let precondition = Precondition { encryption, ..Precondition::default() };
        let conditions = WebConditions { precondition, range: None };
        Some(self.read(&owned.account, name, conditions).await)
    }

    async fn read(self, account: &Account, blob: BlobName, conditions: WebConditions) -> Answer {
        let WebConditions { precondition, range } = conditions;
        let container = ContainerName::new(CONTAINER).map_err(|_| Reason::InternalError)?;
        let path = BlobPath { container, blob, revision: Revision::Current };
        let blob = BlobTarget { account, path, precondition };
        if self.arrival.head.method == Method::HEAD {
            return Ok(Reply::BlobProperties(content::facts(self.front, blob).await?).into());
        }
        let peer = self.arrival.peer.address.ip();
        let payer = Payer { account: account.id, peer, known: false };
        content::get(self.front, blob, WantedBytes { range, checksum: None }, payer).await
    }
}

fn page(front: &FrontEnd, error: &Refusal, echo: &Echo<'_>) -> Response<ResponseBody> {
    front.count_refused(error);
    tracing::debug!(code = error.reason.name(), "a request to the web endpoint was refused");
    echo.render_page(error).map(ResponseBody::full)
}

/// A place among the requests for one whose sender is anonymous.
async fn enter(front: &FrontEnd, account: AccountId) -> Result<Pass, Refusal> {
    let mut pass = front.load.gate.enter(account).await?;
    pass.open()?;
    Ok(pass)
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
