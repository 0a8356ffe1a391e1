//! The one error table.

/// An error as a client sees it: a row of the table, and what only this request knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The row.
    pub code: ErrorCode,
    /// Replaces the row's status: a copy tells that of its source, a refused token is 401.
    pub status: Option<u16>,
    /// Replaces the row's message; says what to do next.
    pub message: Option<String>,
    /// Further elements of the body, such as `QueryParameterName`, in order.
    pub details: Vec<(&'static str, String)>,
    /// Further headers, such as `Content-Range` of a 416 or `Retry-After`.
    pub headers: Vec<(&'static str, String)>,
    /// What an operator is told, and a client is not.
    pub cause: Option<Cause>,
}

/// Why a request was refused, in one word of metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The server had no room: what was short.
    Busy(&'static str),
    /// Nobody knows who sent it: what was wrong with the proof.
    Authentication(&'static str),
    /// The sender may not do this: what did not allow it.
    Authorization(&'static str),
}

impl Error {
    /// The row alone.
    #[must_use]
    pub const fn new(code: ErrorCode) -> Self {
        Self {
            code,
            status: None,
            message: None,
            details: Vec::new(),
            headers: Vec::new(),
            cause: None,
        }
    }

    /// With an element in the body.
    #[must_use]
    pub fn detail(mut self, element: &'static str, value: impl Into<String>) -> Self {
        self.details.push((element, value.into()));
        self
    }

    /// With another status.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The status to answer with.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        self.status.unwrap_or(self.code.status())
    }

    /// With another message.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// With what an operator is told.
    #[must_use]
    pub const fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

macro_rules! error_table {
    ($($code:ident, $status:literal, $message:literal;)*) => {
        /// A documented code of Blob REST ("Status and error codes", "Blob service error codes").
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $message] $code,)*
        }

        impl ErrorCode {
            /// Every row.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// The code as Azure spells it.
            #[must_use]
            pub const fn azure(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)* }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$code => $status,)* }
            }

            /// The message when the request adds none.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$code => $message,)* }
            }
        }
    };
}

