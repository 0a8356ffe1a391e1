//! The signed parts of a request, and the result of a verification.

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
    /// The fields of a form about its signature.
    pub form: Option<SignedForm<'a>>,
    /// The service that it is for.
    pub service: SignedService,
}

/// The service that a request is signed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedService {
    /// S3.
    S3,
    /// The token service. Its signatures cover the body, whatever the head says of it.
    TokenService {
        /// The SHA-256 of the body.
        body: [u8; 32],
    },
}

impl SignedService {
    /// Its name in credentials.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::TokenService { .. } => "sts",
        }
    }
}

/// The fields of a form that are about its signature. Its policy is the signed text.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignedForm<'a> {
    /// `policy`: the policy in base64.
    pub policy: Option<&'a str>,
    /// `x-amz-algorithm`.
    pub algorithm: Option<&'a str>,
    /// `x-amz-credential`.
    pub credential: Option<&'a str>,
    /// `x-amz-date`.
    pub date: Option<&'a str>,
    /// `x-amz-signature`: that of version 4.
    pub signature: Option<&'a str>,
    /// `AWSAccessKeyId`, in version 2.
    pub access_key_id: Option<&'a str>,
    /// `signature`: that of version 2.
    pub signature_v2: Option<&'a str>,
}

/// A request whose signature was verified.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The claim of the signature about the body.
    pub payload: Payload,
}

/// The first value of a query parameter, decoded. Names are case-sensitive.
pub(super) fn parameter(request: &SignedS3Request<'_>, name: &str) -> Option<String> {
    let pieces = request.query.unwrap_or("").split('&');
    let mut pairs = pieces.map(|piece| piece.split_once('=').unwrap_or((piece, "")));
    pairs.find(|(raw, _)| decoded(raw) == name).map(|(_, value)| decoded(value))
}

/// A name or value of the query without its escapes; a plus is a space.
pub(super) fn decoded(raw: &str) -> String {
    percent_decode_str(&raw.replace('+', " ")).decode_utf8_lossy().into_owned()
}
