//! Changes of append blobs.

use serde::Deserialize;
use serde::Serialize;

use crate::index::api::Guard;
use crate::index::api::NewContent;
use crate::index::api::Written;
use crate::types::BlobKey;
use crate::types::Crc64;

/// Adds one block at the end of an append blob; where that is, is decided at the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendBlock {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// The end must be here: `x-ms-blob-condition-appendpos`, bytes.
    pub position: Option<u64>,
    /// The blob may not grow beyond: `x-ms-blob-condition-maxsize`, bytes.
    pub len_max: Option<u64>,
    /// The bytes, not empty.
    pub content: NewContent,
    /// Their CRC-64/NVME.
    pub crc64: Crc64,
}

/// Seals an append blob; one that is sealed stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealBlob {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// The end must be here: `x-ms-blob-condition-appendpos`, bytes.
    pub position: Option<u64>,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendedBlock {
    /// The blob's new tag and time.
    pub written: Written,
    /// Where the block begins, bytes.
    pub offset: u64,
    /// Blocks of the blob, this one included.
    pub blocks: u32,
}
