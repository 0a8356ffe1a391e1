//! Head and query to an operation.

use http::HeaderMap;
use http::request::Parts;

use crate::protocol::model::Address;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::address;
use crate::protocol::s3::attributes;
use crate::protocol::s3::beside;
use crate::protocol::s3::buckets;
use crate::protocol::s3::copies;
use crate::protocol::s3::deletions;
use crate::protocol::s3::form;
use crate::protocol::s3::lists;
use crate::protocol::s3::objects;
use crate::protocol::s3::owners;
use crate::protocol::s3::post;
use crate::protocol::s3::request;
use crate::protocol::s3::request::Parser;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::restore;
use crate::protocol::s3::routes::HEADERS;
use crate::protocol::s3::routes::Level;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::s3::routes::route;
use crate::protocol::s3::unserved;
use crate::protocol::s3::uploads;
use crate::protocol::wire::query::Query;

use S3Operation as O;

/// The operations that are served. Others are 501.
const SERVED: &[(S3Operation, Parser)] = &[
    (O::ListBuckets, buckets::list),
    (O::CreateBucket, buckets::create),
    (O::HeadBucket, buckets::head),
    (O::DeleteBucket, buckets::delete),
    (O::GetBucketLocation, buckets::head),
    (O::ListObjects, lists::objects),
    (O::ListObjectsV2, lists::objects_v2),
    (O::ListObjectVersions, lists::versions),
    (O::GetObject, objects::get),
    (O::HeadObject, objects::head),
    (O::PutObject, objects::put),
    (O::DeleteObject, objects::delete),
    (O::DeleteObjects, deletions::delete),
    (O::GetObjectAttributes, attributes::get),
    (O::RestoreObject, restore::restore),
    (O::CopyObject, copies::copy),
    (O::CreateMultipartUpload, uploads::create),
    (O::UploadPart, uploads::part),
    (O::UploadPartCopy, copies::part),
    (O::CompleteMultipartUpload, uploads::complete),
    (O::AbortMultipartUpload, uploads::abort),
    (O::ListParts, uploads::parts),
    (O::ListMultipartUploads, uploads::list),
    (O::PostObject, post::post),
];

/// Operations that make an object of the key in their URL, or in their form.
const MAKES: [S3Operation; 4] =
    [O::PutObject, O::CopyObject, O::CreateMultipartUpload, O::PostObject];

/// All operations that are served.
fn served() -> impl Iterator<Item = &'static (S3Operation, Parser)> {
    SERVED.iter().chain(beside::SERVED)
}

/// The level that a request names: its URL, or for a form a field with the key.
fn level(head: &Parts, address: &Address) -> Level {
    match (&address.container, &address.blob) {
        (None, _) => Level::Service,
        (Some(_), Some(_)) if form::of(head).is_none() => Level::Object,
        (Some(_), _) => Level::Bucket,
    }
}

/// Finds the operation of a request.
///
/// # Errors
/// As [`route`]; `InvalidQueryParameterValue` when the query cannot be decoded.
pub fn operation(head: &Parts, address: &Address) -> Result<S3Operation, Refusal> {
    let query = Query::parse_exact(head.uri.query())?;
    routed(head, address, &request::headers(head), &query)
}

fn routed(
    head: &Parts,
    address: &Address,
    headers: &HeaderMap,
    query: &Query,
) -> Result<S3Operation, Refusal> {
    let has_query = head.uri.query().is_some_and(|query| !query.is_empty());
    route(&head.method, level(head, address), has_query, has(headers, query))
}

/// Whether a request has a parameter, or a header of S3.
fn has(headers: &HeaderMap, query: &Query) -> impl Fn(&str) -> bool {
    move |name| match name.starts_with(HEADERS) {
        true => headers.contains_key(name),
        false => query.has(name),
    }
}

/// Reads the operation of a request.
///
/// # Errors
/// The documented code of the first thing that is wrong with the head. `NotImplemented` for an
/// operation or a header that is not served.
pub fn parse(head: &Parts, address: &Address) -> Result<Parsed, Refusal> {
    let query = Query::parse_exact(head.uri.query())?;
    let headers = request::headers(head);
    let operation = routed(head, address, &headers, &query)?;
    let form = form::of(head);
    let request = Request { query: &query, headers: &headers, address, form };
    let found = served().find(|(served, _)| *served == operation);
    let (_, parser) = found.ok_or_else(|| unserved::operation(operation))?;
    if MAKES.contains(&operation) {
        address::check_made(address)?;
    }
    owners::check(&headers, &address.account)?;
    unserved::check_headers(&headers, operation)?;
    unserved::check_query(&request, operation)?;
    parser(&request)
}

#[cfg(test)]
mod tests;
