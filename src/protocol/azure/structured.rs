//! Structured message bodies: content in numbered segments, each followed by its CRC-64, all
//! followed by that of the whole (`x-ms-structured-body: XSM/1.0; properties=crc64`).
//!
//! | part | fields, little endian |
//! |---|---|
//! | header | version u8 = 1, length u64, flags u16 (1: checksums), segments u16, 1 or more |
//! | segment | number u16 from 1, length u64, its bytes, CRC-64 of them u64 (with the flag) |
//! | trailer | CRC-64 of all content u64 (with the flag) |
//!
//! Source: Blob REST "Structured body format".

mod decode;
mod encode;

use http::HeaderMap;
use http::HeaderValue;
use http::Method;
use http::header::CONTENT_LENGTH;

use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::azure::names::STRUCTURED_LENGTH as LENGTH_HEADER;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

pub use crate::protocol::azure::names::STRUCTURED_BODY as BODY_HEADER;

pub use decode::Decoder;
pub use encode::Encoder;

/// The only value of the header that is served.
pub const STRUCTURED_BODY: &str = "XSM/1.0; properties=crc64";

const VERSION: u8 = 1;
const FLAG_CRC64: u16 = 1;
const HEADER_LEN: u64 = 13;
const SEGMENT_HEADER_LEN: u64 = 10;
const CHECKSUM_LEN: u64 = 8;

/// Operations with a structured body, by `comp`; Get Blob answers with one.
const WRITES: &[Option<&str>] = &[None, Some("block"), Some("page"), Some("appendblock")];

/// Whether an operation takes the headers. Where it does not, they are refused, not ignored.
pub(super) fn is_served(method: &Method, comp: Option<&str>, all: &HeaderMap) -> bool {
    match *method {
        Method::PUT => WRITES.contains(&comp) && !all.contains_key(&names::COPY_SOURCE),
        Method::GET => comp.is_none(),
        _ => false,
    }
}

/// Makes the head of an upload's answer say that the body was taken as a structured message.
pub fn confirm(head: &mut HeaderMap) {
    head.insert(&BODY_HEADER, HeaderValue::from_static(STRUCTURED_BODY));
}

/// Makes the head of a Get Blob that of its structured form; the encoder makes its body. `None`
/// when there is no body.
pub fn announce(head: &mut HeaderMap) -> Option<Encoder> {
    let length = head.get(CONTENT_LENGTH)?;
    let encoder = Encoder::new(length.to_str().ok()?.parse().ok()?);
    head.insert(&LENGTH_HEADER, length.clone());
    head.insert(CONTENT_LENGTH, encoder.message_len().into());
    confirm(head);
    // It is of what would have been sent without.
    head.remove("content-md5");
    Some(encoder)
}

/// Whether the head names the format.
pub(super) fn named(all: &HeaderMap) -> Result<bool, Refusal> {
    let Some(text) = headers::text(all, &BODY_HEADER)? else {
        return match headers::text(all, &LENGTH_HEADER)? {
            Some(text) => Err(headers::invalid(LENGTH_HEADER.as_str(), text)),
            None => Ok(false),
        };
    };
    let plain: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    if plain.eq_ignore_ascii_case("XSM/1.0;properties=crc64") {
        Ok(true)
    } else {
        Err(headers::invalid(BODY_HEADER.as_str(), text))
    }
}

/// The length of the content of a structured request body; `None` when the body is plain.
pub(super) fn content_len(all: &HeaderMap) -> Result<Option<u64>, Refusal> {
    if !named(all)? {
        return Ok(None);
    }
    let text = headers::text(all, &LENGTH_HEADER)?.ok_or_else(|| {
        Refusal::new(Reason::MissingRequiredHeader)
            .detail(Detail::HeaderName, LENGTH_HEADER.as_str())
    })?;
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let len = if digits { text.parse().ok() } else { None };
    len.map(Some).ok_or_else(|| headers::invalid(LENGTH_HEADER.as_str(), text))
}

/// A body that does not keep to the format.
fn broken(what: &str) -> Refusal {
    Refusal::new(Reason::InvalidInput)
        .message(format!("The structured message is not well formed: {what}."))
}

#[cfg(test)]
mod tests;
