//! The checksums that requests name in their heads.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::headers;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ContentChecksum;
use crate::types::Coverage;
use crate::types::UploadChecksum;

/// `x-amz-checksum-algorithm`.
const ALGORITHM: &str = "x-amz-checksum-algorithm";
/// `x-amz-checksum-type`.
const KIND: &str = "x-amz-checksum-type";

/// A kind of checksum, as S3 spells it.
struct Spelling {
    algorithm: ChecksumAlgorithm,
    /// In `x-amz-checksum-algorithm`.
    word: &'static str,
    /// The header with the value.
    header: &'static str,
    /// The element with the value.
    element: &'static str,
    /// Bytes of the digest.
    len: usize,
}

macro_rules! spellings {
    ($($algorithm:ident $word:literal $header:literal $len:literal;)*) => {
        const SPELLINGS: &[Spelling] = &[$(
            Spelling {
                algorithm: ChecksumAlgorithm::$algorithm,
                word: $word,
                header: concat!("x-amz-checksum-", $header),
                element: concat!("Checksum", $word),
                len: $len,
            },
        )*];
    };
}

spellings! {
    Crc32 "CRC32" "crc32" 4;
    Crc32c "CRC32C" "crc32c" 4;
    Crc64Nvme "CRC64NVME" "crc64nvme" 8;
    Sha1 "SHA1" "sha1" 20;
    Sha256 "SHA256" "sha256" 32;
}

fn spelling(algorithm: ChecksumAlgorithm) -> Option<&'static Spelling> {
    SPELLINGS.iter().find(|spelling| spelling.algorithm == algorithm)
}

/// The word for an algorithm in headers and documents; `None` for MD5.
pub(super) fn word(algorithm: ChecksumAlgorithm) -> Option<&'static str> {
    spelling(algorithm).map(|spelling| spelling.word)
}

/// The header that shows a checksum; `None` for MD5.
pub(super) fn header(algorithm: ChecksumAlgorithm) -> Option<&'static str> {
    spelling(algorithm).map(|spelling| spelling.header)
}

/// The element that shows a checksum; `None` for MD5.
pub(super) fn element(algorithm: ChecksumAlgorithm) -> Option<&'static str> {
    spelling(algorithm).map(|spelling| spelling.element)
}

/// The word for what a checksum covers.
pub(super) const fn coverage_word(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::FullObject => "FULL_OBJECT",
        Coverage::Composite => "COMPOSITE",
    }
}

/// A checksum as S3 writes it: Base64, and the number of parts of a composite one.
pub(super) fn value(checksum: &ContentChecksum) -> String {
    let digest = STANDARD.encode(&checksum.digest);
    match checksum.kind {
        ChecksumKind::FullObject => digest,
        ChecksumKind::Composite(parts) => format!("{digest}-{parts}"),
    }
}

/// Reads a value; `None` if it is malformed.
fn read(spelling: &Spelling, text: &str) -> Option<ContentChecksum> {
    let (digest, kind) = match text.split_once('-') {
        Some((digest, parts)) => (digest, ChecksumKind::Composite(parts.parse().ok()?)),
        None => (text, ChecksumKind::FullObject),
    };
    let digest = STANDARD.decode(digest).ok().filter(|digest| digest.len() == spelling.len)?;
    Some(ContentChecksum { algorithm: spelling.algorithm, kind, digest: Bytes::from(digest) })
}

/// The checksum of a part in the element of this name; `None` for another element.
///
/// # Errors
/// `InvalidElementValue` for a malformed one.
pub(super) fn of_element(name: &str, text: &str) -> Result<Option<ContentChecksum>, Refusal> {
    let Some(spelling) = SPELLINGS.iter().find(|spelling| spelling.element == name) else {
        return Ok(None);
    };
    let found = read(spelling, text).filter(|found| found.kind == ChecksumKind::FullObject);
    let invalid = || Refusal::new(Reason::InvalidElementValue).detail(Detail::ElementName, name);
    found.map(Some).ok_or_else(invalid)
}

/// The checksum of all parts that a completion names.
///
/// # Errors
/// `UploadMismatch` (InvalidRequest) for a malformed one, and for several.
pub(super) fn of_whole(all: &HeaderMap) -> Result<Option<ContentChecksum>, Refusal> {
    let mut found = None;
    for spelling in SPELLINGS {
        let Some(text) = headers::text(all, spelling.header)? else { continue };
        if found.is_some() {
            return Err(Refusal::new(Reason::UploadMismatch)
                .message("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."));
        }
        found = Some(read(spelling, text).ok_or_else(|| {
            Refusal::new(Reason::UploadMismatch)
                .message(format!("Value for {} header is invalid.", spelling.header))
        })?);
    }
    Ok(found)
}

