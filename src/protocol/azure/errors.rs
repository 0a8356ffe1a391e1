//! Error codes of Blob REST ("Status and error codes", "Blob service error codes"): the code,
//! status and text of each refusal.

use crate::protocol::model::Detail;
use crate::protocol::model::Hint;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::CopyFailure;

/// How Blob REST answers a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The code, in header and body.
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
    AuthenticationFailed => "AuthenticationFailed", 403, "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    AuthorizationFailure => "AuthorizationFailure", 403, "This request is not authorized to perform this operation.";
    AuthorizationPermissionMismatch => "AuthorizationPermissionMismatch", 403, "This request is not authorized to perform this operation using this permission.";
    AuthorizationProtocolMismatch => "AuthorizationProtocolMismatch", 403, "This request is not authorized to perform this operation using this protocol.";
    AuthorizationResourceTypeMismatch => "AuthorizationResourceTypeMismatch", 403, "This request is not authorized to perform this operation using this resource type.";
    AuthorizationServiceMismatch => "AuthorizationServiceMismatch", 403, "This request is not authorized to perform this operation using this service.";
    AuthorizationSourceIPMismatch => "AuthorizationSourceIPMismatch", 403, "This request is not authorized to perform this operation using this source IP.";
    UnauthorizedBlobOverwrite => "UnauthorizedBlobOverwrite", 403, "This request is not authorized to perform blob overwrites.";
    PublicAccessNotPermitted => "PublicAccessNotPermitted", 409, "Public access is not permitted on this storage account.";
    InvalidAuthenticationInfo => "InvalidAuthenticationInfo", 400, "Authentication information is not given in the correct format. Check the value of Authorization header.";
    NoAuthenticationInformation => "NoAuthenticationInformation", 401, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    InsufficientAccountPermissions => "InsufficientAccountPermissions", 403, "Write operations to the secondary location are not allowed.";
    ResourceNotFound => "ResourceNotFound", 404, "The specified resource does not exist.";
    ContainerNotFound => "ContainerNotFound", 404, "The specified container does not exist.";
    BlobNotFound => "BlobNotFound", 404, "The specified blob does not exist.";
    VersionNotFound => "BlobNotFound", 404, "The specified blob does not exist.";
    IllegalVersioning => "InvalidXmlDocument", 400, "XML specified is not syntactically valid.";
    DeleteMarker => "BlobNotFound", 404, "The specified blob does not exist.";
    CurrentVersion => "OperationNotAllowedOnRootBlob", 403, "The operation is not allowed on the current version of the blob.";
    NotSoftlyDeleted => "BlobSnapshotNotSoftDeleted", 409, "The snapshot or version was not softly deleted. Delete it first.";
    PermanentDeletionDisabled => "FeatureNotSupportedForAccount", 409, "This account does not allow permanent deletion. Set AllowPermanentDelete of its DeleteRetentionPolicy.";
    ContainerNotEmpty => "ContainerProtectedFromDeletion", 409, "The container is not empty, and its blobs may be locked. Delete its blobs and snapshots first.";
    ContainerAlreadyExists => "ContainerAlreadyExists", 409, "The specified container already exists.";
    BlobAlreadyExists => "BlobAlreadyExists", 409, "The specified blob already exists.";
    ConditionNotMet => "ConditionNotMet", 412, "The condition specified using HTTP conditional header(s) is not met.";
    NothingToMatch => "ConditionNotMet", 412, "The condition specified using HTTP conditional header(s) is not met.";
    NotModified => "NotModified", 304, "The resource has not changed.";
    LeaseNotPresentWithBlobOperation => "LeaseNotPresentWithBlobOperation", 412, "There is currently no lease on the blob.";
    LeaseNotPresentWithContainerOperation => "LeaseNotPresentWithContainerOperation", 412, "There is currently no lease on the container.";
    LeaseIdMissing => "LeaseIdMissing", 412, "There is currently a lease on the resource and no lease ID was specified in the request.";
    LeaseIdMismatchWithBlobOperation => "LeaseIdMismatchWithBlobOperation", 412, "The lease ID specified did not match the lease ID for the blob.";
    LeaseIdMismatchWithContainerOperation => "LeaseIdMismatchWithContainerOperation", 412, "The lease ID specified did not match the lease ID for the container.";
    LeaseLost => "LeaseLost", 412, "A lease ID was specified, but the lease has expired or was broken.";
    LeaseNotPresentWithLeaseOperation => "LeaseNotPresentWithLeaseOperation", 409, "There is currently no lease to act on.";
    LeaseIdMismatchWithLeaseOperation => "LeaseIdMismatchWithLeaseOperation", 409, "The lease ID specified did not match the current lease ID.";
    LeaseAlreadyPresent => "LeaseAlreadyPresent", 409, "There is already a lease present.";
    LeaseIsBreakingAndCannotBeAcquired => "LeaseIsBreakingAndCannotBeAcquired", 409, "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.";
    LeaseIsBreakingAndCannotBeChanged => "LeaseIsBreakingAndCannotBeChanged", 409, "The lease ID matched, but the lease is currently in breaking state and cannot be changed.";
    LeaseIsBrokenAndCannotBeRenewed => "LeaseIsBrokenAndCannotBeRenewed", 409, "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.";
    SnapshotsPresent => "SnapshotsPresent", 409, "This operation is not permitted because the blob has snapshots.";
    BlobImmutableDueToLegalHold => "BlobImmutableDueToLegalHold", 409, "This operation is not permitted as the blob is immutable due to one or more legal holds.";
    BlobImmutableDueToPolicy => "BlobImmutableDueToPolicy", 409, "This operation is not permitted as the blob is immutable due to a policy.";
    NoObjectLock => "FeatureNotSupportedForAccount", 409, "Immutable storage with versioning is not enabled for this container. Create the container after it was enabled for the account.";
    RetentionInPast => "InvalidHeaderValue", 400, "The value for one of the HTTP headers is not in the correct format.";
    InvalidRetentionPeriod => "InvalidXmlNodeValue", 400, "The value for one of the XML nodes is not in the correct format.";
    ProtectionNotFound => "ResourceNotFound", 404, "The specified resource does not exist.";
    ObjectLocked => "ContainerProtectedFromDeletion", 409, "The container keeps versions, because its blobs may be locked.";
    NotVersioned => "FeatureNotSupportedForAccount", 409, "Immutable storage needs versions, and they are not kept. Enable versioning first.";
    BlobArchived => "BlobArchived", 409, "This operation is not permitted on an archived blob.";
    BlobBeingRehydrated => "BlobBeingRehydrated", 409, "This operation is not permitted because the blob is being rehydrated.";
    RehydrationInProgress => "BlobBeingRehydrated", 409, "This operation is not permitted because the blob is being rehydrated.";
    BlobNotArchived => "InvalidInput", 400, "One of the request inputs is not valid.";
    BlobAccessTierNotSupportedForAccountType => "BlobAccessTierNotSupportedForAccountType", 409, "The access tier is not supported for this account type.";
    BlobTierInadequateForContentLength => "BlobTierInadequateForContentLength", 409, "The specified blob tier size limit cannot be less than content length.";
    CannotChangeToLowerTier => "CannotChangeToLowerTier", 409, "A higher blob tier has already been explicitly set.";
    ContentLengthLargerThanTierLimit => "ContentLengthLargerThanTierLimit", 409, "The blob's content length cannot exceed its tier limit.";
    UnsatisfiableCondition => "UnsatisfiableCondition", 400, "The request includes an unsatisfiable condition for this operation.";
    MultipleConditionHeadersNotSupported => "MultipleConditionHeadersNotSupported", 400, "Multiple condition headers are not supported.";
    ConditionHeadersNotSupported => "ConditionHeadersNotSupported", 400, "Condition headers are not supported.";
    InvalidQueryParameterValue => "InvalidQueryParameterValue", 400, "Value for one of the query parameters specified in the request URI is invalid.";
    OutOfRangeQueryParameterValue => "OutOfRangeQueryParameterValue", 400, "One of the query parameters specified in the request URI is outside the permissible range.";
    MissingRequiredQueryParameter => "MissingRequiredQueryParameter", 400, "A query parameter that's mandatory for this request is not specified.";
    AccountRequiresHttps => "AccountRequiresHttps", 400, "The account being accessed does not support http.";
    InvalidHeaderValue => "InvalidHeaderValue", 400, "The value for one of the HTTP headers is not in the correct format.";
    MissingRequiredHeader => "MissingRequiredHeader", 400, "An HTTP header that's mandatory for this request is not specified.";
    UnsupportedHeader => "UnsupportedHeader", 400, "One of the HTTP headers specified in the request is not supported.";
    InvalidInput => "InvalidInput", 400, "One of the request inputs is not valid.";
    OutOfRangeInput => "OutOfRangeInput", 400, "One of the request inputs is out of range.";
    InvalidUri => "InvalidUri", 400, "The requested URI does not represent any resource on the server.";
    InvalidResourceName => "InvalidResourceName", 400, "The specified resource name contains invalid characters.";
    InvalidMetadata => "InvalidMetadata", 400, "The metadata specified is invalid. It has characters that are not permitted.";
    EmptyMetadataKey => "EmptyMetadataKey", 400, "The key for one of the metadata key-value pairs is empty.";
    MetadataTooLarge => "MetadataTooLarge", 400, "The size of the specified metadata exceeds the maximum size permitted.";
    InvalidTag => "InvalidTag", 400, "The tags specified are invalid. They have characters that are not permitted or are too long.";
    EmptyTagName => "EmptyTagName", 400, "The name of one of the tag key-value pairs is empty.";
    DuplicateTagNames => "DuplicateTagNames", 400, "The tags specified contain duplicate names.";
    TagsTooLarge => "TagsTooLarge", 400, "The tags specified exceed the maximum permissible limit.";
    InvalidMd5 => "InvalidMd5", 400, "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded.";
    Md5Mismatch => "Md5Mismatch", 400, "The MD5 value specified in the request did not match with the MD5 value calculated by the server.";
    Crc64Mismatch => "Crc64Mismatch", 400, "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.";
    ChecksumMismatch => "InvalidInput", 400, "One of the request inputs is not valid.";
    BothCrc64AndMd5HeaderPresent => "BothCrc64AndMd5HeaderPresent", 400, "Both x-ms-content-crc64 header and Content-MD5 header are present.";
    CorsPreflightFailure => "CorsPreflightFailure", 403, "CORS not enabled or no matching rule found for this request.";
    SettingNotFound => "ResourceNotFound", 404, "The specified resource does not exist.";
    IncompletePreflight => "MissingRequiredHeader", 400, "An HTTP header that's mandatory for this request is not specified.";
    BlobNotOpen => "NoAuthenticationInformation", 401, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    MissingGrants => "MissingRequiredHeader", 400, "An HTTP header that's mandatory for this request is not specified.";
    UnexpectedBody => "InvalidInput", 400, "One of the request inputs is not valid.";
    InvalidBucketOwner => "InvalidHeaderValue", 400, "The value for one of the HTTP headers is not in the correct format.";
    ExceedsMaxBatchRequestCount => "ExceedsMaxBatchRequestCount", 400, "The batch operation exceeds maximum number of allowed subrequests.";
    InvalidDocument => "InvalidXmlDocument", 400, "XML specified is not syntactically valid.";
    InvalidElementValue => "InvalidXmlNodeValue", 400, "The value for one of the XML nodes is not in the correct format.";
    MissingElement => "MissingRequiredXmlNode", 400, "A required XML node is not specified in the request body.";
    InvalidLocation => "InvalidXmlNodeValue", 400, "The value for one of the XML nodes is not in the correct format.";
    UnsupportedElement => "UnsupportedXmlNode", 400, "One of the XML nodes specified in the request body is not supported.";
    InvalidBlobOrBlock => "InvalidBlobOrBlock", 400, "The specified blob or block content is invalid.";
    InvalidBlockId => "InvalidBlockId", 400, "The specified block ID is invalid. The block ID must be Base64-encoded.";
    InvalidBlockList => "InvalidBlockList", 400, "The specified block list is invalid.";
    BlockListTooLong => "BlockListTooLong", 400, "The block list may not contain more than 50,000 blocks.";
    BlockCountExceedsLimit => "BlockCountExceedsLimit", 409, "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.";
    UploadNotFound => "ResourceNotFound", 404, "The specified upload does not exist, or it has ended.";
    PartOrder => "InvalidBlockList", 400, "The parts are not in the order of their numbers.";
    PartNotFound => "InvalidRange", 416, "The blob has no part with the requested number.";
    PartTooSmall => "InvalidBlockList", 400, "A part that is not the last one is too small.";
    UploadMismatch => "InvalidInput", 400, "The length or the kind of checksum differs from that of the upload.";
    CannotVerifyCopySource => "CannotVerifyCopySource", 404, "Could not verify the copy source.";
    SourceConditionNotMet => "SourceConditionNotMet", 412, "The source condition specified using HTTP conditional header(s) is not met.";
    TargetConditionNotMet => "TargetConditionNotMet", 412, "The target condition specified using HTTP conditional header(s) is not met.";
    PendingCopyOperation => "PendingCopyOperation", 409, "There is currently a pending copy operation.";
    NoPendingCopyOperation => "NoPendingCopyOperation", 409, "There is currently no pending copy operation.";
    CopyIdMismatch => "CopyIdMismatch", 409, "The specified copy ID did not match the copy ID for the pending copy operation.";
    IncrementalCopyBlobMismatch => "IncrementalCopyBlobMismatch", 409, "The specified source blob is different than the copy source of the existing incremental copy blob.";
    IncrementalCopyOfEarlierVersionSnapshotNotAllowed => "IncrementalCopyOfEarlierVersionSnapshotNotAllowed", 409, "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob.";
    IncrementalCopySourceMustBeSnapshot => "IncrementalCopySourceMustBeSnapshot", 409, "The source for incremental copy request must be a snapshot.";
    OperationNotAllowedOnIncrementalCopyBlob => "OperationNotAllowedOnIncrementalCopyBlob", 409, "The specified operation is not allowed on an incremental copy blob.";
    InvalidSourceBlobType => "InvalidSourceBlobType", 409, "The copy source blob type is invalid for this operation.";
    InvalidSourceBlobUrl => "InvalidSourceBlobUrl", 409, "The source URL for incremental copy request must be valid Azure Storage blob URL.";
    InvalidBlobType => "InvalidBlobType", 409, "The blob type is invalid for this operation.";
    BlobIsSealed => "BlobIsSealed", 409, "The blob is sealed and its contents cannot be modified.";
    SequenceNumberIncrementTooLarge => "SequenceNumberIncrementTooLarge", 409, "The sequence number increment cannot be performed because it would result in overflow of the sequence number.";
    SequenceNumberConditionNotMet => "SequenceNumberConditionNotMet", 412, "The sequence number condition specified was not met.";
    InvalidPageRange => "InvalidPageRange", 416, "The page range specified is invalid.";
    PreviousSnapshotCannotBeNewer => "PreviousSnapshotCannotBeNewer", 400, "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.";
    PreviousSnapshotNotFound => "PreviousSnapshotNotFound", 409, "The previous snapshot is not found.";
    PreviousSnapshotOperationNotSupported => "PreviousSnapshotOperationNotSupported", 409, "Differential Get Page Ranges is not supported on the previous snapshot.";
    BlobOverwritten => "BlobOverwritten", 409, "The blob has been recreated since the previous snapshot was taken.";
    AppendPositionConditionNotMet => "AppendPositionConditionNotMet", 412, "The append position condition specified was not met.";
    MaxBlobSizeConditionNotMet => "MaxBlobSizeConditionNotMet", 412, "The max blob size condition specified was not met.";
    BlobUsesCustomerSpecifiedEncryption => "BlobUsesCustomerSpecifiedEncryption", 409, "The blob is encrypted with customer specified encryption, but it was not provided in the request.";
    BlobDoesNotUseCustomerSpecifiedEncryption => "BlobDoesNotUseCustomerSpecifiedEncryption", 409, "The blob is not encrypted with customer specified encryption, but one was provided in the request.";
    BlobCustomerSpecifiedEncryptionMismatch => "BlobCustomerSpecifiedEncryptionMismatch", 409, "The given customer specified encryption does not match the encryption used to encrypt the blob.";
    UnknownEncryptionAlgorithm => "InvalidHeaderValue", 400, "The value for one of the HTTP headers is not in the correct format.";
    RequestForbiddenByContainerEncryptionPolicy => "RequestForbiddenByContainerEncryptionPolicy", 403, "The request is forbidden by the container encryption policy.";
    InvalidRange => "InvalidRange", 416, "The range specified is invalid for the current size of the resource.";
    MissingContentLengthHeader => "MissingContentLengthHeader", 411, "The Content-Length header was not specified.";
    RequestBodyTooLarge => "RequestBodyTooLarge", 413, "The request body is too large and exceeds the maximum permissible limit.";
    RequestUrlFailedToParse => "RequestUrlFailedToParse", 400, "The URL in the request could not be parsed.";
    InvalidHttpVerb => "InvalidHttpVerb", 400, "The HTTP verb specified is invalid - it is not recognized by the server.";
    UnsupportedHttpVerb => "UnsupportedHttpVerb", 405, "The resource doesn't support the specified HTTP verb.";
    UnsupportedQueryParameter => "UnsupportedQueryParameter", 400, "One of the query parameters specified in the request URI is not supported.";
    RequestTimeout => "RequestTimeout", 408, "The client sent its body too slowly, or nothing of it for too long. Send the body without pauses.";
    WebContentNotFound => "WebContentNotFound", 404, "The requested content does not exist.";
    HierarchicalNamespaceNotEnabled => "HierarchicalNamespaceNotEnabled", 400, "The account has no hierarchical namespace.";
    OperationTimedOut => "OperationTimedOut", 500, "The operation could not be completed within the permitted time.";
    InternalError => "InternalError", 500, "The server encountered an internal error. Please retry the request.";
    ServerBusy => "ServerBusy", 503, "The server is busy. Retry the request after the time in Retry-After.";
    InsufficientStorage => "InsufficientStorage", 507, "The disks are full. Free space or add a data directory; reads and deletes go on.";
    NotImplemented => "NotImplemented", 501, "Blockyard does not serve this operation.";
    IncompleteBody => "InvalidInput", 400, "One of the request inputs is not valid.";
    UnknownAccessKey => "AuthenticationFailed", 403, "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    InvalidSessionToken => "AuthenticationFailed", 403, "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    ExpiredSessionToken => "AuthenticationFailed", 403, "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    RequestTimeTooSkewed => "AuthenticationFailed", 403, "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    MalformedQueryAuthentication => "AuthenticationFailed", 403, "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    PayloadHashMismatch => "InvalidInput", 400, "One of the request inputs is not valid.";
    InvalidStorageClass => "InvalidInput", 400, "One of the request inputs is not valid.";
    InvalidPolicy => "InvalidInput", 400, "One of the request inputs is not valid.";
    MalformedForm => "InvalidInput", 400, "One of the request inputs is not valid.";
    FormTooLong => "InvalidInput", 400, "One of the request inputs is not valid.";
}

