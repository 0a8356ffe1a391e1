//! The one table of S3 operations: which request is which.
//!
//! Source: S3 API reference, "Actions".

use http::Method;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

/// What the URL of a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The account's buckets.
    Service,
    /// A bucket.
    Bucket,
    /// An object.
    Object,
}

/// A row: method, level, the query parameters that choose the operation, its name.
type Row = (&'static str, Level, &'static [&'static str], &'static str);

macro_rules! routes {
    ($($method:ident $level:ident [$($parameter:literal),*] $name:ident;)*) => {
        /// An S3 operation, by its name in the API reference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum S3Operation {
            $(
                #[doc = concat!("`", stringify!($method), "`.")]
                $name,
            )*
        }

        impl S3Operation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name in the API reference.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }

        /// The rows, those with more parameters before those with fewer.
        const ROUTES: &[(Row, S3Operation)] = &[
            $((
                (stringify!($method), Level::$level, &[$($parameter),*], stringify!($name)),
                S3Operation::$name,
            ),)*
        ];
    };
}

routes! {
    GET Service [] ListBuckets;

    GET Bucket ["accelerate"] GetBucketAccelerateConfiguration;
    GET Bucket ["acl"] GetBucketAcl;
    GET Bucket ["analytics", "id"] GetBucketAnalyticsConfiguration;
    GET Bucket ["analytics"] ListBucketAnalyticsConfigurations;
    GET Bucket ["cors"] GetBucketCors;
    GET Bucket ["encryption"] GetBucketEncryption;
    GET Bucket ["intelligent-tiering", "id"] GetBucketIntelligentTieringConfiguration;
    GET Bucket ["intelligent-tiering"] ListBucketIntelligentTieringConfigurations;
    GET Bucket ["inventory", "id"] GetBucketInventoryConfiguration;
    GET Bucket ["inventory"] ListBucketInventoryConfigurations;
    GET Bucket ["lifecycle"] GetBucketLifecycleConfiguration;
    GET Bucket ["location"] GetBucketLocation;
    GET Bucket ["logging"] GetBucketLogging;
    GET Bucket ["metrics", "id"] GetBucketMetricsConfiguration;
    GET Bucket ["metrics"] ListBucketMetricsConfigurations;
    GET Bucket ["notification"] GetBucketNotificationConfiguration;
    GET Bucket ["object-lock"] GetObjectLockConfiguration;
    GET Bucket ["ownershipControls"] GetBucketOwnershipControls;
    GET Bucket ["policy"] GetBucketPolicy;
    GET Bucket ["policyStatus"] GetBucketPolicyStatus;
    GET Bucket ["publicAccessBlock"] GetPublicAccessBlock;
    GET Bucket ["replication"] GetBucketReplication;
    GET Bucket ["requestPayment"] GetBucketRequestPayment;
    GET Bucket ["tagging"] GetBucketTagging;
    GET Bucket ["uploads"] ListMultipartUploads;
    GET Bucket ["versioning"] GetBucketVersioning;
    GET Bucket ["versions"] ListObjectVersions;
    GET Bucket ["website"] GetBucketWebsite;
    GET Bucket ["list-type"] ListObjectsV2;
    GET Bucket [] ListObjects;
    HEAD Bucket [] HeadBucket;

    PUT Bucket ["accelerate"] PutBucketAccelerateConfiguration;
    PUT Bucket ["acl"] PutBucketAcl;
    PUT Bucket ["analytics"] PutBucketAnalyticsConfiguration;
    PUT Bucket ["cors"] PutBucketCors;
    PUT Bucket ["encryption"] PutBucketEncryption;
    PUT Bucket ["intelligent-tiering"] PutBucketIntelligentTieringConfiguration;
    PUT Bucket ["inventory"] PutBucketInventoryConfiguration;
    PUT Bucket ["lifecycle"] PutBucketLifecycleConfiguration;
    PUT Bucket ["logging"] PutBucketLogging;
    PUT Bucket ["metrics"] PutBucketMetricsConfiguration;
    PUT Bucket ["notification"] PutBucketNotificationConfiguration;
    PUT Bucket ["object-lock"] PutObjectLockConfiguration;
    PUT Bucket ["ownershipControls"] PutBucketOwnershipControls;
    PUT Bucket ["policy"] PutBucketPolicy;
    PUT Bucket ["publicAccessBlock"] PutPublicAccessBlock;
    PUT Bucket ["replication"] PutBucketReplication;
    PUT Bucket ["requestPayment"] PutBucketRequestPayment;
    PUT Bucket ["tagging"] PutBucketTagging;
    PUT Bucket ["versioning"] PutBucketVersioning;
    PUT Bucket ["website"] PutBucketWebsite;
    PUT Bucket [] CreateBucket;

    DELETE Bucket ["analytics"] DeleteBucketAnalyticsConfiguration;
    DELETE Bucket ["cors"] DeleteBucketCors;
    DELETE Bucket ["encryption"] DeleteBucketEncryption;
    DELETE Bucket ["intelligent-tiering"] DeleteBucketIntelligentTieringConfiguration;
    DELETE Bucket ["inventory"] DeleteBucketInventoryConfiguration;
    DELETE Bucket ["lifecycle"] DeleteBucketLifecycle;
    DELETE Bucket ["metrics"] DeleteBucketMetricsConfiguration;
    DELETE Bucket ["ownershipControls"] DeleteBucketOwnershipControls;
    DELETE Bucket ["policy"] DeleteBucketPolicy;
    DELETE Bucket ["publicAccessBlock"] DeletePublicAccessBlock;
    DELETE Bucket ["replication"] DeleteBucketReplication;
    DELETE Bucket ["tagging"] DeleteBucketTagging;
    DELETE Bucket ["website"] DeleteBucketWebsite;
    DELETE Bucket [] DeleteBucket;

    POST Bucket ["delete"] DeleteObjects;
    POST Bucket [] PostObject;

    GET Object ["acl"] GetObjectAcl;
    GET Object ["attributes"] GetObjectAttributes;
    GET Object ["legal-hold"] GetObjectLegalHold;
    GET Object ["retention"] GetObjectRetention;
    GET Object ["tagging"] GetObjectTagging;
    GET Object ["torrent"] GetObjectTorrent;
    GET Object ["uploadId"] ListParts;
    GET Object [] GetObject;
    HEAD Object [] HeadObject;

    PUT Object ["acl"] PutObjectAcl;
    PUT Object ["legal-hold"] PutObjectLegalHold;
    PUT Object ["retention"] PutObjectRetention;
    PUT Object ["tagging"] PutObjectTagging;
    PUT Object ["partNumber", "uploadId"] UploadPart;
    PUT Object [] PutObject;

    DELETE Object ["tagging"] DeleteObjectTagging;
    DELETE Object ["uploadId"] AbortMultipartUpload;
    DELETE Object [] DeleteObject;

    POST Object ["uploads"] CreateMultipartUpload;
    POST Object ["uploadId"] CompleteMultipartUpload;
    POST Object ["restore"] RestoreObject;
    POST Object ["select"] SelectObjectContent;
}

