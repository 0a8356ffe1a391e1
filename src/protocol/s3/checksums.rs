//! Checksums in headers and trailers.
//!
//! Source: S3, "Checking object integrity", and the `x-amz-checksum-*` headers of `PutObject`.

use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::wire::headers;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ChecksumValue;

/// The prefix of headers and trailers with checksums.
const PREFIX: &str = "x-amz-checksum-";
/// Headers with this prefix that hold no checksum.
const OTHERS: [&str; 3] =
    ["x-amz-checksum-mode", "x-amz-checksum-type", "x-amz-checksum-algorithm"];
/// The header that names the algorithm.
const STATED: &str = "x-amz-sdk-checksum-algorithm";
/// The header that names the trailers.
const TRAILER: &str = "x-amz-trailer";

/// The algorithms that requests name, as the API and the headers spell them.
const ALGORITHMS: [(ChecksumAlgorithm, &str, &str); 5] = [
    (ChecksumAlgorithm::Crc32, "CRC32", "x-amz-checksum-crc32"),
    (ChecksumAlgorithm::Crc32c, "CRC32C", "x-amz-checksum-crc32c"),
    (ChecksumAlgorithm::Crc64Nvme, "CRC64NVME", "x-amz-checksum-crc64nvme"),
    (ChecksumAlgorithm::Sha1, "SHA1", "x-amz-checksum-sha1"),
    (ChecksumAlgorithm::Sha256, "SHA256", "x-amz-checksum-sha256"),
];

/// The header of an algorithm; `None` for those that have none.
pub(super) fn header(algorithm: ChecksumAlgorithm) -> Option<&'static str> {
    ALGORITHMS.iter().find(|(known, ..)| *known == algorithm).map(|(_, _, header)| *header)
}

/// The name of an algorithm in the API; `None` for those that have no header.
pub(super) fn name(algorithm: ChecksumAlgorithm) -> Option<&'static str> {
    ALGORITHMS.iter().find(|(known, ..)| *known == algorithm).map(|(_, name, _)| *name)
}

/// The type of a checksum (full object or composite), as answers spell it.
pub(super) const fn kind_name(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::FullObject => "FULL_OBJECT",
        ChecksumKind::Composite(_) => "COMPOSITE",
    }
}

fn of_header(header: &str) -> Option<ChecksumAlgorithm> {
    ALGORITHMS.iter().find(|(.., known)| *known == header).map(|(algorithm, ..)| *algorithm)
}

/// Whether a header is about the checksum of the body that comes with it.
pub(super) fn is_of_body(header: &str) -> bool {
    header == STATED || of_header(header).is_some()
}

/// The algorithm of that name in the API, in any case.
pub(super) fn of_name(name: &str) -> Option<ChecksumAlgorithm> {
    let found = ALGORITHMS.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(algorithm, ..)| *algorithm)
}

/// The checksum of a body, which the head contains or announces as a trailer.
///
/// # Errors
/// `InvalidInput` for several checksums, an unknown one, or one that differs from the algorithm
/// that `x-amz-sdk-checksum-algorithm` names; `ChecksumMismatch` for a value of another length.
pub(super) fn claimed(all: &HeaderMap) -> Result<ClaimedChecksums, Refusal> {
    let stated = stated_algorithm(all)?;
    let mut found = None;
    for name in all.keys().map(http::HeaderName::as_str) {
        if !name.starts_with(PREFIX) || OTHERS.contains(&name) {
            continue;
        }
        let algorithm = of_header(name).ok_or_else(|| unknown(name))?;
        let text = headers::text(all, name)?.unwrap_or("");
        let value = ChecksumValue::from_base64(algorithm, text).ok_or_else(|| malformed(name))?;
        one(&mut found, (algorithm, ChecksumClaim::Value(value)))?;
    }
    for name in trailers(all)? {
        let algorithm = of_header(&name).ok_or_else(|| {
            Refusal::new(Reason::InvalidInput)
                .message("The value specified in the x-amz-trailer header is not supported")
        })?;
        one(&mut found, (algorithm, ChecksumClaim::Trailer))?;
    }
    match (found, stated) {
        (Some((algorithm, _)), Some(stated)) if algorithm != stated => {
            Err(Refusal::new(Reason::InvalidInput)
                .message("Value for x-amz-sdk-checksum-algorithm header is invalid."))
        }
        (Some((algorithm, claim)), _) => Ok(ClaimedChecksums { wanted: Some(algorithm), claim }),
        (None, wanted) => Ok(ClaimedChecksums { wanted, claim: ChecksumClaim::None }),
    }
}

/// `x-amz-sdk-checksum-algorithm`.
fn stated_algorithm(all: &HeaderMap) -> Result<Option<ChecksumAlgorithm>, Refusal> {
    let Some(text) = headers::text(all, STATED)? else { return Ok(None) };
    of_name(text).map(Some).ok_or_else(|| {
        Refusal::new(Reason::InvalidInput)
            .message("Value for x-amz-sdk-checksum-algorithm header is invalid.")
            .detail(Detail::HeaderValue, text)
    })
}

/// The names of checksums in trailers.
fn trailers(all: &HeaderMap) -> Result<Vec<String>, Refusal> {
    let text = headers::text(all, TRAILER)?.unwrap_or("");
    let names = text.split(',').map(|name| name.trim().to_ascii_lowercase());
    Ok(names.filter(|name| !name.is_empty()).collect())
}

fn one<T>(found: &mut Option<T>, next: T) -> Result<(), Refusal> {
    if found.replace(next).is_some() {
        return Err(Refusal::new(Reason::InvalidInput).message(
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        ));
    }
    Ok(())
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(Reason::InvalidInput)
        .message("The algorithm type you specified in x-amz-checksum- header is invalid.")
        .detail(Detail::HeaderName, name)
}

/// The checksum among the trailers of a body; names are in lower case.
///
/// # Errors
/// `ChecksumMismatch` when it cannot be read.
pub fn of_trailers(fields: &[(String, String)]) -> Result<Option<ChecksumValue>, Refusal> {
    let found = fields.iter().find_map(|(name, value)| Some((name, of_header(name)?, value)));
    let Some((name, algorithm, value)) = found else { return Ok(None) };
    ChecksumValue::from_base64(algorithm, value).map(Some).ok_or_else(|| malformed(name))
}

/// The refusal of a checksum that is not base64 of the length of its algorithm.
fn malformed(name: &str) -> Refusal {
    Refusal::new(Reason::ChecksumMismatch)
        .message(format!("Value for {name} is invalid: it is not the base64 text of a checksum."))
        .detail(Detail::HeaderName, name)
}
