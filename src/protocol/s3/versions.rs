//! Versions of objects: their ids, and whether a bucket keeps them.
//!
//! Source: S3, "Retaining multiple versions of objects with S3 Versioning".

#![deny(clippy::indexing_slicing)]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::SettingAction;
use crate::protocol::model::operation::SettingOperation;
use crate::protocol::s3::documents;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::settings;
use crate::protocol::wire::xml;
use crate::types::Revision;
use crate::types::Timestamp;
use crate::types::VersionId;
use crate::types::Versioning;

/// The parameter that names a version.
pub(super) const PARAMETER: &str = "versionId";
/// The id of the null version.
pub(super) const NULL: &str = "null";
/// The longest document, bytes.
const DOCUMENT_BYTES_MAX: u64 = 4 * 1024;

/// The id of a version, as S3 shows it.
pub(super) fn id(version: VersionId) -> String {
    if version.is_null { NULL.to_owned() } else { id_of(version.time) }
}

/// The id of the version of a time: its ticks, big endian, in URL-safe Base64.
pub(super) fn id_of(time: Timestamp) -> String {
    URL_SAFE_NO_PAD.encode(time.ticks().to_be_bytes())
}

/// The version that an id names; `None` if no version has such an id.
pub fn of_id(text: &str) -> Option<Revision> {
    if text == NULL {
        return Some(Revision::Null);
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let ticks = u64::from_be_bytes(bytes.try_into().ok()?);
    // The highest bit tells versions from snapshots in the rows.
    (ticks >> 63 == 0).then(|| Revision::Version(Timestamp::from_ticks(ticks)))
}

/// The version that a request names; the current object if it names none.
///
/// # Errors
/// `InvalidQueryParameterValue` for what is no id of a version.
pub(super) fn revision(request: &Request<'_>) -> Result<Revision, Refusal> {
    match request.query.get(PARAMETER)? {
        Some(text) => of_id(text).ok_or_else(|| invalid(text)),
        None if request.query.has(PARAMETER) => {
            Err(wrong("Version id cannot be the empty string", ""))
        }
        None => Ok(Revision::Current),
    }
}

/// The refusal of what is no id of a version.
pub(super) fn invalid(text: &str) -> Refusal {
    wrong("Invalid version id specified", text)
}

fn wrong(message: &str, text: &str) -> Refusal {
    Refusal::new(Reason::InvalidQueryParameterValue)
        .message(message)
        .detail(Detail::ParameterName, PARAMETER)
        .detail(Detail::ParameterValue, text)
}

/// `GetBucketVersioning`.
pub(super) fn get(request: &Request<'_>) -> Result<Parsed, Refusal> {
    settings::operation(request, SettingAction::GetVersioning)
}

/// `PutBucketVersioning`.
///
/// # Errors
/// `UnsupportedHeader` for the code of a device of multi-factor authentication.
pub(super) fn put(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let action = SettingAction::SetVersioning(Versioning::Enabled);
    let set =
        ContainerOperation::Setting(SettingOperation { container: request.bucket()?, action });
    documents::completed_by(request, set, DOCUMENT_BYTES_MAX, decode)
}

fn decode(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Container(ContainerOperation::Setting(setting)) = operation {
        setting.action = SettingAction::SetVersioning(read(document.bytes)?);
        return Ok(());
    }
    Err(Reason::InternalError.into())
}

/// Reads the document.
///
/// # Errors
/// `InvalidDocument`, `IllegalVersioning`; `NotImplemented` for deletions that need multi-factor
/// authentication.
pub fn read(bytes: &[u8]) -> Result<Versioning, Refusal> {
    let root = xml::parse(bytes, "VersioningConfiguration")?;
    root.only(&["Status", "MfaDelete"])?;
    match root.child_text("MfaDelete").map(str::trim) {
        None | Some("Disabled") => {}
        Some("Enabled") => {
            return Err(Refusal::new(Reason::NotImplemented)
                .message("Blockyard does not serve MFA delete."));
        }
        Some(other) => return Err(xml::invalid_value("MfaDelete", other)),
    }
    match root.child_text("Status").map(str::trim) {
        Some("Enabled") => Ok(Versioning::Enabled),
        Some("Suspended") => Ok(Versioning::Suspended),
        Some(other) => Err(xml::invalid_value("Status", other)),
        None => Err(Refusal::new(Reason::IllegalVersioning)
            .message("The Versioning element must be specified")),
    }
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

    #[test]
    fn documents_say_enabled_or_suspended() {
        let of = |inner: &str| {
            read(format!("<VersioningConfiguration>{inner}</VersioningConfiguration>").as_bytes())
                .map_err(|refusal| refusal.reason)
        };
        assert_eq!(of("<Status>Enabled</Status>"), Ok(Versioning::Enabled));
        let both = "<MfaDelete>Disabled</MfaDelete><Status>Suspended</Status>";
        assert_eq!(of(both), Ok(Versioning::Suspended));
        for (inner, reason) in [
            ("", Reason::IllegalVersioning),
            ("<Status>enabled</Status>", Reason::InvalidElementValue),
            ("<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>", Reason::NotImplemented),
            ("<Status>Enabled</Status><MfaDelete>x</MfaDelete>", Reason::InvalidElementValue),
        ] {
            assert_eq!(of(inner), Err(reason), "{inner}");
        }
    }
}
