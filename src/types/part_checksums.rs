//! The checksum of content that was uploaded in parts, from the checksums of the parts. Source: S3,
//! "Checking object integrity", full object and composite checksums.

use bytes::Bytes;
use crc_fast::CrcAlgorithm;
use ring::digest;

use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ContentChecksum;
use crate::types::Coverage;
use crate::types::Crc64;
use crate::types::UploadChecksum;

/// A part, as its checksum covers it.
#[derive(Clone, Debug)]
pub struct PartChecksum {
    /// Bytes of the part.
    pub len: u64,
    /// The digest, big endian.
    pub digest: Bytes,
}

impl UploadChecksum {
    /// The checksum of the concatenation of parts; `None` if a digest has a wrong length, or if the
    /// checksums of this algorithm cannot be combined.
    #[must_use]
    pub fn of_parts(self, parts: &[PartChecksum]) -> Option<ContentChecksum> {
        let algorithm = self.algorithm;
        let (kind, digest) = match self.coverage {
            Coverage::FullObject => (ChecksumKind::FullObject, full_object(algorithm, parts)?),
            Coverage::Composite => {
                let count = u32::try_from(parts.len()).ok()?;
                let digests: Vec<u8> = parts.iter().flat_map(|part| part.digest.clone()).collect();
                (ChecksumKind::Composite(count), digest_of(algorithm, &digests)?)
            }
        };
        Some(ContentChecksum { algorithm, kind, digest })
    }
}