/// Which operation a request asks for. `has` says whether the query has a parameter of that name.
/// An UploadPart or PutObject with `x-amz-copy-source` is a copy; the caller tells them apart.
///
/// # Errors
/// `UnsupportedHttpVerb` when the level has no such operation.
pub fn route(
    method: &Method,
    level: Level,
    has: impl Fn(&str) -> bool,
) -> Result<S3Operation, Refusal> {
    let fits = |row: &Row| {
        let (name, of, parameters, _) = row;
        *name == method.as_str() && *of == level && parameters.iter().all(|name| has(name))
    };
    let found = ROUTES.iter().find(|(row, _)| fits(row));
    found.map(|(_, operation)| *operation).ok_or_else(|| Reason::UnsupportedHttpVerb.into())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn of(method: &str, level: Level, query: &[&str]) -> Option<&'static str> {
        let method = method.parse().unwrap();
        route(&method, level, |name| query.contains(&name)).ok().map(S3Operation::name)
    }

    #[test]
    fn rows_with_more_parameters_come_first() {
        for (at, ((method, level, parameters, name), _)) in ROUTES.iter().enumerate() {
            for ((before, of, fewer, earlier), _) in &ROUTES[..at] {
                let hides = method == before
                    && level == of
                    && fewer.iter().all(|parameter| parameters.contains(parameter));
                assert!(!hides, "{earlier} hides {name}");
            }
        }
        let names: HashSet<&str> = S3Operation::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), ROUTES.len());
    }

    #[test]
    fn parameters_choose_the_operation() {
        use Level::{Bucket, Object, Service};
        for (method, level, query, name) in [
            ("GET", Service, &[][..], Some("ListBuckets")),
            ("GET", Bucket, &[], Some("ListObjects")),
            ("GET", Bucket, &["prefix", "delimiter"], Some("ListObjects")),
            ("GET", Bucket, &["list-type", "prefix"], Some("ListObjectsV2")),
            ("GET", Bucket, &["metrics"], Some("ListBucketMetricsConfigurations")),
            ("GET", Bucket, &["id", "metrics"], Some("GetBucketMetricsConfiguration")),
            ("PUT", Bucket, &[], Some("CreateBucket")),
            ("POST", Bucket, &["delete"], Some("DeleteObjects")),
            ("PUT", Object, &["uploadId", "partNumber"], Some("UploadPart")),
            ("PUT", Object, &["partNumber"], Some("PutObject")),
            ("GET", Object, &["partNumber"], Some("GetObject")),
            ("GET", Object, &["uploadId"], Some("ListParts")),
            ("POST", Object, &["uploads"], Some("CreateMultipartUpload")),
            ("POST", Object, &[], None),
            ("PUT", Service, &[], None),
            ("PATCH", Object, &[], None),
        ] {
            assert_eq!(of(method, level, query), name, "{method} {level:?} {query:?}");
        }
    }
}
