//! Access control lists.
//!
//! Source: S3, "Access control list (ACL) overview", `PutBucketAcl`, `PutObjectAcl`.

use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http::header::TRANSFER_ENCODING;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::request::Request;
use crate::protocol::wire::headers;
use crate::types::CannedAcl;

const HEADER: &str = "x-amz-acl";
/// Canned lists that are not served: they permit writes by others, or are for services of AWS.
const UNSERVED: [&str; 3] = ["public-read-write", "aws-exec-read", "log-delivery-write"];

/// `GetBucketAcl`.
pub(super) fn get_bucket(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let container = request.bucket()?;
    Ok(Parsed::ready(ContainerOperation::GetContainerGrants { container }.into()))
}

/// `GetObjectAcl`.
pub(super) fn get_object(request: &Request<'_>) -> Result<Parsed, Refusal> {
    Ok(Parsed::ready(BlobOperation::GetBlobGrants { path: request.object()? }.into()))
}

/// `PutBucketAcl`.
pub(super) fn put_bucket(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (container, acl) = (request.bucket()?, needed(request.headers)?);
    Ok(Parsed::ready(ContainerOperation::SetContainerGrants { container, acl }.into()))
}

/// `PutObjectAcl`.
pub(super) fn put_object(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (path, acl) = (request.object()?, needed(request.headers)?);
    Ok(Parsed::ready(BlobOperation::SetBlobGrants { path, acl }.into()))
}

/// The canned list of a request that sets one. Grants in a document are not served.
fn needed(all: &HeaderMap) -> Result<CannedAcl, Refusal> {
    let empty = headers::number(all, CONTENT_LENGTH.as_str())?.is_none_or(|len| len == 0);
    let has_body = !empty || all.contains_key(TRANSFER_ENCODING);
    match header(all)? {
        Some(_) if has_body => Err(Reason::UnexpectedBody.into()),
        Some(acl) => Ok(acl),
        None if has_body => Err(Refusal::new(Reason::NotImplemented)
            .message("Blockyard serves canned access control lists, and no grants in documents.")),
        None => Err(Reason::MissingGrants.into()),
    }
}

/// The canned list of a new bucket. Lists about the owner of the bucket have no meaning for a
/// bucket.
///
/// # Errors
/// Those of [`header`].
pub(super) fn of_new_bucket(all: &HeaderMap) -> Result<CannedAcl, Refusal> {
    let acl = header(all)?.filter(|acl| acl.is_public());
    Ok(acl.unwrap_or(CannedAcl::Private))
}

/// `x-amz-acl`.
///
/// # Errors
/// `UnsupportedHeader` for a canned list that is not served, `InvalidHeaderValue` for one that does
/// not exist.
pub(super) fn header(all: &HeaderMap) -> Result<Option<CannedAcl>, Refusal> {
    let Some(text) = headers::text(all, HEADER)? else { return Ok(None) };
    if UNSERVED.contains(&text) {
        return Err(Refusal::new(Reason::UnsupportedHeader)
            .detail(Detail::HeaderName, HEADER)
            .detail(Detail::HeaderValue, text));
    }
    match text {
        "private" => Ok(Some(CannedAcl::Private)),
        "public-read" => Ok(Some(CannedAcl::PublicRead)),
        "authenticated-read" => Ok(Some(CannedAcl::AuthenticatedRead)),
        "bucket-owner-read" => Ok(Some(CannedAcl::BucketOwnerRead)),
        "bucket-owner-full-control" => Ok(Some(CannedAcl::BucketOwnerFullControl)),
        _ => Err(headers::invalid(HEADER, text)),
    }
}
