//! Checksums that clients choose, and S3's tag of content.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::Md5;

/// A checksum in the row of a blob, block or part, in addition to the CRC-64 that each row has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentChecksum {
    /// How it is computed.
    pub algorithm: ChecksumAlgorithm,
    /// What it covers.
    pub kind: ChecksumKind,
    /// The digest, big endian, with the length of the algorithm.
    pub digest: Bytes,
}

impl From<Md5> for ContentChecksum {
    fn from(md5: Md5) -> Self {
        Self {
            algorithm: ChecksumAlgorithm::Md5,
            kind: ChecksumKind::FullObject,
            digest: Bytes::copy_from_slice(md5.as_bytes()),
        }
    }
}

/// How a checksum is computed. The order of the variants is on disk. Source: S3, "Checking object
/// integrity".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChecksumAlgorithm {
    /// 4 bytes, the polynomial of zip.
    Crc32,
    /// 4 bytes, Castagnoli.
    Crc32c,
    /// 8 bytes.
    Crc64Nvme,
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
    /// 16 bytes.
    Md5,
}

/// What a checksum covers. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChecksumKind {
    /// All bytes of the content.
    FullObject,
    /// The checksums of this many parts.
    Composite(u32),
}

/// How S3's `ETag` is formed. It changes only with the content. The order of the variants is on
/// disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentTag {
    /// The tag is the Content-MD5 of the row, which was computed from the content.
    PropertyMd5,
    /// The MD5 of the content.
    Md5(Md5),
    /// The MD5 of the MD5s of this many parts.
    Parts(Md5, u32),
    /// 16 bytes that are no MD5 and change with the content, and the number that is shown after
    /// them. With the number, clients do not take the bytes for an MD5.
    Opaque([u8; 16], u32),
}
