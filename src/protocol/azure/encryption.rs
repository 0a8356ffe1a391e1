//! `x-ms-encryption-*`: customer-provided keys and encryption scopes.
//!
//! Source: "Provide an encryption key on a request to Blob storage", "Encryption scopes for Blob
//! storage". A key's text is never repeated in an answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::Method;

use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::model::Detail;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RequestEncryption;
use crate::types::CustomerKey;
use crate::types::Encryption;
use crate::types::EncryptionScope;
use crate::types::Peer;

const DEFAULT: &str = "x-ms-default-encryption-scope";
const DENY: &str = "x-ms-deny-encryption-scope-override";
/// The scope every account has: its own key.
pub(super) const ACCOUNT_SCOPE: &str = "$account-encryption-key";

/// Operations that take a key or a scope, by `comp`.
const WRITES: &[&str] =
    &["block", "blocklist", "metadata", "appendblock", "page", "properties", "snapshot"];
const READS: &[&str] = &["metadata"];

/// Whether an operation on a blob takes the headers. Where it does not, they are refused, not
/// ignored.
pub(super) fn is_served(method: &Method, comp: Option<&str>, all: &HeaderMap) -> bool {
    let copy = all.contains_key(&names::COPY_SOURCE);
    match (method, comp) {
        // A copy takes a scope; a key it does not.
        (&Method::PUT, None) if copy => {
            ![&names::ENCRYPTION_KEY, &names::ENCRYPTION_KEY_SHA256, &names::ENCRYPTION_ALGORITHM]
                .iter()
                .any(|name| all.contains_key(*name))
        }
        (&Method::PUT, None) => true,
        (&Method::PUT, Some(comp)) => WRITES.contains(&comp) && !copy,
        (&Method::GET | &Method::HEAD, None) => true,
        (&Method::GET | &Method::HEAD, Some(comp)) => READS.contains(&comp),
        _ => false,
    }
}

/// The header that shows how content is encrypted, with its value.
pub(super) fn header(encryption: &Encryption) -> (&'static str, String) {
    match encryption {
        Encryption::Customer(sha256) => ("x-ms-encryption-key-sha256", STANDARD.encode(sha256)),
        Encryption::Scope(name) => ("x-ms-encryption-scope", name.clone()),
    }
}

/// A key may not travel in the clear; on the machine's own loopback it does not travel.
///
/// # Errors
/// `InvalidHeaderValue` for a key over http from elsewhere.
pub fn check_key_is_safe(all: &HeaderMap, peer: Peer) -> Result<(), Refusal> {
    if peer.secure || peer.address.ip().is_loopback() || !all.contains_key(&names::ENCRYPTION_KEY) {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidHeaderValue)
        .message("A customer-provided key may be sent over https only.")
        .detail(Detail::HeaderName, names::ENCRYPTION_KEY.as_str()))
}

/// Adds the headers to what must hold.
pub(super) fn with(all: &HeaderMap, precondition: Precondition) -> Result<Precondition, Refusal> {
    Ok(Precondition { encryption: read(all)?, ..precondition })
}

/// As [`with`], for what does without a key as well, but is held to one that comes.
pub(super) fn with_any(
    all: &HeaderMap,
    precondition: Precondition,
) -> Result<Precondition, Refusal> {
    let mut precondition = with(all, precondition)?;
    if precondition.encryption == RequestEncryption::Plain {
        precondition.encryption = RequestEncryption::Unchecked;
    }
    Ok(precondition)
}

fn read(all: &HeaderMap) -> Result<RequestEncryption, Refusal> {
    let scope = headers::text(all, &names::ENCRYPTION_SCOPE)?;
    let (sha256, algorithm) = (
        headers::text(all, &names::ENCRYPTION_KEY_SHA256)?,
        headers::text(all, &names::ENCRYPTION_ALGORITHM)?,
    );
    let Some(key) = secret(all)? else {
        return match (sha256.or(algorithm), scope) {
            (Some(_), _) => Err(missing(names::ENCRYPTION_KEY.as_str())),
            (None, Some(name)) => scope_name(names::ENCRYPTION_SCOPE.as_str(), name),
            (None, None) => Ok(RequestEncryption::Plain),
        };
    };
    if let Some(name) = scope {
        return Err(headers::invalid(names::ENCRYPTION_SCOPE.as_str(), name)
            .message("Send a customer-provided key or an encryption scope, not both."));
    }
    let key = CustomerKey::from_base64(key).ok_or_else(|| {
        Refusal::new(Reason::InvalidHeaderValue)
            .message("A customer-provided key is the base64 text of 32 bytes.")
            .detail(Detail::HeaderName, names::ENCRYPTION_KEY.as_str())
    })?;
    let claimed = sha256.ok_or_else(|| missing(names::ENCRYPTION_KEY_SHA256.as_str()))?;
    if STANDARD.decode(claimed).ok().and_then(|hash| hash.try_into().ok()).map(Encryption::Customer)
        != Some(key.encryption())
    {
        return Err(headers::invalid(names::ENCRYPTION_KEY_SHA256.as_str(), claimed)
            .message("This is not the SHA-256 of the key that was sent."));
    }
    match algorithm {
        Some("AES256") => Ok(RequestEncryption::Key(key)),
        Some(other) => Err(headers::invalid(names::ENCRYPTION_ALGORITHM.as_str(), other)),
        None => Err(missing(names::ENCRYPTION_ALGORITHM.as_str())),
    }
}

/// The key's text; errors about it do not repeat it.
fn secret(all: &HeaderMap) -> Result<Option<&str>, Refusal> {
    headers::text(all, &names::ENCRYPTION_KEY).map_err(|_| {
        Refusal::new(Reason::InvalidHeaderValue)
            .detail(Detail::HeaderName, names::ENCRYPTION_KEY.as_str())
    })
}

fn missing(name: &'static str) -> Refusal {
    Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, name)
}

fn scope_name(header: &str, name: &str) -> Result<RequestEncryption, Refusal> {
    if name == ACCOUNT_SCOPE {
        return Ok(RequestEncryption::Plain);
    }
    check_name(header, name).map(|()| RequestEncryption::Scope(name.to_owned()))
}

/// A container's default scope as shown.
pub(super) fn name(scope: Option<&EncryptionScope>) -> &str {
    scope.map_or(ACCOUNT_SCOPE, |scope| &scope.name)
}

/// Whether a container's blobs must not name another, as shown.
pub(super) fn denies(scope: Option<&EncryptionScope>) -> &'static str {
    if scope.is_some_and(|scope| scope.deny_override) { "true" } else { "false" }
}

/// The default scope of a container being made; `None` is the account's own.
pub(super) fn default_scope(all: &HeaderMap) -> Result<Option<EncryptionScope>, Refusal> {
    let deny_override = headers::flag(all, DENY)?;
    match headers::text(all, DEFAULT)? {
        None if all.contains_key(DENY) => Err(missing(DEFAULT)),
        None => Ok(None),
        Some(name) if name == ACCOUNT_SCOPE && !deny_override => Ok(None),
        Some(name) => {
            if name != ACCOUNT_SCOPE {
                check_name(DEFAULT, name)?;
            }
            Ok(Some(EncryptionScope { name: name.to_owned(), deny_override }))
        }
    }
}

/// Scopes are named by 3 to 63 letters, digits and hyphens.
fn check_name(header: &str, name: &str) -> Result<(), Refusal> {
    let fits = (3..=63).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if fits { Ok(()) } else { Err(headers::invalid(header, name)) }
}

#[cfg(test)]
mod tests;
