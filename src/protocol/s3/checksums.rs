//! Checksums of content, in headers and trailers. Source: S3, "Checking object integrity".

use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::wire::head::Head;
use crate::protocol::wire::headers;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;

/// An algorithm, and what S3 calls it.
struct Name {
    algorithm: ChecksumAlgorithm,
    /// In `x-amz-sdk-checksum-algorithm` and in documents.
    word: &'static str,
    header: &'static str,
}

const NAMES: [Name; 5] = [
    Name { algorithm: ChecksumAlgorithm::Crc32, word: "CRC32", header: "x-amz-checksum-crc32" },
    Name { algorithm: ChecksumAlgorithm::Crc32c, word: "CRC32C", header: "x-amz-checksum-crc32c" },
    Name {
        algorithm: ChecksumAlgorithm::Crc64Nvme,
        word: "CRC64NVME",
        header: "x-amz-checksum-crc64nvme",
    },
    Name { algorithm: ChecksumAlgorithm::Sha1, word: "SHA1", header: "x-amz-checksum-sha1" },
    Name { algorithm: ChecksumAlgorithm::Sha256, word: "SHA256", header: "x-amz-checksum-sha256" },
];

const ALGORITHM: &str = "x-amz-sdk-checksum-algorithm";
const TRAILER: &str = "x-amz-trailer";

fn named(header: &str) -> Option<&'static Name> {
    NAMES.iter().find(|name| name.header.eq_ignore_ascii_case(header.trim()))
}

/// The checksum that a request names, in a header or as a trailer.
///
/// # Errors
/// `ChecksumMismatch` when the value is malformed; `BothCrc64AndMd5HeaderPresent`, S3's
/// `InvalidRequest`, when the request names two or one that is not known.
pub(super) fn claimed(all: &HeaderMap) -> Result<ClaimedChecksums, Refusal> {
    let word = headers::text(all, ALGORITHM)?;
    let mut wanted = match word {
        None => None,
        Some(word) => {
            let known = NAMES.iter().find(|name| name.word.eq_ignore_ascii_case(word));
            Some(known.ok_or_else(|| contradictory(ALGORITHM, word))?.algorithm)
        }
    };
    let mut claim = ChecksumClaim::None;
    let mut add = |name: &Name, own: ChecksumClaim| {
        if claim != ChecksumClaim::None || wanted.is_some_and(|other| other != name.algorithm) {
            return Err(contradictory(name.header, ""));
        }
        (wanted, claim) = (Some(name.algorithm), own);
        Ok(())
    };
    for name in &NAMES {
        if let Some(text) = headers::text(all, name.header)? {
            add(name, ChecksumClaim::Value(value(name, text)?))?;
        }
    }
    for trailer in headers::text(all, TRAILER)?.into_iter().flat_map(|names| names.split(',')) {
        if let Some(name) = named(trailer) {
            add(name, ChecksumClaim::Trailer)?;
        }
    }
    Ok(ClaimedChecksums { wanted, claim })
}

/// The checksum among the trailers of a body.
///
/// # Errors
/// `ChecksumMismatch` when its value is malformed.
pub fn trailer_checksum(fields: &[(String, String)]) -> Result<Option<ChecksumValue>, Refusal> {
    let found = fields.iter().find_map(|(name, text)| Some((named(name)?, text)));
    found.map(|(name, text)| value(name, text)).transpose()
}

fn value(name: &Name, text: &str) -> Result<ChecksumValue, Refusal> {
    ChecksumValue::from_base64(name.algorithm, text.trim()).ok_or_else(|| {
        let malformed = format!("Value for {} header is invalid.", name.header);
        Refusal::new(Reason::ChecksumMismatch).message(malformed)
    })
}

fn contradictory(header: &str, value: &str) -> Refusal {
    Refusal::new(Reason::BothCrc64AndMd5HeaderPresent)
        .message("A request names one checksum: CRC32, CRC32C, CRC64NVME, SHA1 or SHA256.")
        .detail(Detail::HeaderName, header)
        .detail(Detail::HeaderValue, value)
}

