//! The `If-*` headers of reads and writes.

use http::HeaderMap;
use http::header::IF_MATCH;
use http::header::IF_MODIFIED_SINCE;
use http::header::IF_NONE_MATCH;
use http::header::IF_UNMODIFIED_SINCE;

use crate::protocol::model::Detail;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::wire::conditions::conditions;

/// Conditions of a read.
pub(super) fn read(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    precondition(headers)
}

/// Conditions of a write: tags only.
///
/// # Errors
/// `UnsupportedHeader` for dates, which S3 does not have on writes.
pub(super) fn write(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    for name in [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
        if headers.contains_key(&name) {
            return Err(
                Refusal::new(Reason::UnsupportedHeader).detail(Detail::HeaderName, name.as_str())
            );
        }
    }
    if headers.contains_key(IF_MATCH) && headers.contains_key(IF_NONE_MATCH) {
        return Err(Refusal::new(Reason::UnsupportedHeader)
            .message("A write has If-Match or If-None-Match, not both."));
    }
    precondition(headers)
}

fn precondition(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    Ok(Precondition {
        conditions: conditions(headers)?,
        lease: None,
        if_tags: None,
        encryption: RequestEncryption::Plain,
    })
}