error_table! {
    AuthenticationFailed, 403, "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly including the signature.";
    AuthorizationFailure, 403, "This request is not authorized to perform this operation.";
    AuthorizationPermissionMismatch, 403, "This request is not authorized to perform this operation using this permission.";
    AuthorizationProtocolMismatch, 403, "This request is not authorized to perform this operation using this protocol.";
    AuthorizationResourceTypeMismatch, 403, "This request is not authorized to perform this operation using this resource type.";
    AuthorizationServiceMismatch, 403, "This request is not authorized to perform this operation using this service.";
    AuthorizationSourceIPMismatch, 403, "This request is not authorized to perform this operation using this source IP.";
    UnauthorizedBlobOverwrite, 403, "This request is not authorized to perform blob overwrites.";
    PublicAccessNotPermitted, 409, "Public access is not permitted on this storage account.";
    InvalidAuthenticationInfo, 400, "Authentication information is not given in the correct format. Check the value of the Authorization header.";
    NoAuthenticationInformation, 401, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    InsufficientAccountPermissions, 403, "Write operations to the secondary location are not allowed.";
    ResourceNotFound, 404, "The specified resource does not exist.";
    ContainerNotFound, 404, "The specified container does not exist.";
    BlobNotFound, 404, "The specified blob does not exist.";
    ContainerAlreadyExists, 409, "The specified container already exists.";
    BlobAlreadyExists, 409, "The specified blob already exists.";
    ConditionNotMet, 412, "The condition specified using HTTP conditional header(s) is not met.";
    NotModified, 304, "The resource has not changed.";
    LeaseNotPresentWithBlobOperation, 412, "There is currently no lease on the blob.";
    LeaseNotPresentWithContainerOperation, 412, "There is currently no lease on the container.";
    LeaseIdMissing, 412, "There is currently a lease on the resource and no lease ID was specified in the request.";
    LeaseIdMismatchWithBlobOperation, 412, "The lease ID specified did not match the lease ID for the blob.";
    LeaseIdMismatchWithContainerOperation, 412, "The lease ID specified did not match the lease ID for the container.";
    LeaseLost, 412, "A lease ID was specified, but the lease has expired or was broken.";
    LeaseNotPresentWithLeaseOperation, 409, "There is currently no lease to act on.";
    LeaseIdMismatchWithLeaseOperation, 409, "The lease ID specified did not match the current lease ID.";
    LeaseAlreadyPresent, 409, "There is already a lease present.";
    LeaseIsBreakingAndCannotBeAcquired, 409, "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.";
    LeaseIsBreakingAndCannotBeChanged, 409, "The lease ID matched, but the lease is currently in breaking state and cannot be changed.";
    LeaseIsBrokenAndCannotBeRenewed, 409, "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.";
    SnapshotsPresent, 409, "This operation is not permitted because the blob has snapshots.";
    BlobArchived, 409, "This operation is not permitted on an archived blob.";
    BlobBeingRehydrated, 409, "This operation is not permitted because the blob is being rehydrated.";
    BlobAccessTierNotSupportedForAccountType, 409, "The access tier is not supported for this account type.";
    UnsatisfiableCondition, 400, "The request includes an unsatisfiable condition for this operation.";
    MultipleConditionHeadersNotSupported, 400, "Multiple condition headers are not supported.";
    ConditionHeadersNotSupported, 400, "Condition headers are not supported.";
    InvalidQueryParameterValue, 400, "Value for one of the query parameters specified in the request URI is invalid.";
    OutOfRangeQueryParameterValue, 400, "One of the query parameters specified in the request URI is outside the permissible range.";
    MissingRequiredQueryParameter, 400, "A query parameter that's mandatory for this request is not specified.";
    AccountRequiresHttps, 400, "The account being accessed does not support http.";
    InvalidHeaderValue, 400, "The value for one of the HTTP headers is not in the correct format.";
    MissingRequiredHeader, 400, "An HTTP header that's mandatory for this request is not specified.";
    UnsupportedHeader, 400, "One of the HTTP headers specified in the request is not supported.";
    InvalidInput, 400, "One of the request inputs is not valid.";
    OutOfRangeInput, 400, "One of the request inputs is out of range.";
    InvalidUri, 400, "The requested URI does not represent any resource on the server.";
    InvalidResourceName, 400, "The specified resource name contains invalid characters.";
    InvalidMetadata, 400, "The metadata specified is invalid. It has characters that are not permitted.";
    EmptyMetadataKey, 400, "The key for one of the metadata key-value pairs is empty.";
    MetadataTooLarge, 400, "The size of the specified metadata exceeds the maximum size permitted.";
    InvalidTag, 400, "The tags specified are invalid. They have characters that are not permitted or are too long.";
    EmptyTagName, 400, "The name of one of the tag key-value pairs is empty.";
    DuplicateTagNames, 400, "The tags specified contain duplicate names.";
    TagsTooLarge, 400, "The tags specified exceed the maximum permissible limit.";
    InvalidMd5, 400, "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded.";
    Md5Mismatch, 400, "The MD5 value specified in the request did not match with the MD5 value calculated by the server.";
    Crc64Mismatch, 400, "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.";
    BothCrc64AndMd5HeaderPresent, 400, "Both x-ms-content-crc64 header and Content-MD5 header are present.";
    CorsPreflightFailure, 403, "CORS not enabled or no matching rule found for this request.";
    ExceedsMaxBatchRequestCount, 400, "The batch operation exceeds maximum number of allowed subrequests.";
    InvalidXmlDocument, 400, "XML specified is not syntactically valid.";
    InvalidXmlNodeValue, 400, "The value for one of the XML nodes is not in the correct format.";
    MissingRequiredXmlNode, 400, "A required XML node is not specified in the request body.";
    UnsupportedXmlNode, 400, "One of the XML nodes specified in the request body is not supported.";
    InvalidBlobOrBlock, 400, "The specified blob or block content is invalid.";
    InvalidBlockId, 400, "The specified block ID is invalid. The block ID must be Base64-encoded.";
    InvalidBlockList, 400, "The specified block list is invalid.";
    BlockListTooLong, 400, "The block list may not contain more than 50,000 blocks.";
    BlockCountExceedsLimit, 409, "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.";
    CannotVerifyCopySource, 404, "Could not verify the copy source.";
    SourceConditionNotMet, 412, "The source condition specified using HTTP conditional header(s) is not met.";
    PendingCopyOperation, 409, "There is currently a pending copy operation.";
    NoPendingCopyOperation, 409, "There is currently no pending copy operation.";
    CopyIdMismatch, 409, "The specified copy ID did not match the copy ID for the pending copy operation.";
    InvalidBlobType, 409, "The blob type is invalid for this operation.";
    BlobIsSealed, 409, "The specified blob is sealed and its contents can't be modified unless the blob is re-created after a delete operation.";
    SequenceNumberIncrementTooLarge, 409, "The sequence number increment cannot be performed because it would result in overflow of the sequence number.";
    SequenceNumberConditionNotMet, 412, "The sequence number condition specified was not met.";
    InvalidPageRange, 416, "The page range specified is invalid.";
    PreviousSnapshotCannotBeNewer, 400, "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.";
    PreviousSnapshotNotFound, 409, "The previous snapshot is not found.";
    PreviousSnapshotOperationNotSupported, 409, "Differential Get Page Ranges is not supported on the previous snapshot.";
    BlobOverwritten, 409, "The blob has been recreated since the previous snapshot was taken.";
    AppendPositionConditionNotMet, 412, "The append position condition specified was not met.";
    MaxBlobSizeConditionNotMet, 412, "The max blob size condition specified was not met.";
    BlobUsesCustomerSpecifiedEncryption, 409, "The blob is encrypted with customer specified encryption, but it was not provided in the request.";
    BlobDoesNotUseCustomerSpecifiedEncryption, 409, "The blob is not encrypted with customer specified encryption, but one was provided in the request.";
    BlobCustomerSpecifiedEncryptionMismatch, 409, "The given customer specified encryption does not match the encryption used to encrypt the blob.";
    RequestForbiddenByContainerEncryptionPolicy, 403, "The request is forbidden by the container encryption policy.";
    InvalidRange, 416, "The range specified is invalid for the current size of the resource.";
    MissingContentLengthHeader, 411, "The Content-Length header was not specified.";
    RequestBodyTooLarge, 413, "The request body is too large and exceeds the maximum permissible limit.";
    RequestUrlFailedToParse, 400, "The URL in the request could not be parsed.";
    InvalidHttpVerb, 400, "The HTTP verb specified is invalid - it is not recognized by the server.";
    UnsupportedHttpVerb, 405, "The resource doesn't support the specified HTTP verb.";
    UnsupportedQueryParameter, 400, "One of the query parameters specified in the request URI is not supported.";
    RequestTimeout, 408, "The client sent its body too slowly, or nothing of it for too long. Send the body without pauses.";
    WebContentNotFound, 404, "The requested content does not exist.";
    HierarchicalNamespaceNotEnabled, 400, "The account has no hierarchical namespace.";
    OperationTimedOut, 500, "The operation could not be completed within the permitted time.";
    InternalError, 500, "The server encountered an internal error. Please retry the request.";
    ServerBusy, 503, "The server is busy. Retry the request after the time in Retry-After.";
    InsufficientStorage, 507, "The disks are full. Free space or add a data directory; reads and deletes go on.";
    NotImplemented, 501, "Blockyard does not serve this operation.";
}

#[cfg(test)]
mod tests;
