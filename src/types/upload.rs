//! Uploads in parts: ids, numbers of parts, limits. Source: S3, "Amazon S3 multipart upload
//! limits".

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::types::BlockId;
use crate::types::ChecksumAlgorithm;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::ContentTag;
use crate::types::Md5;
use crate::types::Md5Hasher;
use crate::types::Timestamp;

/// The most parts of an upload, and the highest number of one.
pub const UPLOAD_PARTS_MAX: u32 = 10_000;
/// The least bytes of a part that is not the last.
pub const PART_BYTES_MIN: u64 = 5 << 20;
/// The most bytes of a part.
pub const PART_BYTES_MAX: u64 = 5 << 30;

/// The id of an upload. The first 6 bytes are the time when it was started, in milliseconds since
/// 1970, so that the uploads of a blob sort by their starts; 10 random bytes follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UploadId([u8; 16]);

impl UploadId {
    /// The id of an upload that is started at `now`, from 128 random bits.
    #[must_use]
    pub fn new(now: Timestamp, random: [u64; 2]) -> Self {
        let [first, second] = random.map(u64::to_be_bytes);
        let millis = u64::try_from(now.since_unix().as_millis()).unwrap_or(0).to_be_bytes();
        let mut bytes = [0; 16];
        let from = millis.iter().skip(2).chain(first.iter().take(2)).chain(&second);
        bytes.iter_mut().zip(from).for_each(|(byte, new)| *byte = *new);
        Self(bytes)
    }

    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads what [`fmt::Display`] writes; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 16];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().try_fold(0, |byte: u8, digit| {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return None,
                };
                Some(byte << 4 | value)
            })?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for UploadId {
    /// 32 hexadecimal digits in lower case, which sort as the ids do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UploadId({self})")
    }
}

/// The number of a part: 1 to [`UPLOAD_PARTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PartNumber(u32);

impl PartNumber {
    /// A number; `None` if no part can have it.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number == 0 || number > UPLOAD_PARTS_MAX { None } else { Some(Self(number)) }
    }

    /// The bare number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The id of the block that the part becomes: the number, 4 bytes, big endian.
    ///
    /// # Panics
    /// Never: 4 bytes are an id.
    #[must_use]
    pub fn block_id(self) -> BlockId {
        BlockId::from_bytes(&self.0.to_be_bytes()).expect("an id has 1 to 64 bytes")
    }

    /// The part that became a block; `None` if no part has this id.
    #[must_use]
    pub fn of_block(id: &BlockId) -> Option<Self> {
        Self::new(u32::from_be_bytes(id.as_bytes().try_into().ok()?))
    }
}

impl<'de> Deserialize<'de> for PartNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        Self::new(number).ok_or_else(|| D::Error::custom("no part has this number"))
    }
}

/// The checksum that is kept of the content of an upload. The order of the fields is on disk.
/// Source: CreateMultipartUpload, `x-amz-checksum-algorithm` and `x-amz-checksum-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadChecksum {
    /// How it is computed; not MD5.
    pub algorithm: ChecksumAlgorithm,
    /// Whether it is of the full object or composite.
    pub coverage: Coverage,
}

/// The type of an upload's checksum: full object or composite. The order of the variants is on
/// disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coverage {
    /// All bytes of the content.
    FullObject,
    /// The checksums of the parts.
    Composite,
}

impl UploadChecksum {
    /// The checksum with this algorithm; `None` if S3 has no such combination. Without a coverage
    /// it is composite where that is possible.
    #[must_use]
    pub fn new(algorithm: ChecksumAlgorithm, coverage: Option<Coverage>) -> Option<Self> {
        use ChecksumAlgorithm as A;
        let coverage = match (algorithm, coverage) {
            (A::Md5, _)
            | (A::Crc64Nvme, Some(Coverage::Composite))
            | (A::Sha1 | A::Sha256, Some(Coverage::FullObject)) => return None,
            (A::Crc64Nvme, _) => Coverage::FullObject,
            (A::Sha1 | A::Sha256, _) => Coverage::Composite,
            (A::Crc32 | A::Crc32c, coverage) => coverage.unwrap_or(Coverage::Composite),
        };
        Some(Self { algorithm, coverage })
    }
}

