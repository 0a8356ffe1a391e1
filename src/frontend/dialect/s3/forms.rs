//! Forms of browsers. Their fields are read first: they identify the sender.

use http::Method;
use http::header::AUTHORIZATION;
use http::header::ORIGIN;
use http::request::Parts;

use crate::auth::SignedForm;
use crate::frontend::accounts::Account;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::body::RequestBody;
use crate::frontend::cors;
use crate::frontend::dialect::framing::Decoder;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3;
use crate::protocol::s3::form;
use crate::protocol::s3::form::Boundary;
use crate::protocol::s3::form::FileDecoder;
use crate::protocol::s3::form::FormReader;
use crate::protocol::s3::form::LengthRange;
use crate::protocol::s3::form::PostForm;
use crate::protocol::s3::routes::S3Operation;
use crate::types::Peer;
use crate::types::Timestamp;

/// Reads the fields of a form and makes them the headers of the request. While they arrive, the
/// request has a place among those without an account. The file stays in the body.
///
/// # Errors
/// `ServerBusy`, and those of the body and the form.
pub(in crate::frontend) async fn read(
    front: &FrontEnd,
    head: &mut Parts,
    body: &mut RequestBody,
    peer: Peer,
) -> Result<(), Refusal> {
    let pass = front.load.gate.enter(UNKNOWN_ACCOUNT).await?;
    body.admitted(pass.account());
    let mut reader = FormReader::new(Boundary::of(head)?);
    while let Some(mut bytes) = body.next().await? {
        if let Some(form) = reader.push(&mut bytes)? {
            body.give_back(bytes);
            return form.apply(head, peer.scheme());
        }
    }
    Err(reader.ended())
}

/// The fields of a form about its signature.
pub(super) fn signed(form: &PostForm) -> SignedForm<'_> {
    SignedForm {
        policy: form.get("policy"),
        algorithm: form.get("x-amz-algorithm"),
        credential: form.get("x-amz-credential"),
        date: form.get("x-amz-date"),
        signature: form.get("x-amz-signature"),
        access_key_id: form.get("awsaccesskeyid"),
        signature_v2: form.get("signature"),
    }
}

/// Refuses a POST to a bucket that is not a form, before its sender is identified.
///
/// # Errors
/// `ConditionNotMet`.
pub(super) fn check_kind(head: &Parts, address: &Address) -> Result<(), Refusal> {
    let is_post = s3::operation(head, address).ok() == Some(S3Operation::PostObject);
    if is_post && form::of(head).is_none() { Boundary::of(head).map(drop) } else { Ok(()) }
}

/// Checks the policy of a form whose signature was verified. Returns the length that it allows the
/// file.
///
/// # Errors
/// As [`form::check`].
pub(super) fn check_policy(
    form: Option<&PostForm>,
    address: &Address,
    now: Timestamp,
) -> Result<LengthRange, Refusal> {
    let policy = form.and_then(|form| Some((form, form.get("policy")?)));
    let Some((form, text)) = policy else { return Ok(LengthRange::ANY) };
    let bucket = address.container.as_ref().map_or("", |name| name.as_str());
    form::check(text, form, bucket, now)
}

/// Takes the file out of the rest of the body.
pub(super) fn decoder(form: &PostForm, limits: LengthRange) -> Decoder {
    Decoder::File(Box::new(FileDecoder::new(form.boundary(), limits)))
}

/// Refuses requests that a web page could have a browser send without a preflight: a POST without
/// custom headers, signed in the URL or in a form. Every page can sign for the account with the
/// well-known key. A form is accepted from origins that the rules of its bucket name.
///
/// # Errors
/// `CorsPreflightFailure`.
pub(super) async fn check_origin(
    front: &FrontEnd,
    head: &Parts,
    account: &Account,
    address: &Address,
) -> Result<(), Refusal> {
    let is_simple = head.method == Method::POST && !head.headers.contains_key(AUTHORIZATION);
    if !is_simple || !head.headers.contains_key(ORIGIN) || !account.keys.are_well_known() {
        return Ok(());
    }
    if form::of(head).is_some() && cors::permits(front, head, account, address).await? {
        return Ok(());
    }
    Err(Refusal::new(Reason::CorsPreflightFailure).message(
        "The account has the well-known development key, so a web page must sign a POST in its \
         Authorization header, which makes the browser ask first, or the rules of the bucket for \
         cross-origin requests must allow POST from its origin.",
    ))
}
