//! Shared Key and Shared Key Lite.

use http::HeaderMap;
use http::Method;

use crate::auth::AccountKeys;
use crate::auth::Error;
use crate::types::Timestamp;

/// The parts of a request that a signature covers, as they came over the wire.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, still percent-encoded.
    pub path: &'a str,
    /// The query without its `?`, still percent-encoded.
    pub query: Option<&'a str>,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The account the URL names, without `-secondary`.
    pub account: &'a str,
    /// Whether the URL names the secondary.
    pub secondary: bool,
}

/// Lets a request in or says why not.
///
/// # Errors
/// [`Error`].
pub fn authenticate(
    request: &SignedRequest<'_>,
    _keys: &AccountKeys,
    _now: Timestamp,
) -> Result<(), Error> {
    if request.headers.get("authorization").is_none() {
        return Err(Error::Missing);
    }
    Err(Error::UnknownScheme)
}