/// The tag of a part: its MD5, if that is among its checksums; else an opaque one, made of bytes
/// that change with the part.
#[must_use]
pub fn part_tag(checksums: &[ContentChecksum], otherwise: &[u8]) -> ContentEtag {
    let of_md5 = |checksum: &ContentChecksum| {
        let digest = (checksum.algorithm == ChecksumAlgorithm::Md5).then_some(&checksum.digest)?;
        digest.as_ref().try_into().ok().map(|bytes| ContentEtag::md5(Md5::from_bytes(bytes)))
    };
    let opaque = || ContentEtag::opaque(*Md5::of(otherwise).as_bytes(), 1);
    checksums.iter().find_map(of_md5).unwrap_or_else(opaque)
}

/// The content tag of a blob that is made of parts with these tags. Only tags that are MD5s make
/// one of MD5s.
#[must_use]
pub fn tag_of_parts<'a>(parts: impl IntoIterator<Item = &'a ContentEtag>) -> ContentTag {
    let mut hasher = Md5Hasher::default();
    let (mut count, mut all_md5) = (0_u32, true);
    for part in parts {
        count = count.saturating_add(1);
        all_md5 &= part.as_md5().is_some();
        hasher.update(part.digits());
    }
    let digest = hasher.finish();
    if all_md5 {
        ContentTag::Parts(digest, count)
    } else {
        ContentTag::Opaque(*digest.as_bytes(), count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_shown_and_sort_by_time() {
        let at = |seconds: u64| {
            Timestamp::from_ticks(640_000_000_000_000_000)
                .plus(std::time::Duration::from_secs(seconds))
        };
        let first = UploadId::new(at(0), [u64::MAX; 2]);
        let second = UploadId::new(at(1), [0, 1]);
        assert!(first < second && first.to_string() < second.to_string());
        assert_eq!(second.to_string().len(), 32);
        assert!(second.to_string().ends_with("00000000000000000001"));
        assert_eq!(UploadId::parse(&first.to_string()), Some(first));
        let shown = first.to_string();
        for bad in ["", "ab", &shown[1..], &shown.to_uppercase(), &format!("{shown}0")] {
            assert_eq!(UploadId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn parts_are_numbered_from_1_to_10000() {
        assert_eq!(PartNumber::new(0), None);
        assert_eq!(PartNumber::new(10_001), None);
        let last = PartNumber::new(10_000).unwrap();
        assert_eq!(last.block_id().as_bytes(), [0, 0, 0x27, 0x10]);
        assert_eq!(PartNumber::of_block(&last.block_id()), Some(last));
        assert_eq!(PartNumber::of_block(&BlockId::from_bytes(b"12345").unwrap()), None);
        assert!(postcard::from_bytes::<PartNumber>(&[0]).is_err());
    }

    #[test]
    fn tag_of_parts_is_an_md5_only_of_md5s() {
        let (a, b) = (Md5::of(b"a"), Md5::of(b"b"));
        let both = [a.as_bytes().as_slice(), b.as_bytes()].concat();
        let tags = [ContentEtag::md5(a), ContentEtag::md5(b)];
        assert_eq!(tag_of_parts(&tags), ContentTag::Parts(Md5::of(&both), 2));
        let opaque = part_tag(&[], b"nonce");
        assert_eq!(opaque, ContentEtag::opaque(*Md5::of(b"nonce").as_bytes(), 1));
        let mixed = tag_of_parts(&[opaque, ContentEtag::md5(b)]);
        assert!(matches!(mixed, ContentTag::Opaque(_, 2)), "{mixed:?}");
        let of_md5 = ContentChecksum::from(a);
        assert_eq!(part_tag(&[of_md5], b""), ContentEtag::md5(a));
    }

    #[test]
    fn combinations_that_s3_does_not_have_are_refused() {
        use ChecksumAlgorithm as A;
        let coverage = |algorithm, coverage| {
            UploadChecksum::new(algorithm, coverage).map(|checksum| checksum.coverage)
        };
        let (full, composite) = (Some(Coverage::FullObject), Some(Coverage::Composite));
        assert_eq!(coverage(A::Crc32, None), composite);
        assert_eq!(coverage(A::Crc32c, full), full);
        assert_eq!(coverage(A::Crc64Nvme, None), full);
        assert_eq!(coverage(A::Crc64Nvme, composite), None);
        assert_eq!(coverage(A::Sha256, full), None);
        assert_eq!(coverage(A::Sha1, None), composite);
        assert_eq!(coverage(A::Md5, None), None);
    }
}
