//! Answers to operations on uploads in parts.

use crate::protocol::model::facts::Change;
use crate::types::AccessTier;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::PartNumber;
use crate::types::Timestamp;
use crate::types::UploadChecksum;
use crate::types::UploadId;

/// The reply to an operation on an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadReply {
    /// An upload was started.
    Created(UploadId, Option<UploadChecksum>),
    /// A part was uploaded. Its checksum is the one that the request names, else the one that is
    /// kept.
    PartUploaded(PartFacts),
    /// The blob was made.
    Completed {
        /// Its ETag and time.
        change: Change,
        /// Its content tag.
        tag: ContentEtag,
        /// Its checksums.
        checksums: Vec<ContentChecksum>,
    },
    /// The upload was ended.
    Aborted,
    /// A page of parts.
    Parts {
        /// The upload.
        upload: UploadFacts,
        /// In the order of their numbers.
        parts: Vec<PartFacts>,
        /// Whether more follow.
        is_truncated: bool,
    },
    /// A page of uploads.
    Uploads {
        /// In the container's order, prefixes among them.
        items: Vec<UploadItem>,
        /// Where to go on; `None` at the end.
        next: Option<UploadPosition>,
    },
}

/// The facts of an upload that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadFacts {
    /// When it was started.
    pub started: Timestamp,
    /// Canonical id of the user that started it; `None` means the account's root user.
    pub initiator: Option<String>,
    /// Canonical id of the owner of the blob; `None` means the account's root user.
    pub owner: Option<String>,
    /// The tier of the blob, if it was given.
    pub tier: Option<AccessTier>,
    /// The storage class, where the tier does not determine it.
    pub storage_class: Option<String>,
    /// The checksum that is kept.
    pub checksum: Option<UploadChecksum>,
}

/// The facts of a part that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartFacts {
    /// Its number.
    pub number: PartNumber,
    /// Bytes.
    pub len: u64,
    /// When it was uploaded.
    pub time: Timestamp,
    /// Its tag.
    pub tag: ContentEtag,
    /// The checksum that is kept.
    pub checksum: Option<ContentChecksum>,
}

/// An entry of a list of uploads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadItem {
    /// An upload.
    Upload {
        /// The name of the blob.
        name: String,
        /// The id.
        id: UploadId,
        /// The facts.
        facts: Box<UploadFacts>,
    },
    /// A folded prefix, delimiter included.
    Prefix {
        /// The common part.
        name: String,
    },
}

/// A place in the order of uploads: after it the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadPosition {
    /// The name of a blob, or a folded prefix.
    pub name: String,
    /// An upload of the blob; `None` for all of them.
    pub upload: Option<UploadId>,
}
