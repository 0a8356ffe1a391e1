//! Error codes of S3 ("Error responses"): the code, status and text of each refusal. A refusal may
//! have a text of its own.

use crate::protocol::model::Reason;

/// How S3 answers a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The code, in the body.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The message when the refusal has none.
    pub message: &'static str,
}

macro_rules! error_table {
    ($($reason:ident => $code:literal, $status:literal, $message:literal;)*) => {
        /// The row of a reason.
        #[must_use]
        pub const fn error_row(reason: Reason) -> ErrorRow {
            match reason {
                $(Reason::$reason => ErrorRow { code: $code, status: $status, message: $message },)*
            }
        }
    };
}

error_table! {
    AuthenticationFailed => "SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided. Check your key and signing method.";
    AuthorizationFailure => "AccessDenied", 403, "Access Denied";
    AuthorizationPermissionMismatch => "AccessDenied", 403, "Access Denied";
    AuthorizationProtocolMismatch => "AccessDenied", 403, "Access Denied";
    AuthorizationResourceTypeMismatch => "AccessDenied", 403, "Access Denied";
    AuthorizationServiceMismatch => "AccessDenied", 403, "Access Denied";
    AuthorizationSourceIPMismatch => "AccessDenied", 403, "Access Denied";
    UnauthorizedBlobOverwrite => "AccessDenied", 403, "Access Denied";
    PublicAccessNotPermitted => "AccessDenied", 403, "Access Denied";
    InvalidAuthenticationInfo => "AuthorizationHeaderMalformed", 400, "The authorization header you provided is not valid.";
    NoAuthenticationInformation => "AccessDenied", 403, "Access Denied";
    InsufficientAccountPermissions => "AccessDenied", 403, "Access Denied";
    ResourceNotFound => "NoSuchKey", 404, "The specified key does not exist.";
    ContainerNotFound => "NoSuchBucket", 404, "The specified bucket does not exist.";
    BlobNotFound => "NoSuchKey", 404, "The specified key does not exist.";
    VersionNotFound => "NoSuchVersion", 404, "The specified version does not exist.";
    IllegalVersioning => "IllegalVersioningConfigurationException", 400, "The Versioning element must be specified";
    DeleteMarker => "MethodNotAllowed", 405, "The specified method is not allowed against this resource.";
    CurrentVersion => "AccessDenied", 403, "Access Denied";
    NotSoftlyDeleted => "InvalidRequest", 400, "Invalid Request";
    PermanentDeletionDisabled => "InvalidRequest", 400, "Invalid Request";
    ContainerNotEmpty => "BucketNotEmpty", 409, "The bucket you tried to delete is not empty.";
    ContainerAlreadyExists => "BucketAlreadyExists", 409, "The requested bucket name is not available. Select a different name and try again.";
    BlobAlreadyExists => "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    ConditionNotMet => "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    NothingToMatch => "NoSuchKey", 404, "The specified key does not exist.";
    NotModified => "NotModified", 304, "Not Modified";
    LeaseNotPresentWithBlobOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseNotPresentWithContainerOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseIdMissing => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseIdMismatchWithBlobOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseIdMismatchWithContainerOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseLost => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseNotPresentWithLeaseOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseIdMismatchWithLeaseOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseAlreadyPresent => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseIsBreakingAndCannotBeAcquired => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseIsBreakingAndCannotBeChanged => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    LeaseIsBrokenAndCannotBeRenewed => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    SnapshotsPresent => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    BlobImmutableDueToLegalHold => "AccessDenied", 403, "Access Denied because object protected by object lock.";
    BlobImmutableDueToPolicy => "AccessDenied", 403, "Access Denied because object protected by object lock.";
    NoObjectLock => "InvalidRequest", 400, "Bucket is missing Object Lock Configuration";
    RetentionInPast => "InvalidArgument", 400, "The retain until date must be in the future!";
    InvalidRetentionPeriod => "InvalidRetentionPeriod", 400, "The retention period must be a positive integer: at most 36,500 days or 100 years.";
    ProtectionNotFound => "NoSuchObjectLockConfiguration", 404, "The specified object does not have a ObjectLock configuration";
    ObjectLocked => "InvalidBucketState", 409, "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.";
    NotVersioned => "InvalidBucketState", 409, "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration";
    BlobArchived => "InvalidObjectState", 403, "The operation is not valid for the object's storage class. Restore the object first.";
    BlobBeingRehydrated => "InvalidObjectState", 403, "The operation is not valid for the object's storage class. Restore the object first.";
    RehydrationInProgress => "RestoreAlreadyInProgress", 409, "Object restore is already in progress";
    BlobNotArchived => "InvalidObjectState", 403, "Restore is not allowed for the object's current storage class";
    BlobAccessTierNotSupportedForAccountType => "InvalidStorageClass", 400, "The storage class you specified is not valid.";
    BlobTierInadequateForContentLength => "InvalidStorageClass", 400, "The storage class you specified is not valid.";
    CannotChangeToLowerTier => "InvalidStorageClass", 400, "The storage class you specified is not valid.";
    ContentLengthLargerThanTierLimit => "InvalidStorageClass", 400, "The storage class you specified is not valid.";
    UnsatisfiableCondition => "InvalidRequest", 400, "The request is not valid.";
    MultipleConditionHeadersNotSupported => "InvalidRequest", 400, "The request is not valid.";
    ConditionHeadersNotSupported => "InvalidRequest", 400, "The request is not valid.";
    InvalidQueryParameterValue => "InvalidArgument", 400, "An argument of the request is not valid.";
    OutOfRangeQueryParameterValue => "InvalidArgument", 400, "An argument of the request is not valid.";
    MissingRequiredQueryParameter => "InvalidRequest", 400, "The request is not valid.";
    AccountRequiresHttps => "InvalidRequest", 400, "This address serves https only. Use https.";
    InvalidHeaderValue => "InvalidArgument", 400, "An argument of the request is not valid.";
    MissingRequiredHeader => "InvalidRequest", 400, "The request is not valid.";
    UnsupportedHeader => "NotImplemented", 501, "A header or parameter you provided implies functionality that is not implemented.";
    InvalidInput => "InvalidRequest", 400, "The request is not valid.";
    OutOfRangeInput => "KeyTooLongError", 400, "Your key is too long.";
    InvalidUri => "InvalidURI", 400, "The specified URI could not be parsed.";
    InvalidResourceName => "InvalidBucketName", 400, "The specified bucket is not valid.";
    InvalidMetadata => "InvalidArgument", 400, "An argument of the request is not valid.";
    EmptyMetadataKey => "InvalidArgument", 400, "An argument of the request is not valid.";
    MetadataTooLarge => "MetadataTooLarge", 400, "Your metadata headers exceed the maximum allowed metadata size.";
    InvalidTag => "InvalidTag", 400, "The tag provided was not a valid tag.";
    EmptyTagName => "InvalidTag", 400, "The tag provided was not a valid tag.";
    DuplicateTagNames => "InvalidTag", 400, "Cannot provide multiple tags with the same key.";
    TagsTooLarge => "BadRequest", 400, "Object tags cannot be greater than 10";
    InvalidMd5 => "InvalidDigest", 400, "The Content-MD5 you specified is not valid.";
    Md5Mismatch => "BadDigest", 400, "The Content-MD5 or checksum value that you specified did not match what the server received.";
    Crc64Mismatch => "BadDigest", 400, "The Content-MD5 or checksum value that you specified did not match what the server received.";
    ChecksumMismatch => "BadDigest", 400, "The Content-MD5 or checksum value that you specified did not match what the server received.";
    BothCrc64AndMd5HeaderPresent => "InvalidRequest", 400, "The request is not valid.";
    CorsPreflightFailure => "AccessForbidden", 403, "CORSResponse: This CORS request is not allowed.";
    SettingNotFound => "NoSuchConfiguration", 404, "The specified configuration does not exist.";
    IncompletePreflight => "BadRequest", 400, "Insufficient information. Origin and Access-Control-Request-Method headers needed.";
    BlobNotOpen => "AccessDenied", 403, "Access Denied";
    MissingGrants => "MissingSecurityHeader", 400, "Your request was missing a required header.";
    UnexpectedBody => "UnexpectedContent", 400, "This request does not support content.";
    InvalidBucketOwner => "InvalidBucketOwnerAWSAccountID", 400, "The value of the expected bucket owner parameter must be an AWS account ID.";
    ExceedsMaxBatchRequestCount => "MalformedXML", 400, "The XML you provided was not well formed or did not validate against our published schema.";
    InvalidDocument => "MalformedXML", 400, "The XML you provided was not well formed or did not validate against our published schema.";
    InvalidElementValue => "MalformedXML", 400, "The XML you provided was not well formed or did not validate against our published schema.";
    MissingElement => "MalformedXML", 400, "The XML you provided was not well formed or did not validate against our published schema.";
    InvalidLocation => "InvalidLocationConstraint", 400, "The specified location-constraint is not valid";
    UnsupportedElement => "MalformedXML", 400, "The XML you provided was not well formed or did not validate against our published schema.";
    InvalidBlobOrBlock => "InvalidPart", 400, "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified entity tag might not have matched the part's entity tag.";
    InvalidBlockId => "InvalidPart", 400, "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified entity tag might not have matched the part's entity tag.";
    InvalidBlockList => "InvalidPart", 400, "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified entity tag might not have matched the part's entity tag.";
    BlockListTooLong => "InvalidRequest", 400, "The request is not valid.";
    BlockCountExceedsLimit => "InvalidRequest", 400, "The request is not valid.";
    UploadNotFound => "NoSuchUpload", 404, "The specified upload does not exist. The upload ID might be invalid, or the multipart upload might have been aborted or completed.";
    PartOrder => "InvalidPartOrder", 400, "The list of parts was not in ascending order. The parts list must be specified in order by part number.";
    PartNotFound => "InvalidPartNumber", 416, "The requested partnumber is not satisfiable";
    PartTooSmall => "EntityTooSmall", 400, "Your proposed upload is smaller than the minimum allowed size.";
    UploadMismatch => "InvalidRequest", 400, "The request is not valid.";
    CannotVerifyCopySource => "NoSuchKey", 404, "The specified key does not exist.";
    SourceConditionNotMet => "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    TargetConditionNotMet => "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    PendingCopyOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    NoPendingCopyOperation => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    CopyIdMismatch => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    IncrementalCopyBlobMismatch => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    IncrementalCopyOfEarlierVersionSnapshotNotAllowed => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    IncrementalCopySourceMustBeSnapshot => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    OperationNotAllowedOnIncrementalCopyBlob => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    InvalidSourceBlobType => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    InvalidSourceBlobUrl => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    InvalidBlobType => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    BlobIsSealed => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    SequenceNumberIncrementTooLarge => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    SequenceNumberConditionNotMet => "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    InvalidPageRange => "InvalidRange", 416, "The requested range is not satisfiable";
    PreviousSnapshotCannotBeNewer => "InvalidRequest", 400, "The request is not valid.";
    PreviousSnapshotNotFound => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    PreviousSnapshotOperationNotSupported => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    BlobOverwritten => "OperationAborted", 409, "A lease, a snapshot, a copy or the kind of the object stands in the way of this operation. Try again when it is gone.";
    AppendPositionConditionNotMet => "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    MaxBlobSizeConditionNotMet => "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold.";
    BlobUsesCustomerSpecifiedEncryption => "InvalidRequest", 400, "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.";
    BlobDoesNotUseCustomerSpecifiedEncryption => "InvalidRequest", 400, "The encryption parameters are not applicable to this object.";
    BlobCustomerSpecifiedEncryptionMismatch => "InvalidRequest", 400, "The encryption key you provided is not that of the object.";
    UnknownEncryptionAlgorithm => "InvalidEncryptionAlgorithmError", 400, "The Encryption request you specified is not valid. Supported value: AES256.";
    RequestForbiddenByContainerEncryptionPolicy => "AccessDenied", 403, "Access Denied";
    InvalidRange => "InvalidRange", 416, "The requested range is not satisfiable";
    MissingContentLengthHeader => "MissingContentLength", 411, "You must provide the Content-Length HTTP header.";
    RequestBodyTooLarge => "EntityTooLarge", 400, "Your proposed upload exceeds the maximum allowed object size.";
    RequestUrlFailedToParse => "InvalidURI", 400, "The specified URI could not be parsed.";
    InvalidHttpVerb => "MethodNotAllowed", 405, "The specified method is not allowed against this resource.";
    UnsupportedHttpVerb => "MethodNotAllowed", 405, "The specified method is not allowed against this resource.";
    UnsupportedQueryParameter => "NotImplemented", 501, "A header or parameter you provided implies functionality that is not implemented.";
    RequestTimeout => "RequestTimeout", 400, "Your socket connection to the server was not read from or written to within the timeout period.";
    WebContentNotFound => "NoSuchKey", 404, "The specified key does not exist.";
    HierarchicalNamespaceNotEnabled => "InvalidRequest", 400, "The request is not valid.";
    OperationTimedOut => "SlowDown", 503, "Reduce your request rate.";
    InternalError => "InternalError", 500, "We encountered an internal error. Please try again.";
    ServerBusy => "SlowDown", 503, "Reduce your request rate.";
    InsufficientStorage => "InsufficientStorage", 507, "The disks are full. Free space or add a data directory; reads and deletes go on.";
    NotImplemented => "NotImplemented", 501, "A header or parameter you provided implies functionality that is not implemented.";
    IncompleteBody => "IncompleteBody", 400, "You did not provide the number of bytes specified by the Content-Length HTTP header.";
    UnknownAccessKey => "InvalidAccessKeyId", 403, "The AWS access key ID you provided does not exist in our records.";
    InvalidSessionToken => "InvalidToken", 400, "The provided token is malformed or otherwise invalid.";
    ExpiredSessionToken => "ExpiredToken", 400, "The provided token has expired.";
    RequestTimeTooSkewed => "RequestTimeTooSkewed", 403, "The difference between the request time and the server's time is too large.";
    MalformedQueryAuthentication => "AuthorizationQueryParametersError", 400, "The query authentication parameters are not valid.";
    PayloadHashMismatch => "XAmzContentSHA256Mismatch", 400, "The provided 'x-amz-content-sha256' header does not match what was computed.";
    InvalidStorageClass => "InvalidStorageClass", 400, "The storage class you specified is not valid.";
    InvalidPolicy => "InvalidPolicyDocument", 400, "The policy of the form is not valid.";
    MalformedForm => "MalformedPOSTRequest", 400, "The body of your POST request is not well-formed multipart/form-data.";
    FormTooLong => "MaxPostPreDataLengthExceeded", 400, "Your POST request fields preceding the upload file were too large.";
}

#[cfg(test)]
mod tests;
