//! Headers and parameters of S3 that Blockyard does not serve. They are refused: if a header that
//! changes encryption, retention, access or conditions were ignored, the result would not be what
//! the client requested.

use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::s3::versions;
use crate::protocol::wire::query;

/// Headers, or prefixes of headers, that are not served.
const HEADERS: &[&str] = &[
    "x-amz-bypass-",
    "x-amz-copy-source",
    "x-amz-bucket-object-lock-enabled",
    "x-amz-bucket-namespace",
    "x-amz-grant-",
    "x-amz-if-match-",
    "x-amz-rename-source",
    "x-amz-mfa",
    "x-amz-object-lock",
    "x-amz-object-ownership",
    "x-amz-server-side-encryption",
    "x-amz-write-offset-bytes",
];

/// The operations that copy.
const COPIES: &[S3Operation] = &[S3Operation::CopyObject, S3Operation::UploadPartCopy];
/// The owner of new objects, and the one value that is served: the writer.
const OWNERSHIP: &str = "x-amz-object-ownership";
const OWNERSHIP_SERVED: &str = "ObjectWriter";

/// The operations that may protect the object that they make.
const PROTECTING: &[S3Operation] = &[
    S3Operation::PutObject,
    S3Operation::PostObject,
    S3Operation::CopyObject,
    S3Operation::CreateMultipartUpload,
];

/// Headers of the list above that some operations serve: their names or prefixes, and the
/// operations.
const SERVED: &[(&str, &[S3Operation])] = &[
    (
        "x-amz-server-side-encryption-customer-",
        &[
            S3Operation::PutObject,
            S3Operation::PostObject,
            S3Operation::GetObject,
            S3Operation::HeadObject,
            S3Operation::GetObjectAttributes,
            S3Operation::CreateMultipartUpload,
            S3Operation::UploadPart,
            S3Operation::CompleteMultipartUpload,
            S3Operation::ListParts,
            S3Operation::CopyObject,
            S3Operation::UploadPartCopy,
        ],
    ),
    ("x-amz-copy-source", COPIES),
    ("x-amz-copy-source-", COPIES),
    ("x-amz-if-match-", &[S3Operation::DeleteObject]),
    ("x-amz-bucket-object-lock-enabled", &[S3Operation::CreateBucket]),
    ("x-amz-object-lock-mode", PROTECTING),
    ("x-amz-object-lock-retain-until-date", PROTECTING),
    ("x-amz-object-lock-legal-hold", PROTECTING),
    (
        "x-amz-bypass-governance-retention",
        &[S3Operation::DeleteObject, S3Operation::DeleteObjects, S3Operation::PutObjectRetention],
    ),
];

/// The operations on an object that may be on a version of it.
const OF_VERSIONS: &[S3Operation] = &[
    S3Operation::GetObject,
    S3Operation::HeadObject,
    S3Operation::DeleteObject,
    S3Operation::GetObjectAttributes,
    S3Operation::GetObjectTagging,
    S3Operation::PutObjectTagging,
    S3Operation::DeleteObjectTagging,
    S3Operation::GetObjectAcl,
    S3Operation::PutObjectAcl,
    S3Operation::GetObjectRetention,
    S3Operation::PutObjectRetention,
    S3Operation::GetObjectLegalHold,
    S3Operation::PutObjectLegalHold,
    S3Operation::RestoreObject,
];

/// The refusal of an operation that is not served.
pub(super) fn operation(operation: S3Operation) -> Refusal {
    Refusal::new(Reason::NotImplemented)
        .message(format!("Blockyard does not serve {}.", operation.name()))
}

/// Refuses headers that are not served.
///
/// # Errors
/// `UnsupportedHeader`.
pub(super) fn check_headers(headers: &HeaderMap, operation: S3Operation) -> Result<(), Refusal> {
    let is_owned = headers.get(OWNERSHIP).is_some_and(|value| value == OWNERSHIP_SERVED);
    let is_served = |name: &str| {
        if name == OWNERSHIP && is_owned {
            return true;
        }
        let mut served = SERVED.iter().filter(|(_, operations)| operations.contains(&operation));
        served.any(|(own, _)| name == *own || own.ends_with('-') && name.starts_with(own))
    };
    for name in headers.keys().map(http::HeaderName::as_str) {
        let is_meant = |unserved: &&str| name.starts_with(*unserved);
        if HEADERS.iter().any(is_meant) && !is_served(name) {
            return Err(Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, name));
        }
    }
    Ok(())
}

/// Refuses a version id on an operation that takes none.
///
/// # Errors
/// `InvalidQueryParameterValue`.
pub(super) fn check_query(request: &Request<'_>, operation: S3Operation) -> Result<(), Refusal> {
    let is_of_object = request.address.blob.is_some();
    if !is_of_object || !request.query.has(versions::PARAMETER) || OF_VERSIONS.contains(&operation)
    {
        return Ok(());
    }
    let text = request.query.get(versions::PARAMETER)?.unwrap_or_default();
    Err(query::invalid(versions::PARAMETER, text)
        .message("This operation does not accept a version-id."))
}
