//! Length and checksums of a body, as its head says.

use http::HeaderMap;
use http::header::CONTENT_LENGTH;

use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::azure::structured;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;
use crate::types::Crc64;

/// Length and checksums of the body.
pub(super) fn upload(all: &HeaderMap, len_max: u64) -> Result<Upload, Refusal> {
    let md5 = headers::md5(all, &names::CONTENT_MD5)?;
    let crc64 = match headers::text(all, &names::CONTENT_CRC64)? {
        None => None,
        Some(value) => Some(
            Crc64::from_base64(value)
                .ok_or_else(|| headers::invalid("x-ms-content-crc64", value))?,
        ),
    };
    if md5.is_some() && crc64.is_some() {
        return Err(Reason::BothCrc64AndMd5HeaderPresent.into());
    }
    let text = headers::text(all, &CONTENT_LENGTH)?.ok_or(Reason::MissingContentLengthHeader)?;
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let len: u64 = if digits {
        text.parse().unwrap_or(u64::MAX)
    } else {
        return Err(headers::invalid("Content-Length", text));
    };
    let framing = match structured::content_len(all)? {
        None => Framing::Known { len },
        Some(content_len) => Framing::Segmented { len: content_len, message_len: len },
    };
    if framing.len_max() > len_max {
        return Err(
            Refusal::new(Reason::RequestBodyTooLarge).detail(Detail::Limit, len_max.to_string())
        );
    }
    Ok(Upload { framing, md5, crc64, checksums: ClaimedChecksums::default() })
}
