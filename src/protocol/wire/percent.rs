//! Percent-encoding of URLs (RFC 3986).

use percent_encoding::percent_decode_str;

/// Strict decoding to UTF-8; `None` when an escape is broken, or the text is not UTF-8.
pub(in crate::protocol) fn decode(raw: &str) -> Option<String> {
    if !escapes_are_whole(raw) {
        return None;
    }
    percent_decode_str(raw).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Whether each `%` has two hexadecimal digits behind it.
pub(in crate::protocol) fn escapes_are_whole(raw: &str) -> bool {
    raw.split('%').skip(1).all(|piece| {
        matches!(piece.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
    })
}
