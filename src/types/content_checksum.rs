//! Checksums that clients choose, and S3's tag of content.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::ContentEtag;
use crate::types::Etag;
use crate::types::Md5;

/// A checksum in the row of a blob, block or part, in addition to the CRC-64 that each row has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentChecksum {
    /// How it is computed.
    pub algorithm: ChecksumAlgorithm,
    /// Whether it is of the full object or composite.
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

/// The type of a checksum: full object or composite. The order of the variants is on disk.
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

impl ContentTag {
    /// The tag of content of which no checksum is kept, from its commit.
    #[must_use]
    pub fn of_commit(etag: Etag, number: u32) -> Self {
        let ticks = u128::from(u64::from_be_bytes(etag.to_be_bytes()));
        Self::Opaque((ticks << 64).to_be_bytes(), number)
    }

    /// The same tag as a row keeps it whose Content-MD5 is `property`.
    #[must_use]
    pub fn beside(self, property: Option<Md5>) -> Self {
        match self {
            Self::Md5(md5) if property == Some(md5) => Self::PropertyMd5,
            Self::PropertyMd5 | Self::Md5(_) | Self::Parts(..) | Self::Opaque(..) => self,
        }
    }

    /// S3's tag. `property` is the MD5 in the record of the row. `None` if the tag refers to it and
    /// it is not there.
    #[must_use]
    pub fn etag(&self, property: Option<Md5>) -> Option<ContentEtag> {
        match self {
            Self::PropertyMd5 => property.map(ContentEtag::md5),
            Self::Md5(md5) => Some(ContentEtag::md5(*md5)),
            Self::Parts(md5, parts) => Some(ContentEtag::parts(*md5, *parts)),
            Self::Opaque(digits, number) => Some(ContentEtag::opaque(*digits, *number)),
        }
    }
}

impl ChecksumAlgorithm {
    /// Bytes of a digest.
    #[must_use]
    pub const fn digest_len(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// A digest of a known algorithm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChecksumValue {
    algorithm: ChecksumAlgorithm,
    /// The digest, big endian, and zeros after it.
    bytes: [u8; 32],
}

impl ChecksumValue {
    /// `None` unless the digest has the length of the algorithm.
    #[must_use]
    pub fn new(algorithm: ChecksumAlgorithm, digest: &[u8]) -> Option<Self> {
        if digest.len() != algorithm.digest_len() {
            return None;
        }
        let mut bytes = [0; 32];
        bytes.get_mut(..digest.len())?.copy_from_slice(digest);
        Some(Self { algorithm, bytes })
    }

    /// Reads a header value; `None` unless it is base64 of as many bytes as the algorithm has.
    #[must_use]
    pub fn from_base64(algorithm: ChecksumAlgorithm, text: &str) -> Option<Self> {
        Self::new(algorithm, &STANDARD.decode(text).ok()?)
    }

    /// The header value.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.digest())
    }

    /// How it is computed.
    #[must_use]
    pub const fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// The digest.
    #[must_use]
    pub fn digest(&self) -> &[u8] {
        self.bytes.get(..self.algorithm.digest_len()).unwrap_or_default()
    }

    /// As rows keep it, of all of the content.
    #[must_use]
    pub fn of_whole(&self) -> ContentChecksum {
        ContentChecksum {
            algorithm: self.algorithm,
            kind: ChecksumKind::FullObject,
            digest: Bytes::copy_from_slice(self.digest()),
        }
    }
}

impl fmt::Debug for ChecksumValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.algorithm, self.to_base64())
    }
}
