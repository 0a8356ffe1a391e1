//! Checksums that clients choose: computing them, and combining those of parts.
//!
//! With `checksum.rs` the only files that name `crc_fast`.

use std::fmt;

use crc_fast::{CrcAlgorithm, Digest as CrcDigest};
use ring::digest::Context;
use ring::digest::SHA1_FOR_LEGACY_USE_ONLY;
use ring::digest::SHA256;

use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumValue;
use crate::types::Crc32c;
use crate::types::Crc32cHasher;
use crate::types::Crc64;
use crate::types::Crc64Hasher;
use crate::types::Md5Hasher;
use crate::types::checksum::Polynomial32;

/// CRC-32 as in zip and zlib.
const CRC32: Polynomial32 = Polynomial32::new(0xEDB8_8320);

/// Computes a checksum of bytes that are added piece by piece.
pub struct ContentHasher(Inner);

enum Inner {
    Crc32(CrcDigest),
    Crc32c(Crc32cHasher),
    Crc64(Crc64Hasher),
    Md5(Md5Hasher),
    /// SHA-1 or SHA-256.
    Sha(ChecksumAlgorithm, Context),
}

impl ContentHasher {
    /// Without bytes so far.
    #[must_use]
    pub fn new(algorithm: ChecksumAlgorithm) -> Self {
        Self(match algorithm {
            ChecksumAlgorithm::Crc32 => Inner::Crc32(CrcDigest::new(CrcAlgorithm::Crc32IsoHdlc)),
            ChecksumAlgorithm::Crc32c => Inner::Crc32c(Crc32cHasher::default()),
            ChecksumAlgorithm::Crc64Nvme => Inner::Crc64(Crc64Hasher::default()),
            ChecksumAlgorithm::Md5 => Inner::Md5(Md5Hasher::default()),
            ChecksumAlgorithm::Sha1 => {
                Inner::Sha(algorithm, Context::new(&SHA1_FOR_LEGACY_USE_ONLY))
            }
            ChecksumAlgorithm::Sha256 => Inner::Sha(algorithm, Context::new(&SHA256)),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Crc32(crc) => crc.update(bytes),
            Inner::Crc32c(crc) => crc.update(bytes),
            Inner::Crc64(crc) => crc.update(bytes),
            Inner::Md5(md5) => md5.update(bytes),
            Inner::Sha(_, context) => context.update(bytes),
        }
    }

    /// The checksum of everything added.
    #[must_use]
    pub fn finish(self) -> ChecksumValue {
        match self.0 {
            Inner::Crc32(crc) => {
                let crc = u32::try_from(crc.finalize()).expect("a CRC-32 fits 32 bits");
                ChecksumValue::of_u32(ChecksumAlgorithm::Crc32, crc)
            }
            Inner::Crc32c(crc) => {
                ChecksumValue::of_u32(ChecksumAlgorithm::Crc32c, crc.finish().get())
            }
            Inner::Crc64(crc) => crc.finish().into(),
            Inner::Md5(md5) => ChecksumValue::of(ChecksumAlgorithm::Md5, md5.finish().as_bytes()),
            Inner::Sha(algorithm, context) => {
                ChecksumValue::of(algorithm, context.finish().as_ref())
            }
        }
    }
}

impl fmt::Debug for ContentHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentHasher").finish_non_exhaustive()
    }
}

