//! Object lock: headers of writes, retention and legal hold of objects, configurations of buckets.
//!
//! Source: S3, "Locking objects with Object Lock", `PutObjectRetention`, `PutObjectLegalHold`,
//! `PutObjectLockConfiguration`.

#![deny(clippy::indexing_slicing)]

use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::LockPart;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::SettingAction;
use crate::protocol::model::operation::SettingOperation;
use crate::protocol::model::operation::Upload;
use crate::protocol::s3::conditions;
use crate::protocol::s3::documents;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::settings;
use crate::protocol::wire::headers;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::types::DefaultRetention;
use crate::types::LockClaim;
use crate::types::ObjectLock;
use crate::types::Retention;
use crate::types::RetentionMode;
use crate::types::RetentionPeriod;
use crate::types::Timestamp;

const MODE: &str = "x-amz-object-lock-mode";
const UNTIL: &str = "x-amz-object-lock-retain-until-date";
const LEGAL_HOLD: &str = "x-amz-object-lock-legal-hold";
const BYPASS: &str = "x-amz-bypass-governance-retention";
const BUCKET: &str = "x-amz-bucket-object-lock-enabled";
/// The longest document, bytes.
const DOCUMENT_BYTES_MAX: u64 = 4 * 1024;
/// The longest default retention.
const DAYS_MAX: u32 = 36_500;
const YEARS_MAX: u32 = 100;

/// The word for a mode.
pub(super) const fn mode_word(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Unlocked => "GOVERNANCE",
        RetentionMode::Locked => "COMPLIANCE",
    }
}

fn mode(text: &str) -> Option<RetentionMode> {
    let modes = [RetentionMode::Unlocked, RetentionMode::Locked];
    modes.into_iter().find(|mode| mode_word(*mode) == text)
}

/// The word for whether an object is under a legal hold.
pub(super) const fn hold_word(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

fn hold(text: &str) -> Option<bool> {
    [true, false].into_iter().find(|on| hold_word(*on) == text)
}

/// Reads the protection that a write requests for the object that it makes. Dates are rounded up to
/// whole seconds: Azure's protocol shows no more.
///
/// # Errors
/// `InvalidHeaderValue`.
pub(super) fn claim(all: &HeaderMap) -> Result<LockClaim, Refusal> {
    let refused = |name, text, message: &str| headers::invalid(name, text).message(message);
    let retention = match (conditions::given(all, MODE)?, conditions::given(all, UNTIL)?) {
        (None, None) => None,
        (Some(mode_text), Some(date)) => {
            let mode = mode(mode_text)
                .ok_or_else(|| refused(MODE, mode_text, "Unknown wormMode directive."))?;
            let until = Timestamp::from_iso(date).ok_or_else(|| {
                refused(UNTIL, date, "The retain until date must be provided in ISO 8601 format")
            })?;
            Some(Retention { mode, until: until.seconds_up() })
        }
        (mode, _) => {
            let name = if mode.is_some() { UNTIL } else { MODE };
            return Err(refused(
                name,
                "",
                "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be \
                 supplied",
            ));
        }
    };
    let legal_hold = conditions::given(all, LEGAL_HOLD)?.map(|text| {
        hold(text)
            .ok_or_else(|| refused(LEGAL_HOLD, text, "Legal Hold must be either of 'ON' or 'OFF'"))
    });
    Ok(LockClaim { retention, legal_hold: legal_hold.transpose()?, bypass: false })
}

/// Refuses a PUT that protects its object and has no checksum of it.
///
/// # Errors
/// `InvalidInput`.
pub(super) fn check_integrity(claim: &LockClaim, upload: &Upload) -> Result<(), Refusal> {
    let is_checked = upload.md5.is_some() || upload.checksums.claim != ChecksumClaim::None;
    if !claim.protects() || is_checked {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidInput).message(
        "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with \
         Object Lock parameters",
    ))
}

/// Whether the sender wants to bypass retentions in governance mode.
///
/// # Errors
/// `InvalidHeaderValue`.
pub(super) fn bypass(all: &HeaderMap) -> Result<bool, Refusal> {
    conditions::given(all, BYPASS)?;
    headers::flag(all, BYPASS)
}

/// Whether a new bucket has object lock.
///
/// # Errors
/// `InvalidHeaderValue`.
pub(super) fn of_new_bucket(all: &HeaderMap) -> Result<bool, Refusal> {
    conditions::given(all, BUCKET)?;
    headers::flag(all, BUCKET)
}

/// `GetObjectRetention`.
pub(super) fn get_retention(request: &Request<'_>) -> Result<Parsed, Refusal> {
    get(request, LockPart::Retention)
}

/// `GetObjectLegalHold`.
pub(super) fn get_legal_hold(request: &Request<'_>) -> Result<Parsed, Refusal> {
    get(request, LockPart::LegalHold)
}

fn get(request: &Request<'_>, part: LockPart) -> Result<Parsed, Refusal> {
    Ok(Parsed::ready(BlobOperation::GetBlobLock { path: request.object()?, part }.into()))
}