/// What S3 calls an algorithm; `None` for one that S3 does not show.
pub(super) fn word(algorithm: ChecksumAlgorithm) -> Option<&'static str> {
    NAMES.iter().find(|name| name.algorithm == algorithm).map(|name| name.word)
}

/// Adds a checksum of a whole object to a head.
pub(super) fn shown(head: Head, checksum: &ContentChecksum) -> Head {
    let name = NAMES.iter().find(|name| name.algorithm == checksum.algorithm);
    let value = ChecksumValue::new(checksum.algorithm, &checksum.digest);
    let (Some(name), Some(value)) = (name, value) else { return head };
    let text = match checksum.kind {
        ChecksumKind::FullObject => value.to_base64(),
        ChecksumKind::Composite(parts) => format!("{}-{parts}", value.to_base64()),
    };
    head.set(name.header, &text).fixed("x-amz-checksum-type", kind(checksum.kind))
}

/// What S3 calls what a checksum covers.
pub(super) const fn kind(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::FullObject => "FULL_OBJECT",
        ChecksumKind::Composite(_) => "COMPOSITE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&'static str, &str)]) -> Result<ClaimedChecksums, Reason> {
        let mut all = HeaderMap::new();
        for (name, value) in lines {
            all.append(*name, value.parse().unwrap());
        }
        claimed(&all).map_err(|refusal| refusal.reason)
    }

    #[test]
    fn a_request_names_one_checksum() {
        let value = ChecksumValue::compute(ChecksumAlgorithm::Crc32c, b"hello");
        let text = value.to_base64();
        let wanted = Some(ChecksumAlgorithm::Crc32c);
        let header = ("x-amz-checksum-crc32c", text.as_str());
        let word = ("x-amz-sdk-checksum-algorithm", "CRC32C");
        let trailer = ("x-amz-trailer", "x-amz-checksum-crc32c");
        let claim = |claim| Ok(ClaimedChecksums { wanted, claim });
        assert_eq!(read(&[]), Ok(ClaimedChecksums::default()));
        assert_eq!(read(&[word]), claim(ChecksumClaim::None));
        assert_eq!(read(&[header]), claim(ChecksumClaim::Value(value)));
        assert_eq!(read(&[word, header]), claim(ChecksumClaim::Value(value)));
        assert_eq!(read(&[word, trailer]), claim(ChecksumClaim::Trailer));
        assert_eq!(read(&[("x-amz-trailer", "x-other")]), Ok(ClaimedChecksums::default()));
        for several in [
            &[header, trailer][..],
            &[header, ("x-amz-checksum-sha1", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=")],
            &[("x-amz-sdk-checksum-algorithm", "SHA256"), header],
            &[("x-amz-sdk-checksum-algorithm", "MD4")],
            &[("x-amz-trailer", "x-amz-checksum-crc32,x-amz-checksum-sha1")],
        ] {
            assert_eq!(read(several), Err(Reason::BothCrc64AndMd5HeaderPresent), "{several:?}");
        }
        for malformed in ["AAA=", "no base64", "AAAAAAAAAAA="] {
            let header = ("x-amz-checksum-crc32c", malformed);
            assert_eq!(read(&[header]), Err(Reason::ChecksumMismatch), "{malformed}");
        }
    }

    #[test]
    fn a_trailer_is_read_by_its_name() {
        let value = ChecksumValue::compute(ChecksumAlgorithm::Sha1, b"hello");
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let trailers = [field("x-other", "1"), field("x-amz-checksum-sha1", &value.to_base64())];
        assert_eq!(trailer_checksum(&trailers).unwrap(), Some(value));
        assert_eq!(trailer_checksum(&trailers[..1]).unwrap(), None);
        let malformed = trailer_checksum(&[field("x-amz-checksum-sha1", "a=")]).unwrap_err();
        assert_eq!(malformed.reason, Reason::ChecksumMismatch);
    }
}
