//! Length and checksums of a body, from the head of the request.

use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http::header::TRANSFER_ENCODING;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;
use crate::protocol::s3::checksums;
use crate::protocol::wire::headers;

/// The length of the content of a body in chunks.
const DECODED_LENGTH: &str = "x-amz-decoded-content-length";
/// The prefix of `x-amz-content-sha256` for a body in chunks.
const CHUNKED: &str = "STREAMING-";

/// Length and checksums of the body. The length is of the content: a body in chunks is longer.
///
/// # Errors
/// `MissingContentLengthHeader` (411) without a length, unless HTTP's own chunks carry the body;
/// `RequestBodyTooLarge` beyond `len_max`; `InvalidMd5`, `InvalidHeaderValue`.
pub(super) fn upload(all: &HeaderMap, len_max: u64) -> Result<Upload, Refusal> {
    of_len(all, content_len(all)?, len_max)
}

/// As [`upload`], for a body that may be missing: without a length, it is known only at the end of
/// the body, as in HTTP/2.
///
/// # Errors
/// As [`upload`], but for `MissingContentLengthHeader` of a body that is not in chunks.
pub(super) fn upload_of_any_length(all: &HeaderMap, len_max: u64) -> Result<Upload, Refusal> {
    let is_stated = all.contains_key(CONTENT_LENGTH) || all.contains_key(DECODED_LENGTH);
    let len = if is_stated { content_len(all)? } else { None };
    of_len(all, len, len_max)
}

fn of_len(all: &HeaderMap, len: Option<u64>, len_max: u64) -> Result<Upload, Refusal> {
    let md5 = headers::md5(all, "content-md5")?;
    let framing = match len {
        Some(len) => Framing::Known { len },
        None => Framing::Open { len_max },
    };
    if framing.len_max() > len_max {
        return Err(
            Refusal::new(Reason::RequestBodyTooLarge).detail(Detail::Limit, len_max.to_string())
        );
    }
    Ok(Upload { framing, md5, crc64: None, checksums: checksums::claimed(all)? })
}

/// The length of the content; `None` if it is known only at the end of the body.
///
/// # Errors
/// As [`upload`].
pub fn content_len(all: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let sha256 = all.get("x-amz-content-sha256").map(http::HeaderValue::as_bytes);
    if sha256.is_some_and(|value| value.starts_with(CHUNKED.as_bytes())) {
        let len = headers::number(all, DECODED_LENGTH)?;
        return len.map(Some).ok_or_else(|| Reason::MissingContentLengthHeader.into());
    }
    match headers::number(all, CONTENT_LENGTH.as_str())? {
        Some(len) => Ok(Some(len)),
        None if all.contains_key(TRANSFER_ENCODING) => Ok(None),
        None => Err(Reason::MissingContentLengthHeader.into()),
    }
}
