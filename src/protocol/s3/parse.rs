//! Head and query to an operation.

use http::request::Parts;

use crate::protocol::model::Address;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::acl;
use crate::protocol::s3::buckets;
use crate::protocol::s3::cors;
use crate::protocol::s3::lists;
use crate::protocol::s3::objects;
use crate::protocol::s3::owners;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::routes::Level;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::s3::routes::route;
use crate::protocol::s3::settings;
use crate::protocol::s3::tagging;
use crate::protocol::s3::unserved;
use crate::protocol::s3::uploads;
use crate::protocol::wire::query::Query;

use S3Operation as O;

/// Reads one operation.
type Parser = fn(&Request<'_>) -> Result<Parsed, Refusal>;

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
    (O::GetObjectTagging, tagging::get_object),
    (O::PutObjectTagging, tagging::put_object),
    (O::DeleteObjectTagging, tagging::delete_object),
    (O::GetBucketTagging, tagging::get_bucket),
    (O::PutBucketTagging, tagging::put_bucket),
    (O::DeleteBucketTagging, tagging::delete_bucket),
    (O::GetBucketCors, cors::get),
    (O::PutBucketCors, cors::put),
    (O::DeleteBucketCors, cors::delete),
    (O::GetBucketAccelerateConfiguration, settings::get_fixed),
    (O::GetBucketLogging, settings::get_fixed),
    (O::GetBucketNotificationConfiguration, settings::get_fixed),
    (O::GetBucketOwnershipControls, settings::get_fixed),
    (O::GetBucketRequestPayment, settings::get_fixed),
    (O::GetBucketVersioning, settings::get_fixed),
    (O::ListBucketAnalyticsConfigurations, settings::get_fixed),
    (O::ListBucketIntelligentTieringConfigurations, settings::get_fixed),
    (O::ListBucketInventoryConfigurations, settings::get_fixed),
    (O::ListBucketMetricsConfigurations, settings::get_fixed),
    (O::GetBucketEncryption, settings::get_absent),
    (O::GetBucketLifecycleConfiguration, settings::get_absent),
    (O::GetBucketPolicy, settings::get_absent),
    (O::GetBucketPolicyStatus, settings::get_absent),
    (O::GetBucketReplication, settings::get_absent),
    (O::GetBucketWebsite, settings::get_absent),
    (O::GetObjectLockConfiguration, settings::get_absent),
    (O::GetPublicAccessBlock, settings::get_absent),
    (O::GetBucketAnalyticsConfiguration, settings::absent_of_id),
    (O::GetBucketIntelligentTieringConfiguration, settings::absent_of_id),
    (O::GetBucketInventoryConfiguration, settings::absent_of_id),
    (O::GetBucketMetricsConfiguration, settings::absent_of_id),
    (O::DeleteBucketAnalyticsConfiguration, settings::absent_of_id),
    (O::DeleteBucketIntelligentTieringConfiguration, settings::absent_of_id),
    (O::DeleteBucketInventoryConfiguration, settings::absent_of_id),
    (O::DeleteBucketMetricsConfiguration, settings::absent_of_id),
    (O::DeleteBucketEncryption, settings::remove_absent),
    (O::DeleteBucketLifecycle, settings::remove_absent),
    (O::DeleteBucketPolicy, settings::remove_absent),
    (O::DeleteBucketReplication, settings::remove_absent),
    (O::DeleteBucketWebsite, settings::remove_absent),
    (O::DeletePublicAccessBlock, settings::remove_absent),
    (O::GetBucketAcl, acl::get_bucket),
    (O::PutBucketAcl, acl::put_bucket),
    (O::GetObjectAcl, acl::get_object),
    (O::PutObjectAcl, acl::put_object),
    (O::GetObjectTorrent, settings::torrent),
    (O::CreateMultipartUpload, uploads::create),
    (O::UploadPart, uploads::part),
    (O::CompleteMultipartUpload, uploads::complete),
    (O::AbortMultipartUpload, uploads::abort),
    (O::ListParts, uploads::parts),
    (O::ListMultipartUploads, uploads::list),
];

/// What the URL of a request names.
const fn level(address: &Address) -> Level {
    match (&address.container, &address.blob) {
        (None, _) => Level::Service,
        (Some(_), None) => Level::Bucket,
        (Some(_), Some(_)) => Level::Object,
    }
}

/// Which operation a request asks for.
///
/// # Errors
/// As [`route`]; `InvalidQueryParameterValue` when the query cannot be decoded.
pub fn operation(head: &Parts, address: &Address) -> Result<S3Operation, Refusal> {
    let query = Query::parse_exact(head.uri.query())?;
    route(&head.method, level(address), |name| query.has(name))
}

/// Reads the operation of a request.
///
/// # Errors
/// The documented code of the first thing that is wrong with the head. `NotImplemented` for an
/// operation or a header that is not served.
pub fn parse(head: &Parts, address: &Address) -> Result<Parsed, Refusal> {
    let query = Query::parse_exact(head.uri.query())?;
    let operation = route(&head.method, level(address), |name| query.has(name))?;
    let request = Request { query: &query, headers: &head.headers, address };
    let served = SERVED.iter().find(|(served, _)| *served == operation);
    let (_, parser) = served.ok_or_else(|| unserved::operation(operation))?;
    owners::check(&head.headers, &address.account)?;
    unserved::check_headers(&head.headers)?;
    unserved::check_query(&request)?;
    parser(&request)
}
