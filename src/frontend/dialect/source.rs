//! Sources of copies in this same store: the request that a client would send for the source, in
//! the dialect of the copy.

use std::sync::Arc;

use http::HeaderValue;
use http::Request;
use http::header::AUTHORIZATION;
use http::header::HOST;
use http::request::Parts;

use crate::audit_log::Principal;
use crate::env::boxed;
use crate::frontend::access::admit::admit;
use crate::frontend::access::admitted::AdmissionNotes;
use crate::frontend::accounts::Account;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::Dialect;
use crate::frontend::dialect::backslash::is_meant;
use crate::frontend::source::Requester;
use crate::frontend::source::refusal;
use crate::frontend::state::FrontEnd;
use crate::protocol::azure;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::CopySource;

/// A source that the sender of a copy may read.
pub(in crate::frontend) struct AuthorizedSource {
    /// The account of the source.
    pub(in crate::frontend) account: Arc<Account>,
    /// The request for it.
    pub(in crate::frontend) operation: Box<Operation>,
}

/// Admits the request for the source. A source in the requester's own account needs no
/// further signature when the request was signed with the account's key, which may do everything
/// there, and the operation is one that trusts it.
///
/// # Errors
/// `CannotVerifyCopySource` with the refusal of the source.
pub(in crate::frontend) async fn authorize(
    front: &FrontEnd,
    requester: Requester<'_>,
    source: &CopySource,
) -> Result<AuthorizedSource, Refusal> {
    let copy = requester.arrival;
    let Dialect::Azure(_) = copy.dialect else {
        let text = "This dialect does not copy.";
        return Err(Refusal::new(Reason::NotImplemented).message(text));
    };
    let head = source_head(requester, source)?;
    let arrival = Arrival { head: &head, ..copy };
    let by_key = copy.head.headers.get(AUTHORIZATION);
    let by_key = by_key.is_some_and(|own| starts_with(own, "sharedkey"));
    let signed = head.headers.contains_key(AUTHORIZATION) || is_signed(source);
    if by_key && !signed && source.purpose.trusts_own_account() {
        let context = azure::Context::from_head(&head)?;
        let address = arrival.dialect.address(&head).map_err(refusal::explain)?;
        if address.account == requester.account.name {
            let account = front.accounts.get(&address.account).ok_or(Reason::InternalError)?;
            let mut address = address;
            if let Some(name) = address.blob_as_sent.take() {
                let meant = boxed(|| is_meant(front, &account, (&address, &name))).await;
                if meant.map_err(refusal::explain)? {
                    address.blob = Some(name);
                }
            }
            let parsed = azure::parse(&head, &address, &context).map_err(refusal::explain)?;
            let operation = parsed.into_parts().0;
            return Ok(AuthorizedSource { account, operation });
        }
    }
    let mut echo = copy.dialect.echo(&head, String::new(), front.env.clock.now());
    // The audit log names the sender of the copy, not that of the request for its source.
    let mut nobody = Principal::default();
    let mut meant = None;
    let notes = AdmissionNotes { echo: &mut echo, principal: &mut nobody, meant: &mut meant };
    let admitted = admit(front, arrival, notes)
        .await
        .map_err(|error| refusal::explain(copy.dialect.explain(error, || arrival.address())))?;
    Ok(AuthorizedSource { account: admitted.account, operation: admitted.operation })
}

/// The head of the request that a client would send for the source.
fn source_head(requester: Requester<'_>, source: &CopySource) -> Result<Parts, Refusal> {
    let refused = |_| Refusal::from(Reason::InvalidHeaderValue);
    let (mut head, ()) = Request::get(source.url.clone())
        .body(())
        .map_err(|_| Refusal::from(Reason::InvalidHeaderValue))?
        .into_parts();
    head.headers = azure::source_headers(source)?;
    let host = source.url.authority().map_or("", http::uri::Authority::as_str);
    head.headers.insert(HOST, HeaderValue::from_str(host).map_err(refused)?);
    if let Some(version) = requester.arrival.head.headers.get("x-ms-version") {
        head.headers.insert("x-ms-version", version.clone());
    }
    if let Some(range) = source.range {
        let text = range.to_string();
        head.headers.insert("x-ms-range", HeaderValue::from_str(&text).map_err(refused)?);
    }
    if let Some(token) = &source.authorization {
        head.headers.insert(AUTHORIZATION, HeaderValue::from_str(token).map_err(refused)?);
    } else if source.purpose.trusts_own_account()
        && !is_signed(source)
        && let Some(own) = requester.arrival.head.headers.get(AUTHORIZATION)
        && names(&head, requester.account)
        && starts_with(own, "bearer ")
    {
        // A copy within an account: its token is valid for the source as well.
        head.headers.insert(AUTHORIZATION, own.clone());
    }
    Ok(head)
}

/// Whether the URL brings its own signature.
fn is_signed(source: &CopySource) -> bool {
    source.url.query().unwrap_or("").split('&').any(|piece| piece.starts_with("sig="))
}

fn names(head: &Parts, account: &Account) -> bool {
    let host = head.uri.host().unwrap_or("");
    let name = account.name.as_str();
    let first = head.uri.path().trim_start_matches('/').split('/').next().unwrap_or("");
    first == name || host.split('.').next() == Some(name)
}

fn starts_with(value: &HeaderValue, scheme: &str) -> bool {
    let start = value.as_bytes().get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
}
