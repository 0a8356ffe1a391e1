//! Why the authentication of an S3 request fails.

use thiserror::Error;

/// Why the authentication of an S3 request fails. No text contains a secret; strings to sign are
/// the client's own data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum S3Error {
    /// Neither `AWS4-HMAC-SHA256` nor `AWS`, or a form of payload that is not served.
    #[error("unsupported signature: {detail}")]
    Unsupported {
        /// The unsupported feature.
        detail: String,
    },
    /// Signed in two places.
    #[error("signed twice")]
    SignedTwice,
    /// `Authorization` cannot be read.
    #[error("malformed Authorization: {detail}")]
    MalformedHeader {
        /// A description of the problem.
        detail: String,
    },
    /// The parameters of a presigned URL are missing or cannot be read.
    #[error("malformed query authentication: {detail}")]
    MalformedQuery {
        /// A description of the problem.
        detail: String,
    },
    /// A form that is signed lacks a field.
    #[error("the form has no field {name}")]
    MissingField {
        /// Its name.
        name: &'static str,
    },
    /// A field of a form that is signed cannot be read.
    #[error("malformed field {name}: {detail}")]
    MalformedField {
        /// Its name.
        name: &'static str,
        /// A description of the problem.
        detail: String,
    },
    /// A presigned URL of version 2 has not all of its parameters.
    #[error("the query has not all parameters of a signature of version 2")]
    IncompleteQuery,
    /// The end of a presigned URL of version 2 cannot be read.
    #[error("the expiry is no number of seconds")]
    NoExpiry {
        /// The given text.
        text: String,
    },
    /// There is no date, or none that can be read.
    #[error("no valid date")]
    NoDate,
    /// The request's date is too far from now.
    #[error("the request time is too skewed")]
    Skewed,
    /// A presigned URL is used too late.
    #[error("the request has expired")]
    Expired,
    /// A presigned URL is used too early.
    #[error("the request is not valid yet")]
    NotYetValid,
    /// Headers that have to be signed are not.
    #[error("headers are not signed: {names}")]
    UnsignedHeaders {
        /// Their names, separated by commas.
        names: String,
    },
    /// `x-amz-content-sha256` is missing.
    #[error("x-amz-content-sha256 is missing")]
    NoPayloadHash,
    /// `x-amz-content-sha256` is neither a hash nor a known form.
    #[error("x-amz-content-sha256 is neither a SHA-256 nor a known form")]
    BadPayloadHash,
    /// The signature is not that of one of the secrets.
    #[error("the signature does not match")]
    WrongSignature {
        /// The server's string to sign, for the client.
        string_to_sign: String,
        /// The server's canonical request, for the client; empty for version 2.
        canonical_request: String,
    },
}

impl S3Error {
    pub(super) fn header(detail: impl Into<String>) -> Self {
        Self::MalformedHeader { detail: detail.into() }
    }

    pub(super) fn field(name: &'static str, detail: impl Into<String>) -> Self {
        Self::MalformedField { name, detail: detail.into() }
    }

    pub(super) fn query(detail: impl Into<String>) -> Self {
        Self::MalformedQuery { detail: detail.into() }
    }
}