/// `PutObjectRetention`.
pub(super) fn put_retention(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let lock = LockClaim { bypass: bypass(request.headers)?, ..LockClaim::default() };
    let precondition = Precondition { lock, ..Precondition::default() };
    let set =
        BlobOperation::SetBlobRetention { path: request.object()?, precondition, retention: None };
    documents::completed_by(request, set, DOCUMENT_BYTES_MAX, decode_retention)
}

/// `PutObjectLegalHold`.
pub(super) fn put_legal_hold(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (path, precondition) = (request.object()?, Precondition::default());
    let set = BlobOperation::SetBlobLegalHold { path, precondition, on: true };
    documents::completed_by(request, set, DOCUMENT_BYTES_MAX, decode_legal_hold)
}

/// `GetObjectLockConfiguration`.
pub(super) fn get_configuration(request: &Request<'_>) -> Result<Parsed, Refusal> {
    settings::operation(request, SettingAction::GetObjectLock)
}

/// `PutObjectLockConfiguration`.
pub(super) fn put_configuration(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let action = SettingAction::SetObjectLock(ObjectLock { default: None });
    let set =
        ContainerOperation::Setting(SettingOperation { container: request.bucket()?, action });
    documents::completed_by(request, set, DOCUMENT_BYTES_MAX, decode_configuration)
}

fn decode_retention(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Blob(BlobOperation::SetBlobRetention { retention, .. }) = operation {
        *retention = read_retention(document.bytes)?;
        return Ok(());
    }
    Err(Reason::InternalError.into())
}

fn decode_legal_hold(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Blob(BlobOperation::SetBlobLegalHold { on, .. }) = operation {
        *on = read_legal_hold(document.bytes)?;
        return Ok(());
    }
    Err(Reason::InternalError.into())
}

fn decode_configuration(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Container(ContainerOperation::Setting(setting)) = operation {
        setting.action = SettingAction::SetObjectLock(read_configuration(document.bytes)?);
        return Ok(());
    }
    Err(Reason::InternalError.into())
}

/// Reads a `Retention`; an empty one ends the retention.
///
/// # Errors
/// `InvalidDocument`, `InvalidElementValue`, `MissingElement`, `UnsupportedElement`.
pub(super) fn read_retention(bytes: &[u8]) -> Result<Option<Retention>, Refusal> {
    let root = xml::parse(bytes, "Retention")?;
    root.only(&["Mode", "RetainUntilDate"])?;
    if root.children.is_empty() {
        return Ok(None);
    }
    let mode = mode_of(&root)?;
    let date = documents::needed(&root, "RetainUntilDate")?.trim();
    let until =
        Timestamp::from_iso(date).ok_or_else(|| xml::invalid_value("RetainUntilDate", date))?;
    Ok(Some(Retention { mode, until: until.seconds_up() }))
}

/// Reads a `LegalHold`.
///
/// # Errors
/// As [`read_retention`].
pub(super) fn read_legal_hold(bytes: &[u8]) -> Result<bool, Refusal> {
    let root = xml::parse(bytes, "LegalHold")?;
    root.only(&["Status"])?;
    let status = documents::needed(&root, "Status")?.trim();
    hold(status).ok_or_else(|| xml::invalid_value("Status", status))
}

/// Reads an `ObjectLockConfiguration`.
///
/// # Errors
/// As [`read_retention`], and `InvalidRetentionPeriod`.
pub(super) fn read_configuration(bytes: &[u8]) -> Result<ObjectLock, Refusal> {
    let root = xml::parse(bytes, "ObjectLockConfiguration")?;
    root.only(&["ObjectLockEnabled", "Rule"])?;
    let enabled = documents::needed(&root, "ObjectLockEnabled")?.trim();
    if enabled != "Enabled" {
        return Err(xml::invalid_value("ObjectLockEnabled", enabled));
    }
    let Some(rule) = root.child("Rule") else { return Ok(ObjectLock { default: None }) };
    rule.only(&["DefaultRetention"])?;
    let retention =
        rule.child("DefaultRetention").ok_or_else(|| xml::missing("DefaultRetention"))?;
    retention.only(&["Mode", "Days", "Years"])?;
    let mode = mode_of(retention)?;
    let period = match (retention.child_text("Days"), retention.child_text("Years")) {
        (Some(days), None) => RetentionPeriod::Days(number("Days", days, DAYS_MAX)?),
        (None, Some(years)) => RetentionPeriod::Years(number("Years", years, YEARS_MAX)?),
        (Some(_), Some(_)) => return Err(xml::unsupported("Years")),
        (None, None) => return Err(xml::missing("Days")),
    };
    Ok(ObjectLock { default: Some(DefaultRetention { mode, period }) })
}

fn mode_of(element: &Element) -> Result<RetentionMode, Refusal> {
    let text = documents::needed(element, "Mode")?.trim();
    mode(text).ok_or_else(|| xml::invalid_value("Mode", text))
}

/// A period: 1 to `max`.
fn number(name: &'static str, text: &str, max: u32) -> Result<u32, Refusal> {
    let text = text.trim();
    let number: i64 = text.parse().map_err(|_| xml::invalid_value(name, text))?;
    let number = u32::try_from(number).ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| {
        Refusal::new(Reason::InvalidRetentionPeriod)
            .detail(Detail::ParameterName, name)
            .detail(Detail::ParameterValue, text)
    })
}

#[cfg(test)]
mod tests;
