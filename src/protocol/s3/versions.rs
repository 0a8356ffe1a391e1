//! The ids of versions of objects.
//!
//! Source: S3, "Retaining multiple versions of objects with S3 Versioning".

#![deny(clippy::indexing_slicing)]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::query::Query;
use crate::types::Revision;
use crate::types::Timestamp;
use crate::types::VersionId;

/// The parameter that names a version.
pub(super) const PARAMETER: &str = "versionId";
/// The id of the null version.
pub(super) const NULL: &str = "null";

/// The id of a version, as S3 shows it.
pub(super) fn id(version: VersionId) -> String {
    if version.is_null { NULL.to_owned() } else { id_of(version.time) }
}

/// The id of the version of a time: its ticks, big endian, in URL-safe Base64.
pub(super) fn id_of(time: Timestamp) -> String {
    URL_SAFE_NO_PAD.encode(time.ticks().to_be_bytes())
}

/// The version that an id names; `None` if no version has such an id.
pub(super) fn of_id(text: &str) -> Option<Revision> {
    if text == NULL {
        return Some(Revision::Null);
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let ticks = u64::from_be_bytes(bytes.try_into().ok()?);
    // In the rows the highest bit distinguishes versions from snapshots.
    (ticks >> 63 == 0).then(|| Revision::Version(Timestamp::from_ticks(ticks)))
}

/// The version that a request names; the current object if it names none.
///
/// # Errors
/// `InvalidQueryParameterValue` for a value that is not a version id.
pub(super) fn revision(query: &Query) -> Result<Revision, Refusal> {
    match query.get(PARAMETER)? {
        Some(text) => of_id(text).ok_or_else(|| invalid(text)),
        None if query.has(PARAMETER) => Err(wrong("Version id cannot be the empty string", "")),
        None => Ok(Revision::Current),
    }
}

/// The refusal of a text that is not a version id.
pub(super) fn invalid(text: &str) -> Refusal {
    wrong("Invalid version id specified", text)
}

fn wrong(message: &str, text: &str) -> Refusal {
    Refusal::new(Reason::InvalidQueryParameterValue)
        .message(message)
        .detail(Detail::ParameterName, PARAMETER)
        .detail(Detail::ParameterValue, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let time = Timestamp::from_ticks(638_000_000_000_000_001);
        assert_eq!(id(VersionId { time, is_null: false }), "CNqhnqazAAE");
        assert_eq!(of_id("CNqhnqazAAE"), Some(Revision::Version(time)));
        assert_eq!(id(VersionId::null(time)), "null");
        assert_eq!(of_id("null"), Some(Revision::Null));
        for text in ["", "x", "Null", "CNqhnqazAAF", "CNqhnqazAAE=", "__________8", "CNqhnqazAAEA"]
        {
            assert_eq!(of_id(text), None, "{text}");
        }
    }
}
