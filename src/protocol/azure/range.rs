//! `x-ms-range`, `Range` and the checksum flags of Get Blob.
//!
//! Source: Blob REST "Specifying the range header for Blob service operations", "Get Blob".

use http::HeaderMap;

use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RangeChecksum;
use crate::protocol::wire::range::byte_range;
use crate::types::ByteRange;

/// The wanted bytes. A malformed `Range` asks for the whole blob, as HTTP says; `x-ms-range` is the
/// service's own, so a malformed one is an error.
pub(super) fn range(all: &HeaderMap) -> Result<Option<ByteRange>, Refusal> {
    if let Some(text) = headers::text(all, &names::RANGE)? {
        return byte_range(text).map(Some).ok_or_else(|| headers::invalid("x-ms-range", text));
    }
    let plain = all.get(http::header::RANGE).and_then(|value| value.to_str().ok());
    Ok(plain.and_then(byte_range))
}

/// The requested checksum. An open range passes here: its length is known only with the blob's.
pub(super) fn checksum(
    all: &HeaderMap,
    range: Option<ByteRange>,
) -> Result<Option<RangeChecksum>, Refusal> {
    let md5 = headers::flag(all, &names::RANGE_MD5)?;
    let crc64 = headers::flag(all, &names::RANGE_CRC64)?;
    let (name, kind) = match (md5, crc64) {
        (false, false) => return Ok(None),
        (true, true) => return Err(Reason::BothCrc64AndMd5HeaderPresent.into()),
        (true, false) => (names::RANGE_MD5.as_str(), RangeChecksum::Md5),
        (false, true) => (names::RANGE_CRC64.as_str(), RangeChecksum::Crc64),
    };
    let Some(range) = range else { return Err(headers::invalid(name, "true")) };
    let longest = range.within(u64::MAX).map_or(0, |r| r.end - r.start);
    if longest > RangeChecksum::BYTES_MAX && !is_open(range) {
        return Err(kind.too_long());
    }
    Ok(Some(kind))
}

fn is_open(range: ByteRange) -> bool {
    range.within(u64::MAX).is_none_or(|r| r.end == u64::MAX)
}