/// The status of a refusal: that of a refused copy source, if the refusal has one.
#[must_use]
pub fn status(refusal: &Refusal) -> u16 {
    let reason = refusal.source.as_ref().map_or(refusal.reason, |source| source.reason);
    let status = refusal.source.as_ref().map_or(refusal.status, |source| source.status);
    status.unwrap_or(error_row(reason).status)
}

const LONG_FOR_CHECKSUM: &str = "A checksum can be asked for ranges of at most 4 MiB.";

/// How Blob REST words a hint, and the header that it is about.
const fn words(hint: Hint) -> (&'static str, Option<&'static str>) {
    match hint {
        Hint::OtherScope => (
            "The signature writes under the encryption scope in ses; send no other.",
            Some("x-ms-encryption-scope"),
        ),
        Hint::SourceTooLongToWait => {
            ("A copy that is waited for takes at most 256 MiB; leave x-ms-requires-sync out.", None)
        }
        Hint::SourceOfPart => ("Could not verify the copy source within the specified time.", None),
        Hint::LongForMd5 => (LONG_FOR_CHECKSUM, Some("x-ms-range-get-content-md5")),
        Hint::LongForCrc64 => (LONG_FOR_CHECKSUM, Some("x-ms-range-get-content-crc64")),
    }
}

