//! Operations on uploads in parts.

use crate::protocol::model::named_copy::NamedSource;
use crate::protocol::model::operation::parts::BlobPath;
use crate::protocol::model::operation::parts::Precondition;
use crate::protocol::model::operation::parts::Upload;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::ContainerName;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::Coverage;
use crate::types::Metadata;
use crate::types::ObjectProperties;
use crate::types::PartNumber;
use crate::types::Tags;
use crate::types::UploadChecksum;
use crate::types::UploadId;

/// Operations on uploads in parts. Source: S3, "Multipart upload API operations".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadOperation {
    /// Starts an upload.
    Create(Box<CreateUpload>),
    /// Uploads a part.
    UploadPart(UploadPart),
    /// Makes a part of bytes of a blob of the same account.
    CopyPart(Box<CopyPart>),
    /// Makes a blob of parts.
    Complete(Box<CompleteUpload>),
    /// Ends an upload without a blob.
    Abort(UploadPath),
    /// Lists the parts of an upload.
    ListParts {
        /// The upload.
        upload: UploadPath,
        /// Only parts with higher numbers.
        after: u32,
        /// Parts at most.
        limit: usize,
    },
    /// Lists the uploads of a container.
    ListUploads(Box<ListUploads>),
}

/// An upload by its names, and the precondition on its blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadPath {
    /// The blob.
    pub path: BlobPath,
    /// The precondition.
    pub precondition: Precondition,
    /// The upload.
    pub id: UploadId,
}

/// Starts an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateUpload {
    /// The blob.
    pub path: BlobPath,
    /// Only the encryption counts.
    pub precondition: Precondition,
    /// System properties of the blob.
    pub properties: BlobProperties,
    /// User metadata of the blob.
    pub metadata: Metadata,
    /// Index tags of the blob.
    pub tags: Tags,
    /// The tier, if it is given.
    pub tier: Option<AccessTier>,
    /// The checksum that is to be kept.
    pub checksum: Option<UploadChecksum>,
    /// The fields of an object of S3 beyond the system properties.
    pub object: Option<Box<ObjectProperties>>,
}

/// Uploads a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadPart {
    /// The upload. Of the precondition only the encryption counts.
    pub upload: UploadPath,
    /// The number of the part.
    pub number: PartNumber,
    /// The body.
    pub body: Upload,
}

/// Makes a part of bytes of a blob of the same account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPart {
    /// The upload. Of the precondition only the encryption counts.
    pub upload: UploadPath,
    /// The number of the part.
    pub number: PartNumber,
    /// The bytes.
    pub source: NamedSource,
    /// The longest part, bytes.
    pub len_max: u64,
}

/// A part that a completion names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPart {
    /// Its number.
    pub number: PartNumber,
    /// Its tag.
    pub tag: ContentEtag,
    /// A checksum of it, if the list has one.
    pub checksum: Option<ContentChecksum>,
}

/// Makes a blob of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteUpload {
    /// The upload.
    pub upload: UploadPath,
    /// The parts, in the order of the document.
    pub parts: Vec<NamedPart>,
    /// The least bytes of each part but the last: a rule of the dialect.
    pub part_len_min: u64,
    /// The length that the blob must have, if the request gives it.
    pub len: Option<u64>,
    /// The checksum that the blob must have, if the request gives it.
    pub checksum: Option<ContentChecksum>,
    /// The required type of the upload's checksum, if the request names it.
    pub coverage: Option<Coverage>,
}

/// Lists the uploads of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListUploads {
    /// The container.
    pub container: ContainerName,
    /// Only names that start so.
    pub prefix: Option<String>,
    /// Folds names.
    pub delimiter: Option<String>,
    /// Only uploads of later names; any text.
    pub after: Option<String>,
    /// With `after`: also later uploads of the blob of this name.
    pub after_upload: Option<UploadId>,
    /// Entries at most.
    pub limit: usize,
}

impl UploadOperation {
    /// The name that metrics and logs show.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "CreateUpload",
            Self::UploadPart(_) => "UploadPart",
            Self::CopyPart(_) => "CopyPart",
            Self::Complete(_) => "CompleteUpload",
            Self::Abort(_) => "AbortUpload",
            Self::ListParts { .. } => "ListParts",
            Self::ListUploads(_) => "ListUploads",
        }
    }

    /// The precondition on the blob; `None` for an operation on a container.
    pub(super) const fn precondition(&self) -> Option<&Precondition> {
        match self {
            Self::Create(create) => Some(&create.precondition),
            Self::UploadPart(part) => Some(&part.upload.precondition),
            Self::CopyPart(part) => Some(&part.upload.precondition),
            Self::Complete(complete) => Some(&complete.upload.precondition),
            Self::Abort(upload) | Self::ListParts { upload, .. } => Some(&upload.precondition),
            Self::ListUploads(_) => None,
        }
    }
}
