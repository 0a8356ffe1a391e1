//! Checksums of bodies, as requests and answers have them.

use crate::types::Crc64;
use crate::types::Md5;

/// A checksum of a request or response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyChecksum {
    /// MD5.
    Md5(Md5),
    /// CRC-64.
    Crc64(Crc64),
}

impl BodyChecksum {
    /// The checksum of a request's document that its answer has: of the kind the client used, else
    /// the CRC-64.
    #[must_use]
    pub fn new(crc64: Crc64, md5: Option<Md5>) -> Self {
        md5.map_or(Self::Crc64(crc64), Self::Md5)
    }
}

/// The checksums of content that a request has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenChecksums {
    /// CRC-64.
    pub crc64: Crc64,
    /// MD5, where the answer shows it: the client gave one, or the operation always computes it.
    pub md5: Option<Md5>,
}
