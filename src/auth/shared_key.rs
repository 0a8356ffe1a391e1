//! Shared Key and Shared Key Lite.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::header::DATE;

use crate::auth::canonical::MS_DATE;
use crate::auth::canonical::Reading;
use crate::auth::canonical::Scheme;
use crate::auth::canonical::SignedRequest;
use crate::auth::canonical::primary_path;
use crate::auth::canonical::string_to_sign;
use crate::auth::error::Error;
use crate::auth::keys::AccountKeys;
use crate::types::Timestamp;

/// The largest difference between a request's date and now, in both directions.
pub const DATE_WINDOW: Duration = Duration::from_secs(15 * 60);

/// The longest string-to-sign shown to the client, bytes. Many headers are not echoed completely.
const DETAIL_BYTES_MAX: usize = 8 * 1024;

/// The content of `Authorization`, parsed and not yet verified.
struct Claim<'a> {
    scheme: Scheme,
    account: &'a str,
    signature: Vec<u8>,
}

/// Authenticates a request.
///
/// # Errors
/// [`Error`]: what is missing, malformed, too old or wrongly signed, checked in this order.
pub fn authenticate(
    request: &SignedRequest<'_>,
    keys: &AccountKeys,
    now: Timestamp,
) -> Result<(), Error> {
    let claim = read_claim(request)?;
    check_date(request.headers, now)?;
    if claim.account != request.account {
        let detail = "the account in Authorization is not the account in the URL".to_owned();
        return Err(Error::WrongSignature { detail });
    }
    let first = Reading { culture_order: false, folded: false, primary_path: false };
    let text = string_to_sign(request, claim.scheme, first);
    if keys.verify(&text, &claim.signature) || other_reading_matches(request, &claim, keys, &text) {
        return Ok(());
    }
    Err(Error::WrongSignature { detail: signature_detail(&text) })
}

/// The value of `Authorization` that signs a request with Shared Key, as a client sends it. The
/// headers must be complete: `x-ms-date`, `x-ms-version` and `Content-Length` are signed too.
#[must_use]
pub fn sign(request: &SignedRequest<'_>, keys: &AccountKeys) -> String {
    let reading = Reading { culture_order: false, folded: false, primary_path: false };
    let text = string_to_sign(request, Scheme::Full, reading);
    format!("SharedKey {}:{}", request.account, keys.sign(&text))
}

/// Tries the strings-to-sign of other clients. A string that was already tried is skipped.
fn other_reading_matches(
    request: &SignedRequest<'_>,
    claim: &Claim<'_>,
    keys: &AccountKeys,
    first: &[u8],
) -> bool {
    let mut tried = vec![first.to_vec()];
    for bits in 1..8u8 {
        let (culture_order, folded, primary) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        if primary && primary_path(request).is_none() {
            break;
        }
        let reading = Reading { culture_order, folded, primary_path: primary };
        let text = string_to_sign(request, claim.scheme, reading);
        if tried.contains(&text) {
            continue;
        }
        if keys.verify(&text, &claim.signature) {
            return true;
        }
        tried.push(text);
    }
    false
}

fn signature_detail(text: &[u8]) -> String {
    let shown = text.get(..DETAIL_BYTES_MAX).unwrap_or(text);
    let shown = String::from_utf8_lossy(shown);
    format!("the signature in Authorization does not match; the string to sign was '{shown}'")
}

fn read_claim<'a>(request: &SignedRequest<'a>) -> Result<Claim<'a>, Error> {
    let mut values = request.headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Error::Missing)?;
    if values.next().is_some() {
        return Err(malformed("Authorization is given twice"));
    }
    let text = value.to_str().map_err(|_| malformed("Authorization is not plain ASCII"))?.trim();
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    let scheme = match scheme {
        "SharedKey" => Scheme::Full,
        "SharedKeyLite" => Scheme::Lite,
        _ => return Err(Error::UnknownScheme),
    };
    let (account, signature) = rest
        .trim()
        .split_once(':')
        .ok_or_else(|| malformed("Authorization is not SCHEME ACCOUNT:SIGNATURE"))?;
    let signature =
        STANDARD.decode(signature).map_err(|_| malformed("the signature is not base64"))?;
    Ok(Claim { scheme, account, signature })
}

fn malformed(detail: &str) -> Error {
    Error::Malformed { detail: detail.to_owned() }
}

fn check_date(headers: &HeaderMap, now: Timestamp) -> Result<(), Error> {
    let value = headers
        .get(MS_DATE)
        .or_else(|| headers.get(DATE))
        .ok_or_else(|| malformed("a signed request has x-ms-date or Date"))?;
    let date = value
        .to_str()
        .ok()
        .and_then(parse_date)
        .ok_or_else(|| malformed("the request date is not in RFC 1123 form"))?;
    let skew = now.whole_seconds().since(date).max(date.since(now.whole_seconds()));
    if skew <= DATE_WINDOW {
        return Ok(());
    }
    let side = if date < now { "behind" } else { "ahead of" };
    let detail = format!(
        "the request date '{date}' is {} seconds {side} the server's '{now}'; {} seconds are allowed",
        skew.as_secs(),
        DATE_WINDOW.as_secs()
    );
    Err(Error::ClockSkew { detail })
}

/// Reads an HTTP date; `None` for anything else and for dates before 1970.
fn parse_date(text: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    let since_epoch = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_unix(since_epoch))
}
