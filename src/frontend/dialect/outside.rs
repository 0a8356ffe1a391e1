//! The request of a copy to another server, and the headers of that server's answer. The server is
//! an Azure storage service or any web server, in whatever dialect the copy was requested.

use http::Extensions;
use http::HeaderMap;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use http::header::RANGE;

use crate::frontend::dialect::header_case::respelled;
use crate::frontend::source::Facts;
use crate::protocol::azure;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::CopySource;
use crate::types::BlobKind;

/// The headers of a request for a source.
///
/// # Errors
/// `InvalidHeaderValue` when the token is not a valid header value.
pub(in crate::frontend) fn headers(source: &CopySource) -> Result<HeaderMap, Refusal> {
    let mut headers = azure::source_headers(source)?;
    let text = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| Refusal::from(Reason::InvalidHeaderValue))
    };
    if let Some(range) = source.range {
        headers.insert(RANGE, text(&range.to_string())?);
    }
    if let Some(token) = &source.authorization {
        headers.insert(AUTHORIZATION, text(token)?);
    }
    if source.authorization.is_some() || source.key.is_some() {
        // A storage service accepts tokens and keys only with versions that know them.
        headers.insert("x-ms-version", HeaderValue::from_static("2021-12-02"));
    }
    Ok(headers)
}

/// The refusal of a key that would travel to another server in the clear.
pub(in crate::frontend) fn key_is_unsafe() -> Refusal {
    azure::source_key_is_unsafe()
}

/// The properties of a blob in the answer of a storage service, or of a file in that of any server.
pub(in crate::frontend) fn facts(headers: &HeaderMap, extensions: &Extensions) -> Facts {
    let (properties, metadata) = azure::read_blob_headers(headers);
    let metadata = respelled(metadata, headers, extensions);
    let kind = match headers.get("x-ms-blob-type").and_then(|kind| kind.to_str().ok()) {
        Some("AppendBlob") => {
            let sealed = headers.get("x-ms-blob-sealed").is_some_and(|sealed| sealed == "true");
            BlobKind::Append { blocks: 0, sealed }
        }
        Some("PageBlob") => {
            let sequence = headers.get("x-ms-blob-sequence-number");
            let sequence = sequence.and_then(|number| number.to_str().ok()?.parse().ok());
            BlobKind::Page { sequence: sequence.unwrap_or(0) }
        }
        Some(_) | None => BlobKind::Block,
    };
    let (tags, content_tag) = (crate::types::Tags::default(), None);
    let (archived, checksums) = (false, Vec::new());
    Facts { kind, properties, metadata, archived, tags, content_tag, checksums }
}

/// The error code of an answer.
pub(in crate::frontend) fn error_code(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-ms-error-code").and_then(|code| code.to_str().ok())
}
