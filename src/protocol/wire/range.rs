//! Ranges of bytes, as `Range` has them (RFC 9110, section 14).

use crate::types::ByteRange;

/// `bytes=first-` or `bytes=first-last`; numbers beyond 64 bits mean past any end.
pub(in crate::protocol) fn byte_range(text: &str) -> Option<ByteRange> {
    let (unit, range) = text.trim().split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.split_once('-')?;
    let first = number(first.trim())?;
    let last = match last.trim() {
        "" => None,
        digits => Some(number(digits)?),
    };
    ByteRange::new(first, last)
}

/// As [`byte_range`], and `bytes=-length`: the last bytes.
pub(in crate::protocol) fn any_byte_range(text: &str) -> Option<ByteRange> {
    let (unit, range) = text.trim().split_once('=')?;
    match range.trim().strip_prefix('-') {
        Some(digits) if unit.eq_ignore_ascii_case("bytes") => {
            number(digits.trim()).map(ByteRange::suffix)
        }
        Some(_) => None,
        None => byte_range(text),
    }
}

fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}
