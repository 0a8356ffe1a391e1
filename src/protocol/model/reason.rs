//! Why a request is refused: the reasons that operations, authorization and parsers know.
//!
//! A reason has no code, no status and no text: each dialect has its own for it
//! (`azure/errors.rs`). `api-spec/errors.json` shows them side by side.

macro_rules! reasons {
    ($($(#[doc = $what:literal])+ $reason:ident,)*) => {
        /// Why a request is refused, in no dialect's words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $what])+ $reason,)*
        }

        impl Reason {
            /// Every reason, in the order of `api-spec/errors.json`.
            pub const ALL: &[Self] = &[$(Self::$reason),*];

            /// The name, as logs and `api-spec/errors.json` have it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$reason => stringify!($reason),)* }
            }
        }
    };
}

reasons! {
    /// Server failed to authenticate the request. Make sure the value of the Authorization header
    /// is formed correctly including the signature.
    AuthenticationFailed,
    /// This request is not authorized to perform this operation.
    AuthorizationFailure,
    /// This request is not authorized to perform this operation using this permission.
    AuthorizationPermissionMismatch,
    /// This request is not authorized to perform this operation using this protocol.
    AuthorizationProtocolMismatch,
    /// This request is not authorized to perform this operation using this resource type.
    AuthorizationResourceTypeMismatch,
    /// This request is not authorized to perform this operation using this service.
    AuthorizationServiceMismatch,
    /// This request is not authorized to perform this operation using this source IP.
    AuthorizationSourceIPMismatch,
    /// This request is not authorized to perform blob overwrites.
    UnauthorizedBlobOverwrite,
    /// Public access is not permitted on this storage account.
    PublicAccessNotPermitted,
    /// Authentication information is not given in the correct format. Check the value of the
    /// Authorization header.
    InvalidAuthenticationInfo,
    /// Server failed to authenticate the request. Please refer to the information in the www-
    /// authenticate header.
    NoAuthenticationInformation,
    /// Write operations to the secondary location are not allowed.
    InsufficientAccountPermissions,
    /// The specified resource does not exist.
    ResourceNotFound,
    /// The specified container does not exist.
    ContainerNotFound,
    /// The specified blob does not exist.
    BlobNotFound,
    /// The specified version does not exist.
    VersionNotFound,
    /// The document does not say whether versions are kept.
    IllegalVersioning,
    /// The specified version is a delete marker.
    DeleteMarker,
    /// The specified version is the current version of the blob.
    CurrentVersion,
    /// It was not softly deleted, so it cannot be ended before its time.
    NotSoftlyDeleted,
    /// The account does not permit to remove soft-deleted rows before they expire.
    PermanentDeletionDisabled,
    /// The specified container is not empty.
    ContainerNotEmpty,
    /// The specified container already exists.
    ContainerAlreadyExists,
    /// The specified blob already exists.
    BlobAlreadyExists,
    /// The condition specified using HTTP conditional header(s) is not met.
    ConditionNotMet,
    /// A write demands a tag of what does not exist.
    NothingToMatch,
    /// The resource has not changed.
    NotModified,
    /// There is currently no lease on the blob.
    LeaseNotPresentWithBlobOperation,
    /// There is currently no lease on the container.
    LeaseNotPresentWithContainerOperation,
    /// There is currently a lease on the resource and no lease ID was specified in the request.
    LeaseIdMissing,
    /// The lease ID specified did not match the lease ID for the blob.
    LeaseIdMismatchWithBlobOperation,
    /// The lease ID specified did not match the lease ID for the container.
    LeaseIdMismatchWithContainerOperation,
    /// A lease ID was specified, but the lease has expired or was broken.
    LeaseLost,
    /// There is currently no lease to act on.
    LeaseNotPresentWithLeaseOperation,
    /// The lease ID specified did not match the current lease ID.
    LeaseIdMismatchWithLeaseOperation,
    /// There is already a lease present.
    LeaseAlreadyPresent,
    /// The lease ID matched, but the lease is currently in breaking state and cannot be acquired
    /// until it is broken.
    LeaseIsBreakingAndCannotBeAcquired,
    /// The lease ID matched, but the lease is currently in breaking state and cannot be changed.
    LeaseIsBreakingAndCannotBeChanged,
    /// The lease ID matched, but the lease has been broken explicitly and cannot be renewed.
    LeaseIsBrokenAndCannotBeRenewed,
    /// This operation is not permitted because the blob has snapshots.
    SnapshotsPresent,
    /// This operation is not permitted as the blob is under a legal hold.
    BlobImmutableDueToLegalHold,
    /// This operation is not permitted as the blob is under a retention.
    BlobImmutableDueToPolicy,
    /// The container has no object lock, so its blobs cannot be protected.
    NoObjectLock,
    /// A retention must end in the future.
    RetentionInPast,
    /// A default retention must be a positive number of days or years.
    InvalidRetentionPeriod,
    /// The version has no retention, or was never under a legal hold.
    ProtectionNotFound,
    /// The container has object lock: it keeps versions, and must be empty to be deleted.
    ObjectLocked,
    /// Object lock needs versions, and the container does not keep them.
    NotVersioned,
    /// This operation is not permitted on an archived blob.
    BlobArchived,
    /// This operation is not permitted because the blob is being rehydrated.
    BlobBeingRehydrated,
    /// The blob leaves the archive already.
    RehydrationInProgress,
    /// The blob is not in the archive.
    BlobNotArchived,
    /// The access tier is not supported for this account type.
    BlobAccessTierNotSupportedForAccountType,
    /// The specified blob tier size limit cannot be less than content length.
    BlobTierInadequateForContentLength,
    /// A higher blob tier has already been explicitly set.
    CannotChangeToLowerTier,
    /// The blob's content length cannot exceed its tier limit.
    ContentLengthLargerThanTierLimit,
    /// The request includes an unsatisfiable condition for this operation.
    UnsatisfiableCondition,
    /// Multiple condition headers are not supported.
    MultipleConditionHeadersNotSupported,
    /// Condition headers are not supported.
    ConditionHeadersNotSupported,
    /// Value for one of the query parameters specified in the request URI is invalid.
    InvalidQueryParameterValue,
    /// One of the query parameters specified in the request URI is outside the permissible range.
    OutOfRangeQueryParameterValue,
    /// A query parameter that's mandatory for this request is not specified.
    MissingRequiredQueryParameter,
    /// The account being accessed does not support http.
    AccountRequiresHttps,
    /// The value for one of the HTTP headers is not in the correct format.
    InvalidHeaderValue,
    /// An HTTP header that's mandatory for this request is not specified.
    MissingRequiredHeader,
    /// One of the HTTP headers specified in the request is not supported.
    UnsupportedHeader,
    /// One of the request inputs is not valid.
    InvalidInput,
    /// One of the request inputs is out of range.
    OutOfRangeInput,
    /// The requested URI does not represent any resource on the server.
    InvalidUri,
    /// The specified resource name contains invalid characters.
    InvalidResourceName,
    /// The metadata specified is invalid. It has characters that are not permitted.
    InvalidMetadata,
    /// The key for one of the metadata key-value pairs is empty.
    EmptyMetadataKey,
    /// The size of the specified metadata exceeds the maximum size permitted.
    MetadataTooLarge,
    /// The tags specified are invalid. They have characters that are not permitted or are too
    /// long.
    InvalidTag,
    /// The name of one of the tag key-value pairs is empty.
    EmptyTagName,
    /// The tags specified contain duplicate names.
    DuplicateTagNames,
    /// The tags specified exceed the maximum permissible limit.
    TagsTooLarge,
    /// The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and
    /// Base64-encoded.
    InvalidMd5,
    /// The MD5 value specified in the request did not match with the MD5 value calculated by the
    /// server.
    Md5Mismatch,
    /// The CRC64 value specified in the request did not match with the CRC64 value calculated by
    /// the server.
    Crc64Mismatch,
    /// The body has another checksum than the request says.
    ChecksumMismatch,
    /// Both x-ms-content-crc64 header and Content-MD5 header are present.
    BothCrc64AndMd5HeaderPresent,
    /// CORS not enabled or no matching rule found for this request.
    CorsPreflightFailure,
    /// The container has no such setting.
    SettingNotFound,
    /// A preflight request lacks the origin or the method of the request that it asks about.
    IncompletePreflight,
    /// The access control list of the blob does not permit a sender without another permission to
    /// read it, or the blob does not exist.
    BlobNotOpen,
    /// The request has no access control list in any form.
    MissingGrants,
    /// The request has a body where none is expected.
    UnexpectedBody,
    /// The account number that a request expects is none.
    InvalidBucketOwner,
    /// The batch operation exceeds maximum number of allowed subrequests.
    ExceedsMaxBatchRequestCount,
    /// The document in the body is malformed.
    InvalidDocument,
    /// The value of an element of the document is not in the correct format.
    InvalidElementValue,
    /// A required element of the document is missing.
    MissingElement,
    /// The location of a new container is not one.
    InvalidLocation,
    /// An element of the document is not supported.
    UnsupportedElement,
    /// The specified blob or block content is invalid.
    InvalidBlobOrBlock,
    /// The specified block ID is invalid. The block ID must be Base64-encoded.
    InvalidBlockId,
    /// The specified block list is invalid.
    InvalidBlockList,
    /// The block list may not contain more than 50,000 blocks.
    BlockListTooLong,
    /// The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.
    BlockCountExceedsLimit,
    /// The specified upload does not exist, or it has ended.
    UploadNotFound,
    /// The parts are not in the order of their numbers.
    PartOrder,
    /// The blob has no part with the requested number.
    PartNotFound,
    /// A part that is not the last one is too small.
    PartTooSmall,
    /// The length or the kind of checksum differs from that of the upload.
    UploadMismatch,
    /// Could not verify the copy source.
    CannotVerifyCopySource,
    /// The source condition specified using HTTP conditional header(s) is not met.
    SourceConditionNotMet,
    /// The target condition specified using HTTP conditional header(s) is not met.
    TargetConditionNotMet,
    /// There is currently a pending copy operation.
    PendingCopyOperation,
    /// There is currently no pending copy operation.
    NoPendingCopyOperation,
    /// The specified copy ID did not match the copy ID for the pending copy operation.
    CopyIdMismatch,
    /// The specified source blob is different than the copy source of the existing incremental copy
    /// blob.
    IncrementalCopyBlobMismatch,
    /// The specified snapshot is earlier than the last snapshot copied into the incremental copy
    /// blob.
    IncrementalCopyOfEarlierVersionSnapshotNotAllowed,
    /// The source for incremental copy request must be a snapshot.
    IncrementalCopySourceMustBeSnapshot,
    /// The specified operation is not allowed on an incremental copy blob.
    OperationNotAllowedOnIncrementalCopyBlob,
    /// The copy source blob type is invalid for this operation.
    InvalidSourceBlobType,
    /// The source URL for incremental copy request must be valid Azure Storage blob URL.
    InvalidSourceBlobUrl,
    /// The blob type is invalid for this operation.
    InvalidBlobType,
    /// The blob is sealed and its contents cannot be modified.
    BlobIsSealed,
    /// The sequence number increment cannot be performed because it would result in overflow of
    /// the sequence number.
    SequenceNumberIncrementTooLarge,
    /// The sequence number condition specified was not met.
    SequenceNumberConditionNotMet,
    /// The page range specified is invalid.
    InvalidPageRange,
    /// The prevsnapshot query parameter value cannot be newer than snapshot query parameter
    /// value.
    PreviousSnapshotCannotBeNewer,
    /// The previous snapshot is not found.
    PreviousSnapshotNotFound,
    /// Differential Get Page Ranges is not supported on the previous snapshot.
    PreviousSnapshotOperationNotSupported,
    /// The blob has been recreated since the previous snapshot was taken.
    BlobOverwritten,
    /// The append position condition specified was not met.
    AppendPositionConditionNotMet,
    /// The max blob size condition specified was not met.
    MaxBlobSizeConditionNotMet,
    /// The blob is encrypted with customer specified encryption, but it was not provided in the
    /// request.
    BlobUsesCustomerSpecifiedEncryption,
    /// The blob is not encrypted with customer specified encryption, but one was provided in the
    /// request.
    BlobDoesNotUseCustomerSpecifiedEncryption,
    /// The given customer specified encryption does not match the encryption used to encrypt the
    /// blob.
    BlobCustomerSpecifiedEncryptionMismatch,
    /// The algorithm of a customer-provided key is not known.
    UnknownEncryptionAlgorithm,
    /// The request is forbidden by the container encryption policy.
    RequestForbiddenByContainerEncryptionPolicy,
    /// The range specified is invalid for the current size of the resource.
    InvalidRange,
    /// The Content-Length header was not specified.
    MissingContentLengthHeader,
    /// The request body is too large and exceeds the maximum permissible limit.
    RequestBodyTooLarge,
    /// The URL in the request could not be parsed.
    RequestUrlFailedToParse,
    /// The HTTP verb specified is invalid - it is not recognized by the server.
    InvalidHttpVerb,
    /// The resource doesn't support the specified HTTP verb.
    UnsupportedHttpVerb,
    /// One of the query parameters specified in the request URI is not supported.
    UnsupportedQueryParameter,
    /// The client sent its body too slowly, or nothing of it for too long. Send the body without
    /// pauses.
    RequestTimeout,
    /// The requested content does not exist.
    WebContentNotFound,
    /// The account has no hierarchical namespace.
    HierarchicalNamespaceNotEnabled,
    /// The operation could not be completed within the permitted time.
    OperationTimedOut,
    /// The server encountered an internal error. Please retry the request.
    InternalError,
    /// The server is busy. Retry the request after the time in Retry-After.
    ServerBusy,
    /// The disks are full. Free space or add a data directory; reads and deletes go on.
    InsufficientStorage,
    /// Blockyard does not serve this operation.
    NotImplemented,
    /// The body is shorter or longer than the request says, or its chunks are malformed.
    IncompleteBody,
    /// There is no such access key.
    UnknownAccessKey,
    /// The session token that came with the access key is malformed, of another key, or revoked.
    InvalidSessionToken,
    /// The session token that came with the access key has expired.
    ExpiredSessionToken,
    /// The time of the request is too far from the server's.
    RequestTimeTooSkewed,
    /// The parameters of a presigned URL are missing or malformed.
    MalformedQueryAuthentication,
    /// The body has another SHA-256 than was signed.
    PayloadHashMismatch,
    /// There is no such storage class.
    InvalidStorageClass,
    /// The policy of a form cannot be read.
    InvalidPolicy,
    /// The body is not a well-formed form.
    MalformedForm,
    /// The fields of a form before its file are too long.
    FormTooLong,
}
