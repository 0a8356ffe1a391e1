//! Uploads in parts: changes, questions and their answers.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::index::api::EncryptionClaim;
use crate::index::api::Guard;
use crate::index::api::ListBlobs;
use crate::index::api::NewContent;
use crate::index::api::Written;
use crate::index::record::UploadRecord;
use crate::types::AccessTier;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::BlobProperties;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::Coverage;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::LockClaim;
use crate::types::Metadata;
use crate::types::ObjectProperties;
use crate::types::PartNumber;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Tags;
use crate::types::Timestamp;
use crate::types::UploadChecksum;
use crate::types::UploadId;

/// Starts an upload. The blob does not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartUpload {
    /// The blob.
    pub key: BlobKey,
    /// A fresh id.
    pub id: UploadId,
    /// System properties of the blob.
    pub properties: BlobProperties,
    /// User metadata of the blob.
    #[serde(deserialize_with = "Metadata::deserialize_checked")]
    pub metadata: Metadata,
    /// Index tags of the blob.
    pub tags: Tags,
    /// The tier, if it is given.
    pub tier: Option<AccessTier>,
    /// The encryption of the parts and the blob.
    pub encryption: EncryptionClaim,
    /// The checksum that is to be kept.
    pub checksum: Option<UploadChecksum>,
    /// The fields of an object of S3 beyond the system properties.
    pub object: Option<Box<ObjectProperties>>,
    /// The protection of the blob, if the request sets it.
    pub lock: LockClaim,
    /// Canonical id of the user that starts it; `None` means the account's root user.
    pub initiator: Option<String>,
}

/// Stages a part, replacing one with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagePart {
    /// The blob.
    pub key: BlobKey,
    /// The upload.
    pub upload: UploadId,
    /// The number of the part.
    pub number: PartNumber,
    /// The encryption of the bytes, which must be that of the upload.
    pub encryption: EncryptionClaim,
    /// The bytes; may be none.
    pub content: NewContent,
    /// Their CRC-64/NVME.
    pub crc64: Crc64,
    /// Further checksums of them. An MD5 becomes the tag of the part.
    pub checksums: Vec<ContentChecksum>,
}

/// A part, as the list of a completion names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPart {
    /// Its number.
    pub number: PartNumber,
    /// Its tag.
    pub tag: ContentEtag,
    /// A checksum of it, if the list has one.
    pub checksum: Option<ContentChecksum>,
}

/// Makes a blob of parts; the upload ends. A second completion with the same parts gets the answer
/// of the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteUpload {
    /// The blob.
    pub key: BlobKey,
    /// The upload.
    pub upload: UploadId,
    /// The precondition; of encryption nothing is checked.
    pub guard: Guard,
    /// The parts, in the order of their numbers; at least one.
    pub parts: Vec<NamedPart>,
    /// The least bytes of each part but the last.
    pub part_len_min: u64,
    /// The length that the blob must have, if the request gives it.
    pub len: Option<u64>,
    /// The checksum that the blob must have, if the request gives it.
    pub checksum: Option<ContentChecksum>,
    /// The required type of the upload's checksum, if the request names it.
    pub coverage: Option<Coverage>,
}

/// An upload was completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadCompleted {
    /// The ETag and time of the blob.
    pub written: Written,
    /// Its content tag.
    pub tag: ContentEtag,
    /// Its checksums.
    pub checksums: Vec<ContentChecksum>,
}

/// Ends an upload without a blob. Its parts become garbage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbortUpload {
    /// The blob.
    pub key: BlobKey,
    /// The upload.
    pub upload: UploadId,
}

/// A staged part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartView {
    /// Its number.
    pub number: PartNumber,
    /// Bytes.
    pub len: u64,
    /// When it was staged.
    pub staged: Timestamp,
    /// Its tag: the MD5 of its bytes, or an opaque one for encrypted bytes.
    pub tag: ContentEtag,
    /// The checksum that the upload keeps of its parts, if it has it.
    pub checksum: Option<ContentChecksum>,
}

/// Asks for an upload and a page of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListParts {
    /// The blob.
    pub key: BlobKey,
    /// The upload.
    pub upload: UploadId,
    /// Only parts with higher numbers.
    pub after: u32,
    /// Parts at most; 0 for the upload alone.
    pub limit: usize,
}

/// Asks which bytes of a blob are one of the parts in which it was uploaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPart {
    /// The blob.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// The precondition.
    pub guard: Guard,
    /// The number of the part.
    pub number: PartNumber,
}

/// A part of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRange {
    /// Its bytes.
    pub range: Range<u64>,
    /// The number of all parts; `None` if the blob was not uploaded in parts.
    pub parts: Option<u32>,
    /// The ETag of the blob.
    pub etag: Etag,
}

/// An upload and a page of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartPage {
    /// The upload.
    pub record: UploadRecord,
    /// Parts in the order of their numbers.
    pub parts: Vec<PartView>,
    /// Whether more follow; not known without parts.
    pub is_truncated: bool,
}

/// Asks for one page of the uploads of a container, as far as this partition reaches. They are in
/// the order of the names, those of one blob by their ids. The entries of the answer are
/// [`ListEntry::Upload`](crate::index::api::ListEntry::Upload) and
/// [`ListEntry::Prefix`](crate::index::api::ListEntry::Prefix).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListUploads {
    /// The container, the prefix, the delimiter and the limits. The rest is not used.
    pub list: ListBlobs,
    /// Only uploads after this place.
    pub after: Option<UploadMarker>,
}

/// A place in the order of uploads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadMarker {
    /// The name of a blob.
    pub name: BlobName,
    /// One of its uploads; `None` for the place after all of them.
    pub upload: Option<UploadId>,
}

impl ListUploads {
    /// The position by which the page is routed. The page starts at or after it.
    #[must_use]
    pub fn position(&self) -> Bytes {
        let marked = self.marked().map(|blob| blob.as_bytes().clone());
        marked.into_iter().fold(self.list.position(), Ord::max)
    }

    /// The routing key of the blob that the marker names.
    #[must_use]
    pub fn marked(&self) -> Option<RoutingKey> {
        let ListBlobs { account, container, collation, .. } = self.list;
        let name = self.after.as_ref()?.name.clone();
        Some(RoutingKey::blob(&BlobKey { account, container, collation, name }))
    }
}
