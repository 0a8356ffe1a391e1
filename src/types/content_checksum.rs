//! Checksums of content that clients choose, and the tag of content.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::Md5;

/// A checksum that the row of a blob, a block or a part keeps beside the CRC-64 it always has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentChecksum {
    /// How it is computed.
    pub algorithm: ChecksumAlgorithm,
    /// What it is of.
    pub kind: ChecksumKind,
    /// The digest, big endian; as many bytes as the algorithm has.
    pub digest: Bytes,
}

/// How a checksum is computed; on disk by position. Source: S3, "Checking object integrity".
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

/// What a checksum is of; on disk by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChecksumKind {
    /// Of all bytes.
    FullObject,
    /// Of the checksums of so many parts.
    Composite(u32),
}

/// What S3's `ETag` is made of: it is the same as long as the content is. On disk by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentTag {
    /// The Content-MD5 of the row was computed from the content, and is the tag.
    PropertyMd5,
    /// The MD5 of the content.
    Md5(Md5),
    /// The MD5 of the MD5s of so many parts.
    Parts(Md5, u32),
    /// No MD5 of anything: 16 bytes that stay as long as the content does, and the number shown
    /// after them, by which nobody takes them for an MD5.
    Opaque([u8; 16], u32),
}
