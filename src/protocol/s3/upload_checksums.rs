//! The checksums of uploads in parts: in headers, and in the document of a completion.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::s3::checksums;
use crate::protocol::wire::headers;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;
use crate::types::Coverage;
use crate::types::UploadChecksum;

/// The algorithm that an upload is to keep.
const ALGORITHM: &str = "x-amz-checksum-algorithm";
/// The header that says whether the checksum is of the full object or composite.
const KIND: &str = "x-amz-checksum-type";
/// The prefix of elements with a checksum.
const ELEMENT: &str = "Checksum";

/// The word for the type of a checksum.
pub(super) const fn coverage_word(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::FullObject => "FULL_OBJECT",
        Coverage::Composite => "COMPOSITE",
    }
}

/// The element that shows a checksum; `None` for an algorithm that S3 does not show.
pub(super) fn element(algorithm: ChecksumAlgorithm) -> Option<String> {
    checksums::name(algorithm).map(|name| format!("{ELEMENT}{name}"))
}

/// A checksum as S3 writes it: Base64, and the number of parts of a composite one.
pub(super) fn value(checksum: &ContentChecksum) -> String {
    let digest = STANDARD.encode(&checksum.digest);
    match checksum.kind {
        ChecksumKind::FullObject => digest,
        ChecksumKind::Composite(parts) => format!("{digest}-{parts}"),
    }
}

/// The checksum of a part in the element of this name; `None` for another element.
///
/// # Errors
/// `InvalidElementValue` for a malformed one.
pub(super) fn of_element(name: &str, text: &str) -> Result<Option<ContentChecksum>, Refusal> {
    let algorithm = name.strip_prefix(ELEMENT).and_then(checksums::of_name);
    let Some(algorithm) = algorithm else { return Ok(None) };
    let found = ChecksumValue::from_base64(algorithm, text);
    let invalid = || Refusal::new(Reason::InvalidElementValue).detail(Detail::ElementName, name);
    found.map(|found| Some(found.of_whole())).ok_or_else(invalid)
}

/// The checksum of all parts that a completion names.
///
/// # Errors
/// `InvalidInput` (InvalidRequest) for several, and for a malformed one.
pub(super) fn of_whole(all: &HeaderMap) -> Result<Option<ContentChecksum>, Refusal> {
    // A composite one is followed by the number of parts, which no other value has.
    let mut plain = HeaderMap::new();
    let mut parts = None;
    for (name, value) in all {
        let text = value.to_str().unwrap_or_default();
        match text.split_once('-') {
            Some((digest, count)) if name.as_str().starts_with("x-amz-checksum-") => {
                parts = count.parse().ok();
                plain.append(name, digest.parse().map_err(|_| invalid(name.as_str()))?);
                if parts.is_none() {
                    return Err(invalid(name.as_str()));
                }
            }
            Some(_) | None => drop(plain.append(name, value.clone())),
        }
    }
    match checksums::claimed(&plain)?.claim {
        ChecksumClaim::Value(value) => {
            let kind = parts.map_or(ChecksumKind::FullObject, ChecksumKind::Composite);
            Ok(Some(ContentChecksum { kind, ..value.of_whole() }))
        }
        ChecksumClaim::None | ChecksumClaim::Trailer => Ok(None),
    }
}

fn invalid(name: &str) -> Refusal {
    Refusal::new(Reason::InvalidInput).message(format!("Value for {name} header is invalid."))
}

/// Whether the checksum is of the full object or composite, if the request says so.
///
/// # Errors
/// `InvalidInput` (InvalidRequest) for another word.
pub(super) fn coverage(all: &HeaderMap) -> Result<Option<Coverage>, Refusal> {
    match headers::text(all, KIND)? {
        None => Ok(None),
        Some("FULL_OBJECT") => Ok(Some(Coverage::FullObject)),
        Some("COMPOSITE") => Ok(Some(Coverage::Composite)),
        Some(_) => Err(invalid(KIND)),
    }
}

/// The checksum that an upload is to keep.
///
/// # Errors
/// `InvalidInput` (InvalidRequest) for words and combinations that S3 does not have.
pub(super) fn of_upload(all: &HeaderMap) -> Result<Option<UploadChecksum>, Refusal> {
    let coverage = coverage(all)?;
    let Some(text) = headers::text(all, ALGORITHM)? else {
        return match coverage {
            None => Ok(None),
            Some(_) => Err(Refusal::new(Reason::InvalidInput).message(
                "The x-amz-checksum-type header can only be used with the \
                 x-amz-checksum-algorithm header.",
            )),
        };
    };
    let algorithm = checksums::of_name(text).ok_or_else(|| {
        Refusal::new(Reason::InvalidInput).message(
            "Checksum algorithm provided is unsupported. Please try again with any of the valid \
             types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
        )
    })?;
    let checksum = UploadChecksum::new(algorithm, coverage);
    checksum.map(Some).ok_or_else(|| {
        let word = coverage.map_or("", coverage_word);
        let name = text.to_ascii_lowercase();
        Refusal::new(Reason::InvalidInput).message(format!(
            "The {word} checksum type cannot be used with the {name} checksum algorithm."
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn checksums_of_a_whole_are_read_as_they_are_written() {
        for (text, kind) in
            [("AAAAAA==", ChecksumKind::FullObject), ("AAAAAA==-7", ChecksumKind::Composite(7))]
        {
            let found = of_whole(&map(&[("x-amz-checksum-crc32", text)])).unwrap().unwrap();
            assert_eq!((found.kind, value(&found).as_str()), (kind, text));
        }
        for text in ["", "AAAA", "AAAAAA==-", "AAAAAA==-x", "AAAAAA", "AAAAAAAAAAA="] {
            assert!(of_whole(&map(&[("x-amz-checksum-crc32", text)])).is_err(), "{text}");
        }
        let two = [("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-checksum-crc32c", "AAAAAA==")];
        assert!(of_whole(&map(&two)).is_err());
        assert_eq!(of_whole(&map(&[(KIND, "COMPOSITE")])).unwrap(), None);
    }

    #[test]
    fn elements_of_parts_have_checksums() {
        assert_eq!(of_element("ETag", "x").unwrap(), None);
        assert_eq!(of_element("ChecksumType", "x").unwrap(), None);
        let found = of_element("ChecksumCRC32", "AAAAAA==").unwrap().unwrap();
        assert_eq!(found.algorithm, ChecksumAlgorithm::Crc32);
        assert!(of_element("ChecksumCRC32", "AAAAAA==-7").is_err(), "a part has no parts");
        assert_eq!(element(ChecksumAlgorithm::Crc64Nvme).unwrap(), "ChecksumCRC64NVME");
        assert_eq!(element(ChecksumAlgorithm::Md5), None);
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
            assert_eq!(of(bad).unwrap_err().reason, Reason::InvalidInput, "{bad:?}");
        }
    }
}