/// The message of a refusal: its own, that of its hint, or the one that its row has; of a refused
/// copy source that of the source.
#[must_use]
pub fn message(refusal: &Refusal) -> &str {
    let hint = refusal.hint.map(|hint| words(hint).0);
    match refusal.hint {
        // The answer of the source is a detail.
        Some(Hint::SourceOfPart) => words(Hint::SourceOfPart).0,
        Some(
            Hint::OtherScope | Hint::SourceTooLongToWait | Hint::LongForMd5 | Hint::LongForCrc64,
        )
        | None => refusal.message.as_deref().or(hint).unwrap_or_else(|| row_message(refusal)),
    }
}

/// The message that the row of a refusal has, or that of its source.
fn row_message(refusal: &Refusal) -> &'static str {
    let reason = refusal.source.as_ref().map_or(refusal.reason, |source| source.reason);
    error_row(reason).message
}

/// A refusal in one line, as `x-ms-copy-status-description` has it: status, code and message.
fn one_line(refusal: &Refusal) -> String {
    format!("{} {} \"{}\"", status(refusal), error_row(refusal.reason).code, message(refusal))
}

/// Why a copy failed, as `x-ms-copy-status-description` has it. Earlier releases kept that line.
pub(super) fn copy_failure(failure: &CopyFailure) -> String {
    match failure {
        CopyFailure::Refused(refusal) => one_line(refusal),
        CopyFailure::Line(line) => line.clone(),
    }
}