impl ChecksumValue {
    /// The checksum of `bytes`.
    #[must_use]
    pub fn compute(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Self {
        let mut hasher = ContentHasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The checksum of a concatenation, from the checksums of both parts and the length of the
    /// second, in bytes. `None` if the algorithms differ, or if the checksums are no CRCs. Source:
    /// S3, "Full object checksums for multipart uploads".
    #[must_use]
    pub fn combine(&self, second: &Self, second_len: u64) -> Option<Self> {
        let algorithm = self.algorithm();
        if second.algorithm() != algorithm {
            return None;
        }
        match algorithm {
            ChecksumAlgorithm::Crc32 => {
                let whole = CRC32.combine(self.as_u32()?, second.as_u32()?, second_len);
                Some(Self::of_u32(algorithm, whole))
            }
            ChecksumAlgorithm::Crc32c => {
                let (first, second) = (Crc32c::new(self.as_u32()?), Crc32c::new(second.as_u32()?));
                Some(Self::of_u32(algorithm, first.combine(second, second_len).get()))
            }
            ChecksumAlgorithm::Crc64Nvme => {
                Some(self.as_crc64()?.combine(second.as_crc64()?, second_len).into())
            }
            ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 | ChecksumAlgorithm::Md5 => None,
        }
    }

    fn of_u32(algorithm: ChecksumAlgorithm, crc: u32) -> Self {
        Self::of(algorithm, &crc.to_be_bytes())
    }

    fn of(algorithm: ChecksumAlgorithm, digest: &[u8]) -> Self {
        Self::new(algorithm, digest).expect("a digest has the length of its algorithm")
    }

    fn as_u32(&self) -> Option<u32> {
        Some(u32::from_be_bytes(self.digest().try_into().ok()?))
    }

    fn as_crc64(&self) -> Option<Crc64> {
        Some(Crc64::from_be_bytes(self.digest().try_into().ok()?))
    }
}

impl From<Crc64> for ChecksumValue {
    fn from(crc64: Crc64) -> Self {
        Self::of(ChecksumAlgorithm::Crc64Nvme, &crc64.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ChecksumAlgorithm; 6] = [
        ChecksumAlgorithm::Crc32,
        ChecksumAlgorithm::Crc32c,
        ChecksumAlgorithm::Crc64Nvme,
        ChecksumAlgorithm::Sha1,
        ChecksumAlgorithm::Sha256,
        ChecksumAlgorithm::Md5,
    ];

    /// The CRCs are the check values of the catalogue of CRCs; the digests are those of `sha1sum`,
    /// `sha256sum` and `md5sum`.
    #[test]
    fn checksums_have_published_values() {
        let hex = |algorithm| -> String {
            let value = ChecksumValue::compute(algorithm, b"123456789");
            value.digest().iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(hex(ChecksumAlgorithm::Crc32), "cbf43926");
        assert_eq!(hex(ChecksumAlgorithm::Crc32c), "e3069283");
        assert_eq!(hex(ChecksumAlgorithm::Crc64Nvme), "ae8b14860a799888");
        assert_eq!(hex(ChecksumAlgorithm::Sha1), "f7c3bc1d808e04732adf679965ccc34ca7ae3441");
        assert_eq!(
            hex(ChecksumAlgorithm::Sha256),
            "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"
        );
        assert_eq!(hex(ChecksumAlgorithm::Md5), "25f9e794323b453885f5181f1b624d0b");
    }

    #[test]
    fn pieces_and_parts_give_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
        for algorithm in ALL {
            let whole = ChecksumValue::compute(algorithm, &bytes);
            for cut in [0, 1, 7, 8, 500, 999, 1000] {
                let (a, b) = bytes.split_at(cut);
                let mut hasher = ContentHasher::new(algorithm);
                hasher.update(a);
                hasher.update(b);
                assert_eq!(hasher.finish(), whole);
                let of = |bytes| ChecksumValue::compute(algorithm, bytes);
                let combined = of(a).combine(&of(b), u64::try_from(b.len()).unwrap());
                let is_crc = algorithm.digest_len() <= 8;
                assert_eq!(combined, is_crc.then_some(whole), "{algorithm:?} at {cut}");
            }
        }
        let (a, b) = (
            ChecksumValue::compute(ChecksumAlgorithm::Crc32, b"a"),
            ChecksumValue::compute(ChecksumAlgorithm::Crc32c, b"b"),
        );
        assert_eq!(a.combine(&b, 1), None, "checksums of two algorithms");
    }

    #[test]
    fn crc32_combines_as_crc_fast_does_at_any_length() {
        let of = |bytes| ChecksumValue::compute(ChecksumAlgorithm::Crc32, bytes);
        let (a, b) = (of(b"first"), of(b"second"));
        let number = |value: &ChecksumValue| u64::from(value.as_u32().unwrap());
        for shift in 0..63 {
            for len in [0, 1u64 << shift, (1 << shift) + 1, 1_000_003] {
                let expected = crc_fast::checksum_combine(
                    CrcAlgorithm::Crc32IsoHdlc,
                    number(&a),
                    number(&b),
                    len,
                );
                assert_eq!(number(&a.combine(&b, len).unwrap()), expected, "length {len}");
            }
        }
    }

    #[test]
    fn header_values_have_the_length_of_their_algorithm() {
        for algorithm in ALL {
            let value = ChecksumValue::compute(algorithm, b"x");
            assert_eq!(ChecksumValue::from_base64(algorithm, &value.to_base64()), Some(value));
            assert_eq!(ChecksumValue::from_base64(algorithm, "AAA="), None);
            assert_eq!(ChecksumValue::from_base64(algorithm, "not base64"), None);
            assert_eq!(value.of_whole().digest, value.digest());
        }
    }
}
