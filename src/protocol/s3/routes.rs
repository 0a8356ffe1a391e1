//! The table of S3 operations, which maps each request to its operation.
//!
//! Source: S3 API reference, "Actions".

use http::Method;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

/// The level of the resource that the URL of a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The account's buckets.
    Service,
    /// A bucket.
    Bucket,
    /// An object.
    Object,
}

/// A row: method, level, the query parameters that choose the operation, its name. A parameter that
/// begins with `x-amz-` is a header.
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

        /// The rows. Rows with more parameters come before rows with fewer.
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
    PUT Object ["x-amz-copy-source", "partNumber", "uploadId"] UploadPartCopy;
    PUT Object ["partNumber", "uploadId"] UploadPart;
    PUT Object ["x-amz-copy-source"] CopyObject;
    PUT Object [] PutObject;

    DELETE Object ["tagging"] DeleteObjectTagging;
    DELETE Object ["uploadId"] AbortMultipartUpload;
    DELETE Object [] DeleteObject;

    POST Object ["uploads"] CreateMultipartUpload;
    POST Object ["uploadId"] CompleteMultipartUpload;
    POST Object ["restore"] RestoreObject;
    POST Object ["select"] SelectObjectContent;
}

/// Finds the operation of a request. `has` says whether the query has a parameter of that name, or
/// the head a header that begins with `x-amz-`. Without a query (`has_query`) no parameter is
/// searched for.
///
/// A parameter that chooses another operation than the found one is refused: a `DELETE` of an
/// object's `?acl` must not delete the object.
///
/// # Errors
/// `UnsupportedHttpVerb` when the level has no such operation; `InvalidInput` for a part without
/// its number or upload.
pub fn route(
    method: &Method,
    level: Level,
    has_query: bool,
    has: impl Fn(&str) -> bool,
) -> Result<S3Operation, Refusal> {
    let fits = |row: &Row| {
        let (name, of, parameters, _) = row;
        *of == level && *name == method.as_str() && parameters.iter().all(|name| has(name))
    };
    let found = ROUTES.iter().find(|(row, _)| fits(row));
    let ((_, _, parameters, _), operation) = found.ok_or(Reason::UnsupportedHttpVerb)?;
    let puts_whole = matches!(operation, S3Operation::PutObject | S3Operation::CopyObject);
    if puts_whole && (has("partNumber") || has("uploadId")) {
        return Err(Refusal::new(Reason::InvalidInput)
            .message("A part is uploaded with both partNumber and uploadId."));
    }
    let reads_a_part = matches!(operation, S3Operation::GetObject | S3Operation::HeadObject);
    let is_meant = |name: &str| {
        parameters.contains(&name) || name == "id" || (reads_a_part && name == "partNumber")
    };
    if has_query && selectors().any(|name| has(name) && !is_meant(name)) {
        return Err(Reason::UnsupportedHttpVerb.into());
    }
    Ok(*operation)
}

/// The prefix of S3's own headers.
pub(super) const HEADERS: &str = "x-amz-";

/// Parameters that choose an operation, here or in later versions of S3.
fn selectors() -> impl Iterator<Item = &'static str> {
    const LATER: [&str; 5] =
        ["abac", "metadataConfiguration", "metadataTable", "renameObject", "session"];
    LATER
        .into_iter()
        .chain(ROUTES.iter().flat_map(|((_, _, parameters, _), _)| *parameters).copied())
        .filter(|name| !name.starts_with(HEADERS))
}

/// Each row as `api-spec/s3.yaml` has it: method, path, operation.
#[cfg(test)]
pub(super) fn published() -> impl Iterator<Item = (&'static str, String, S3Operation)> {
    ROUTES.iter().map(|((method, level, parameters, _), operation)| {
        let path = match level {
            Level::Service => "/",
            Level::Bucket => "/{bucket}",
            Level::Object => "/{bucket}/{key}",
        };
        let of = |is_header: bool| {
            let those = parameters.iter().filter(|name| name.starts_with(HEADERS) == is_header);
            those.copied().collect::<Vec<_>>().join("&")
        };
        let (query, header) = (of(false), of(true));
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let header = if header.is_empty() { header } else { format!("#{header}") };
        (*method, format!("{path}{query}{header}"), *operation)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn of(method: &str, level: Level, query: &[&str]) -> Option<&'static str> {
        let method = method.parse().unwrap();
        route(&method, level, !query.is_empty(), |name| query.contains(&name))
            .ok()
            .map(S3Operation::name)
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
            (
                "PUT",
                Object,
                &["uploadId", "partNumber", "x-amz-copy-source"],
                Some("UploadPartCopy"),
            ),
            ("PUT", Object, &["x-amz-copy-source"], Some("CopyObject")),
            ("GET", Object, &["x-amz-copy-source"], Some("GetObject")),
            ("PUT", Object, &["x-amz-copy-source", "uploadId"], None),
            ("PUT", Object, &["partNumber"], None),
            ("PUT", Object, &["uploadId"], None),
            ("HEAD", Object, &["partNumber", "versionId"], Some("HeadObject")),
            ("DELETE", Object, &["versionId"], Some("DeleteObject")),
            ("DELETE", Object, &["acl"], None),
            ("DELETE", Object, &["retention"], None),
            ("DELETE", Bucket, &["versioning"], None),
            ("DELETE", Bucket, &["metadataTable"], None),
            ("PUT", Object, &["restore"], None),
            ("PUT", Object, &["renameObject"], None),
            ("GET", Bucket, &["session"], None),
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
