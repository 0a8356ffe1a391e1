//! The parts in which a blob was uploaded.

use serde::Deserialize;
use serde::Serialize;

use crate::index::api::Guard;
use crate::index::record::BlobRecord;
use crate::types::BlobKey;
use crate::types::ContentChecksum;
use crate::types::Revision;

/// Asks for a blob and a page of the parts in which it was uploaded. Source: S3,
/// GetObjectAttributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBlobParts {
    /// The blob.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// The precondition.
    pub guard: Guard,
    /// Only parts with higher numbers.
    pub after: u32,
    /// Parts at most.
    pub limit: u32,
}

/// A blob and a page of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobPartsView {
    /// The blob.
    pub record: BlobRecord,
    /// The number of all parts; `None` if the blob was not uploaded in parts.
    pub total: Option<u32>,
    /// Parts in the order of their numbers.
    pub parts: Vec<BlobPartView>,
    /// Whether more follow.
    pub more: bool,
}

/// A part of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobPartView {
    /// The number that it was uploaded under.
    pub number: u32,
    /// Its length, bytes.
    pub len: u64,
    /// Its checksums; of content under a customer's key they are encrypted.
    pub checksums: Vec<ContentChecksum>,
}
