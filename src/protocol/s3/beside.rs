//! The operations on tags, access control lists, object lock and settings of objects and buckets.
//! Part of the table in `parse.rs`.

use crate::protocol::s3::acl;
use crate::protocol::s3::cors;
use crate::protocol::s3::locks;
use crate::protocol::s3::request::Parser;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::s3::settings;
use crate::protocol::s3::tagging;
use crate::protocol::s3::versioning;

use S3Operation as O;

/// Operations, and what reads them.
pub(super) const SERVED: &[(S3Operation, Parser)] = &[
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
    (O::GetBucketVersioning, versioning::get),
    (O::PutBucketVersioning, versioning::put),
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
    (O::GetObjectLockConfiguration, locks::get_configuration),
    (O::PutObjectLockConfiguration, locks::put_configuration),
    (O::GetObjectRetention, locks::get_retention),
    (O::PutObjectRetention, locks::put_retention),
    (O::GetObjectLegalHold, locks::get_legal_hold),
    (O::PutObjectLegalHold, locks::put_legal_hold),
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
];