/// What the checksum covers, if the request says so.
///
/// # Errors
/// `UploadMismatch` (InvalidRequest) for another word.
pub(super) fn coverage(all: &HeaderMap) -> Result<Option<Coverage>, Refusal> {
    match headers::text(all, KIND)? {
        None => Ok(None),
        Some("FULL_OBJECT") => Ok(Some(Coverage::FullObject)),
        Some("COMPOSITE") => Ok(Some(Coverage::Composite)),
        Some(_) => Err(Refusal::new(Reason::UploadMismatch)
            .message("Value for x-amz-checksum-type header is invalid.")),
    }
}

/// The checksum that an upload is to keep.
///
/// # Errors
/// `UploadMismatch` (InvalidRequest) for words and combinations that S3 does not have.
pub(super) fn of_upload(all: &HeaderMap) -> Result<Option<UploadChecksum>, Refusal> {
    let coverage = coverage(all)?;
    let Some(text) = headers::text(all, ALGORITHM)? else {
        return match coverage {
            None => Ok(None),
            Some(_) => Err(Refusal::new(Reason::UploadMismatch).message(
                "The x-amz-checksum-type header can only be used with the \
                 x-amz-checksum-algorithm header.",
            )),
        };
    };
    let spelling = SPELLINGS.iter().find(|spelling| spelling.word.eq_ignore_ascii_case(text));
    let Some(spelling) = spelling else {
        return Err(Refusal::new(Reason::UploadMismatch).message(
            "Checksum algorithm provided is unsupported. Please try again with any of the valid \
             types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
        ));
    };
    let checksum = UploadChecksum::new(spelling.algorithm, coverage);
    checksum.map(Some).ok_or_else(|| {
        let word = coverage.map_or("", coverage_word);
        Refusal::new(Reason::UploadMismatch).message(format!(
            "The {word} checksum type cannot be used with the {} checksum algorithm.",
            spelling.word.to_ascii_lowercase()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn checksums_are_read_as_they_are_written() {
        for (text, kind) in [("AAAAAA==", ChecksumKind::FullObject), ("AAAAAA==-7", ChecksumKind::Composite(7))] {
            let found = read(&SPELLINGS[0], text).unwrap();
            assert_eq!((found.kind, value(&found).as_str()), (kind, text));
        }
        for text in ["", "AAAA", "AAAAAA==-", "AAAAAA==-x", "AAAAAA", "AAAAAAAAAAA="] {
            assert_eq!(read(&SPELLINGS[0], text), None, "{text}");
        }
        assert_eq!(of_element("ETag", "x").unwrap(), None);
        assert!(of_element("ChecksumCRC32", "AAAAAA==-7").is_err(), "a part has no parts");
        assert_eq!(element(ChecksumAlgorithm::Crc64Nvme), Some("ChecksumCRC64NVME"));
        assert_eq!(header(ChecksumAlgorithm::Md5), None);
    }

    #[test]
    fn a_request_names_one_checksum() {
        let two = map(&[("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-checksum-crc32c", "AAAAAA==")]);
        assert_eq!(of_whole(&two).unwrap_err().reason, Reason::UploadMismatch);
        let bad = map(&[("x-amz-checksum-sha1", "AAAAAA==")]);
        assert_eq!(of_whole(&bad).unwrap_err().reason, Reason::UploadMismatch);
        assert_eq!(of_whole(&map(&[])).unwrap(), None);
    }

    #[test]
    fn an_upload_keeps_what_s3_can_keep() {
        let of = |pairs: &[(&'static str, &'static str)]| of_upload(&map(pairs));
        assert_eq!(of(&[]).unwrap(), None);
        let sha = of(&[(ALGORITHM, "SHA256")]).unwrap().unwrap();
        assert_eq!((sha.algorithm, sha.coverage), (ChecksumAlgorithm::Sha256, Coverage::Composite));
        let crc = of(&[(ALGORITHM, "CRC32"), (KIND, "FULL_OBJECT")]).unwrap().unwrap();
        assert_eq!(crc.coverage, Coverage::FullObject);
        for bad in [
            &[(ALGORITHM, "MD4")][..],
            &[(ALGORITHM, "SHA1"), (KIND, "FULL_OBJECT")],
            &[(ALGORITHM, "CRC64NVME"), (KIND, "COMPOSITE")],
            &[(KIND, "COMPOSITE")],
            &[(ALGORITHM, "CRC32"), (KIND, "composite")],
        ] {
            assert_eq!(of(bad).unwrap_err().reason, Reason::UploadMismatch, "{bad:?}");
        }
    }
}
