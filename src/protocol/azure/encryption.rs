//! `x-ms-encryption-*`: customer-provided keys and encryption scopes.
//! `x-ms-source-encryption-*`: the key of the source of a copy.
//!
//! Source: "Provide an encryption key on a request to Blob storage", "Encryption scopes for Blob
//! storage". A key's text is never repeated in an answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;

use crate::protocol::azure::copy_headers;
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
/// The only algorithm.
const ALGORITHM: &str = "AES256";
/// The scope every account has: its own key.
pub(super) const ACCOUNT_SCOPE: &str = "$account-encryption-key";

/// Operations that take a key or a scope, by `comp`.
const WRITES: &[&str] =
    &["block", "blocklist", "metadata", "appendblock", "page", "properties", "snapshot"];
const READS: &[&str] = &["metadata"];

/// Operations that take a key for the source that they name, by `comp`.
const FROM_URL: &[&str] = &["block", "appendblock", "page"];

/// The three headers of a key.
struct KeyNames {
    key: &'static HeaderName,
    sha256: &'static HeaderName,
    algorithm: &'static HeaderName,
}

/// The key of the resource that the request names.
static OF_BLOB: KeyNames = KeyNames {
    key: &names::ENCRYPTION_KEY,
    sha256: &names::ENCRYPTION_KEY_SHA256,
    algorithm: &names::ENCRYPTION_ALGORITHM,
};

/// The key of the source of a copy.
static OF_SOURCE: KeyNames = KeyNames {
    key: &names::SOURCE_ENCRYPTION_KEY,
    sha256: &names::SOURCE_ENCRYPTION_KEY_SHA256,
    algorithm: &names::SOURCE_ENCRYPTION_ALGORITHM,
};

/// Whether an operation on a blob takes the headers. Where it does not, they are refused, not
/// ignored.
pub(super) fn is_served(method: &Method, comp: Option<&str>, all: &HeaderMap) -> bool {
    match (method, comp) {
        // Copy Blob takes a scope; a key it does not.
        (&Method::PUT, None) if copy_headers::is_copy_blob(comp, all) => {
            let KeyNames { key, sha256, algorithm } = &OF_BLOB;
            ![key, sha256, algorithm].into_iter().any(|name| all.contains_key(*name))
        }
        (&Method::PUT, None) => true,
        (&Method::PUT, Some(comp)) => WRITES.contains(&comp),
        (&Method::GET | &Method::HEAD, None) => true,
        (&Method::GET | &Method::HEAD, Some(comp)) => READS.contains(&comp),
        (&Method::POST, Some("query")) => true,
        _ => false,
    }
}

/// Whether an operation takes the key of its source: those that take bytes from a URL, except Copy
/// Blob.
pub(super) fn takes_source_key(method: &Method, comp: Option<&str>, all: &HeaderMap) -> bool {
    *method == Method::PUT
        && copy_headers::has_source(all)
        && match comp {
            None => !copy_headers::is_copy_blob(comp, all),
            Some(comp) => FROM_URL.contains(&comp),
        }
}

/// The header that shows how content is encrypted, with its value.
pub(super) fn header(encryption: &Encryption) -> (&'static str, String) {
    match encryption {
        Encryption::Customer(sha256) => ("x-ms-encryption-key-sha256", STANDARD.encode(sha256)),
        Encryption::Scope(name) | Encryption::KeyedScope { name, .. } => {
            ("x-ms-encryption-scope", name.clone())
        }
    }
}

/// A key may not travel in the clear; on the machine's own loopback it does not travel.
///
/// # Errors
/// `InvalidHeaderValue` for a key over http from elsewhere.
pub fn check_key_is_safe(all: &HeaderMap, peer: Peer) -> Result<(), Refusal> {
    if peer.secure || peer.address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    match [OF_BLOB.key, OF_SOURCE.key].into_iter().find(|name| all.contains_key(*name)) {
        Some(name) => Err(over_https_only().detail(Detail::HeaderName, name.as_str())),
        None => Ok(()),
    }
}

/// A key of a source may not travel in the clear either.
#[must_use]
pub fn source_key_is_unsafe() -> Refusal {
    over_https_only().detail(Detail::HeaderName, OF_SOURCE.key.as_str())
}

fn over_https_only() -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue)
        .message("A customer-provided key may be sent over https only.")
}

/// The headers of a read of a blob under this key.
pub(super) fn of_read(key: &CustomerKey) -> Result<[(HeaderName, HeaderValue); 3], Refusal> {
    let (_, sha256) = header(&key.encryption());
    let mut secret =
        HeaderValue::from_str(&key.to_base64()).map_err(|_| refused_key(&OF_SOURCE))?;
    secret.set_sensitive(true);
    let sha256 = HeaderValue::from_str(&sha256).map_err(|_| refused_key(&OF_SOURCE))?;
    let KeyNames { key, sha256: hash, algorithm } = &OF_BLOB;
    Ok([
        ((*key).clone(), secret),
        ((*hash).clone(), sha256),
        ((*algorithm).clone(), HeaderValue::from_static(ALGORITHM)),
    ])
}

/// Adds the headers to the precondition.
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
    match (key(all, &OF_BLOB)?, scope) {
        (Some(_), Some(name)) => Err(headers::invalid(names::ENCRYPTION_SCOPE.as_str(), name)
            .message("Send a customer-provided key or an encryption scope, not both.")),
        (Some(key), None) => Ok(RequestEncryption::Key(key)),
        (None, Some(name)) => scope_name(names::ENCRYPTION_SCOPE.as_str(), name),
        (None, None) => Ok(RequestEncryption::Plain),
    }
}

/// The key of the source of a copy.
pub(super) fn source_key(all: &HeaderMap) -> Result<Option<CustomerKey>, Refusal> {
    key(all, &OF_SOURCE)
}

fn key(all: &HeaderMap, names: &KeyNames) -> Result<Option<CustomerKey>, Refusal> {
    let (sha256, algorithm) =
        (headers::text(all, names.sha256)?, headers::text(all, names.algorithm)?);
    // Errors about the key do not repeat its text.
    let Some(key) = headers::text(all, names.key).map_err(|_| refused_key(names))? else {
        return match sha256.or(algorithm) {
            Some(_) => Err(missing(names.key.as_str())),
            None => Ok(None),
        };
    };
    let key = CustomerKey::from_base64(key).ok_or_else(|| {
        refused_key(names).message("A customer-provided key is the base64 text of 32 bytes.")
    })?;
    let claimed = sha256.ok_or_else(|| missing(names.sha256.as_str()))?;
    if STANDARD.decode(claimed).ok().and_then(|hash| hash.try_into().ok()).map(Encryption::Customer)
        != Some(key.encryption())
    {
        return Err(headers::invalid(names.sha256.as_str(), claimed)
            .message("This is not the SHA-256 of the key that was sent."));
    }
    match algorithm {
        Some(ALGORITHM) => Ok(Some(key)),
        Some(other) => Err(headers::invalid(names.algorithm.as_str(), other)),
        None => Err(missing(names.algorithm.as_str())),
    }
}

fn refused_key(names: &KeyNames) -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue).detail(Detail::HeaderName, names.key.as_str())
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
