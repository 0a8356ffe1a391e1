//! Whether a bucket keeps versions of its objects.
//!
//! Source: S3, `PutBucketVersioning`.

#![deny(clippy::indexing_slicing)]

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
use crate::types::Versioning;

/// The longest document, bytes.
const DOCUMENT_BYTES_MAX: u64 = 4 * 1024;

/// `GetBucketVersioning`.
pub(super) fn get(request: &Request<'_>) -> Result<Parsed, Refusal> {
    settings::operation(request, SettingAction::GetVersioning)
}

/// `PutBucketVersioning`.
///
/// # Errors
/// `UnsupportedHeader` for a code of multi-factor authentication.
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
pub(super) fn read(bytes: &[u8]) -> Result<Versioning, Refusal> {
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