/// Where Blob REST shows a detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An element of the body.
    Element(&'static str),
    /// A header.
    Header(&'static str),
    /// An element of the body and a header.
    Both(&'static str, &'static str),
    /// Nowhere: other dialects show it.
    Nowhere,
}

/// Where Blob REST shows a detail.
pub(super) const fn place(detail: Detail) -> Place {
    match detail {
        Detail::AuthenticationFailure => Place::Element("AuthenticationErrorDetail"),
        Detail::SourceStatus => Place::Both("CopySourceStatusCode", "x-ms-copy-source-status-code"),
        Detail::SourceCode => Place::Both("CopySourceErrorCode", "x-ms-copy-source-error-code"),
        Detail::SourceMessage => Place::Element("CopySourceErrorMessage"),
        Detail::HeaderName => Place::Element("HeaderName"),
        Detail::HeaderValue => Place::Element("HeaderValue"),
        Detail::Limit => Place::Element("MaxLimit"),
        Detail::Maximum => Place::Element("MaximumAllowed"),
        Detail::Minimum => Place::Element("MinimumAllowed"),
        Detail::ParameterName => Place::Element("QueryParameterName"),
        Detail::ParameterValue => Place::Element("QueryParameterValue"),
        Detail::Explanation => Place::Element("Reason"),
        Detail::ComputedCrc64 => Place::Element("ServerCalculatedCrc"),
        Detail::ClaimedCrc64 => Place::Element("UserSpecifiedCrc"),
        Detail::ComputedMd5 => Place::Element("ServerCalculatedMd5"),
        Detail::ClaimedMd5 => Place::Element("UserSpecifiedMd5"),
        Detail::ElementName => Place::Element("XmlNodeName"),
        Detail::ElementValue => Place::Element("XmlNodeValue"),
        Detail::SatisfiableRange => Place::Header("content-range"),
        Detail::RetryAfter => Place::Header("retry-after"),
        Detail::Challenge => Place::Header("www-authenticate"),
        Detail::StringToSign => Place::Element("StringToSign"),
        Detail::CanonicalRequest => Place::Element("CanonicalRequest"),
        Detail::AccessKeyId => Place::Element("AccessKeyId"),
        Detail::ContentEtag | Detail::StorageClass | Detail::Condition => Place::Nowhere,
    }
}

/// The details of a refusal, those of a refused copy source first.
pub(super) fn details(refusal: &Refusal) -> impl Iterator<Item = (Place, String)> {
    let source = refusal.source.as_ref().map(|source| {
        let code = error_row(source.reason).code.to_owned();
        let message = refusal.message.as_deref().unwrap_or_else(|| row_message(refusal));
        [
            (Detail::SourceStatus, status(refusal).to_string()),
            (Detail::SourceCode, code),
            (Detail::SourceMessage, message.to_owned()),
        ]
    });
    let header = refusal.hint.and_then(|hint| words(hint).1);
    let header = header.map(|header| (Detail::HeaderName, header.to_owned()));
    let own = refusal.details.iter().cloned();
    source
        .into_iter()
        .flatten()
        .chain(header)
        .chain(own)
        .map(|(detail, value)| (place(detail), value))
}

#[cfg(test)]
mod tests;
