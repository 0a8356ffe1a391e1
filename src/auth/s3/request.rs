//! What is signed, and what a verified signature says.

use http::HeaderMap;
use http::Method;
use percent_encoding::percent_decode_str;

use crate::auth::s3::payload::Payload;

/// The parts of a request that a signature covers, as received.
#[derive(Clone, Copy, Debug)]
pub struct SignedS3Request<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, still percent-encoded.
    pub path: &'a str,
    /// The query without its `?`, still percent-encoded.
    pub query: Option<&'a str>,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The host with its port, as the client names it.
    pub host: &'a str,
    /// The bucket, when the host names it.
    pub bucket: Option<&'a str>,
}

/// A request whose signature was verified.
#[derive(Clone, Debug)]
pub struct Verified {
    /// What the signature says of the body.
    pub payload: Payload,
}

/// The first value of a query parameter, decoded; names are told apart by case.
pub(super) fn parameter(request: &SignedS3Request<'_>, name: &str) -> Option<String> {
    let pieces = request.query.unwrap_or("").split('&');
    let pairs = pieces.map(|piece| piece.split_once('=').unwrap_or((piece, "")));
    let value = pairs.filter(|(raw, _)| *raw == name).map(|(_, value)| value).next()?;
    Some(percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned())
}
