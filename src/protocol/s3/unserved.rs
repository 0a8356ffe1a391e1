//! What S3 has and Blockyard does not serve. It is refused: to ignore a header that changes
//! encryption, retention, access or conditions would do something else than the client asked for.

use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::routes::S3Operation;

/// Headers, or what headers begin with, whose meaning is not served.
const HEADERS: &[&str] = &[
    "x-amz-bypass-governance-retention",
    "x-amz-copy-source",
    "x-amz-bucket-object-lock-enabled",
    "x-amz-bucket-namespace",
    "x-amz-grant-",
    "x-amz-if-match-",
    "x-amz-mfa",
    "x-amz-object-lock-",
    "x-amz-object-ownership",
    "x-amz-server-side-encryption",
    "x-amz-write-offset-bytes",
];

/// Who owns new objects, and the one value that is served: who writes them.
const OWNERSHIP: &str = "x-amz-object-ownership";
const OWNERSHIP_SERVED: &str = "ObjectWriter";

/// Query parameters whose meaning is not served.
const PARAMETERS: &[&str] = &["versionId"];

/// The refusal of an operation that is not served.
pub(super) fn operation(operation: S3Operation) -> Refusal {
    Refusal::new(Reason::NotImplemented)
        .message(format!("Blockyard does not serve {}.", operation.name()))
}

/// Refuses headers whose meaning is not served.
///
/// # Errors
/// `UnsupportedHeader`.
pub(super) fn check_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    for (name, value) in headers {
        let name = name.as_str();
        if name == OWNERSHIP && value == OWNERSHIP_SERVED {
            continue;
        }
        if name.starts_with("x-amz-") && HEADERS.iter().any(|unserved| name.starts_with(unserved)) {
            return Err(Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, name));
        }
    }
    Ok(())
}

/// Refuses parameters whose meaning is not served.
///
/// # Errors
/// `UnsupportedQueryParameter`.
pub(super) fn check_query(request: &Request<'_>) -> Result<(), Refusal> {
    match PARAMETERS.iter().find(|name| request.query.has(name)) {
        Some(name) => {
            Err(Refusal::new(Reason::UnsupportedQueryParameter)
                .detail(Detail::ParameterName, *name))
        }
        None => Ok(()),
    }
}