/// The digest of bytes; `None` for MD5.
fn digest_of(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Option<Bytes> {
    let crc32 = |of| {
        let crc = u32::try_from(crc_fast::checksum(of, bytes)).unwrap_or_default();
        Bytes::copy_from_slice(&crc.to_be_bytes())
    };
    let hash = |of| Bytes::copy_from_slice(digest::digest(of, bytes).as_ref());
    Some(match algorithm {
        ChecksumAlgorithm::Crc32 => crc32(CrcAlgorithm::Crc32IsoHdlc),
        ChecksumAlgorithm::Crc32c => crc32(CrcAlgorithm::Crc32Iscsi),
        ChecksumAlgorithm::Crc64Nvme => of_crc64(Crc64::of(bytes)),
        ChecksumAlgorithm::Sha1 => hash(&digest::SHA1_FOR_LEGACY_USE_ONLY),
        ChecksumAlgorithm::Sha256 => hash(&digest::SHA256),
        ChecksumAlgorithm::Md5 => return None,
    })
}

/// The digest of a CRC-64/NVME.
fn of_crc64(crc: Crc64) -> Bytes {
    let mut bytes = crc.to_le_bytes();
    bytes.reverse();
    Bytes::copy_from_slice(&bytes)
}

fn full_object(algorithm: ChecksumAlgorithm, parts: &[PartChecksum]) -> Option<Bytes> {
    use ChecksumAlgorithm as A;
    match algorithm {
        A::Crc32 => combine32(0xEDB8_8320, parts),
        A::Crc32c => combine32(0x82F6_3B78, parts),
        A::Crc64Nvme => {
            let mut combiner = crate::types::Crc64Combiner::default();
            let mut all = Crc64::EMPTY;
            for part in parts {
                let mut bytes: [u8; 8] = part.digest.as_ref().try_into().ok()?;
                bytes.reverse();
                all = combiner.combine(all, Crc64::from_le_bytes(bytes), part.len);
            }
            Some(of_crc64(all))
        }
        A::Sha1 | A::Sha256 | A::Md5 => None,
    }
}

/// Combines the CRCs of parts. The polynomial has the lowest power in the highest bit, as the CRCs.
fn combine32(polynomial: u32, parts: &[PartChecksum]) -> Option<Bytes> {
    // Most parts have one length, so the factor of the last one is kept.
    let mut last = (0, 1 << 31);
    let mut all = 0;
    for part in parts {
        let crc = u32::from_be_bytes(part.digest.as_ref().try_into().ok()?);
        if part.len != last.0 {
            last = (part.len, power_of_256(polynomial, part.len));
        }
        all = multiply(polynomial, last.1, all) ^ crc;
    }
    Some(Bytes::copy_from_slice(&u32::to_be_bytes(all)))
}

/// `x^(8 * len)` modulo the polynomial.
fn power_of_256(polynomial: u32, len: u64) -> u32 {
    let (mut power, mut product) = (1 << (31 - 8), 1 << 31);
    for bit in 0..u64::BITS {
        if len >> bit & 1 == 1 {
            product = multiply(polynomial, power, product);
        }
        power = multiply(polynomial, power, power);
    }
    product
}

/// The product of two polynomials over GF(2), modulo another one.
fn multiply(polynomial: u32, a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, 1_u32 << 31);
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = (b >> 1) ^ (polynomial & (b & 1).wrapping_neg());
        bit >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts_of(algorithm: ChecksumAlgorithm, pieces: &[&[u8]]) -> Vec<PartChecksum> {
        let part = |piece: &&[u8]| PartChecksum {
            len: piece.len() as u64,
            digest: digest_of(algorithm, piece).unwrap(),
        };
        pieces.iter().map(part).collect()
    }

    #[test]
    fn check_values_are_those_of_the_catalogue() {
        let of = |algorithm| {
            let bytes = digest_of(algorithm, b"123456789").unwrap();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(of(ChecksumAlgorithm::Crc32), "cbf43926");
        assert_eq!(of(ChecksumAlgorithm::Crc32c), "e3069283");
        assert_eq!(of(ChecksumAlgorithm::Crc64Nvme), "ae8b14860a799888");
        assert_eq!(of(ChecksumAlgorithm::Sha1), "f7c3bc1d808e04732adf679965ccc34ca7ae3441");
        assert!(of(ChecksumAlgorithm::Sha256).starts_with("15e2b0d3c33891eb"));
    }

    #[test]
    fn crcs_of_parts_combine_to_that_of_the_whole() {
        use ChecksumAlgorithm as A;
        let bytes: Vec<u8> = (0..9_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        let pieces: Vec<&[u8]> = vec![&bytes[..4_000], &bytes[4_000..8_000], b"", &bytes[8_000..]];
        for algorithm in [A::Crc32, A::Crc32c, A::Crc64Nvme] {
            let upload = UploadChecksum { algorithm, coverage: Coverage::FullObject };
            let found = upload.of_parts(&parts_of(algorithm, &pieces)).unwrap();
            assert_eq!(found.kind, ChecksumKind::FullObject);
            assert_eq!(Some(found.digest), digest_of(algorithm, &bytes), "{algorithm:?}");
        }
        for algorithm in [A::Sha1, A::Sha256, A::Md5] {
            let upload = UploadChecksum { algorithm, coverage: Coverage::FullObject };
            assert_eq!(upload.of_parts(&[]), None);
        }
    }

    #[test]
    fn composite_checksum_is_that_of_the_digests() {
        use ChecksumAlgorithm as A;
        for algorithm in [A::Crc32, A::Crc32c, A::Sha1, A::Sha256] {
            let parts = parts_of(algorithm, &[b"one", b"two"]);
            let upload = UploadChecksum { algorithm, coverage: Coverage::Composite };
            let found = upload.of_parts(&parts).unwrap();
            assert_eq!(found.kind, ChecksumKind::Composite(2));
            let digests = [parts[0].digest.as_ref(), &parts[1].digest].concat();
            assert_eq!(Some(found.digest), digest_of(algorithm, &digests));
        }
    }

    #[test]
    fn a_digest_of_another_length_is_not_combined() {
        let part = PartChecksum { len: 1, digest: Bytes::from_static(b"123") };
        for algorithm in [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc64Nvme] {
            let upload = UploadChecksum { algorithm, coverage: Coverage::FullObject };
            assert_eq!(upload.of_parts(std::slice::from_ref(&part)), None);
        }
    }
}
