//! Immutability policies and legal holds of blobs: headers and operations.
//!
//! Source: "Set Blob Immutability Policy", "Delete Blob Immutability Policy", "Set Blob Legal
//! Hold", "Put Blob".

use http::HeaderMap;
use http::HeaderName;
use http::Method;

use crate::protocol::azure::conditions;
use crate::protocol::azure::conditions::Dates;
use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::types::LockClaim;
use crate::types::Retention;
use crate::types::RetentionMode;
use crate::types::Timestamp;

/// The prefix of the two headers of a policy.
pub(super) const POLICY: &str = "x-ms-immutability-policy-";
const UNTIL: &str = names::RETENTION_UNTIL_NAME;
const MODE: &str = names::RETENTION_MODE_NAME;
/// The header of a legal hold.
pub(super) const LEGAL_HOLD: &str = names::LEGAL_HOLD_NAME;

/// Whether an operation on a blob takes the header of this name.
pub(super) fn is_served(name: &str, method: &Method, comp: Option<&str>) -> bool {
    let own = match name {
        LEGAL_HOLD => "legalhold",
        UNTIL | MODE => "immutabilitypolicies",
        _ => return false,
    };
    method == Method::PUT && comp.is_none_or(|comp| comp == "blocklist" || comp == own)
}

/// The text of a header. An empty one is refused: if it were ignored, the blob would not be
/// protected.
fn text<'a>(all: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    if !all.contains_key(name) {
        return Ok(None);
    }
    let text = headers::text(all, name)?;
    text.map(Some).ok_or_else(|| headers::invalid(name.as_str(), ""))
}

/// `precondition` with the protection that a write requests for the version that it makes.
///
/// # Errors
/// `InvalidHeaderValue`, `MissingRequiredHeader`.
pub(super) fn with(all: &HeaderMap, precondition: Precondition) -> Result<Precondition, Refusal> {
    let (retention, legal_hold) = (policy(all)?, legal_hold(all)?);
    Ok(Precondition { lock: LockClaim { retention, legal_hold, bypass: false }, ..precondition })
}

/// Set Blob Immutability Policy. Permission to set a policy includes permission to shorten one that
/// is not locked.
///
/// # Errors
/// `MissingRequiredHeader`, `InvalidHeaderValue`; those of the conditions.
pub(super) fn set(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = shortening(conditions::dated(all, Dates::UnmodifiedSince)?);
    let retention = Some(policy(all)?.ok_or_else(|| missing(UNTIL))?);
    Ok(BlobOperation::SetBlobRetention { path, precondition, retention }.into())
}

/// Delete Blob Immutability Policy.
///
/// # Errors
/// Those of the conditions.
pub(super) fn delete(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = shortening(conditions::dated(all, Dates::None)?);
    Ok(BlobOperation::SetBlobRetention { path, precondition, retention: None }.into())
}

/// Set Blob Legal Hold.
///
/// # Errors
/// `MissingRequiredHeader`, `InvalidHeaderValue`; those of the conditions.
pub(super) fn set_hold(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = conditions::dated(all, Dates::None)?;
    let on = legal_hold(all)?.ok_or_else(|| missing(LEGAL_HOLD))?;
    Ok(BlobOperation::SetBlobLegalHold { path, precondition, on }.into())
}

fn shortening(precondition: Precondition) -> Precondition {
    Precondition { lock: LockClaim { bypass: true, ..LockClaim::default() }, ..precondition }
}

/// The policy in the headers; a mode that is not said is `unlocked`.
fn policy(all: &HeaderMap) -> Result<Option<Retention>, Refusal> {
    let mode = match text(all, &names::RETENTION_MODE)? {
        None => None,
        Some(text) if text.eq_ignore_ascii_case("unlocked") => Some(RetentionMode::Unlocked),
        Some(text) if text.eq_ignore_ascii_case("locked") => Some(RetentionMode::Locked),
        Some(text) => return Err(headers::invalid(MODE, text)),
    };
    match (text(all, &names::RETENTION_UNTIL)?, mode) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(missing(UNTIL)),
        (Some(text), mode) => {
            let until = time(text).ok_or_else(|| headers::invalid(UNTIL, text))?;
            Ok(Some(Retention { mode: mode.unwrap_or(RetentionMode::Unlocked), until }))
        }
    }
}

/// An HTTP date.
fn time(text: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    Some(Timestamp::from_unix(time.duration_since(std::time::UNIX_EPOCH).ok()?))
}

fn legal_hold(all: &HeaderMap) -> Result<Option<bool>, Refusal> {
    let given = text(all, &names::LEGAL_HOLD)?;
    given.map(|_| headers::flag(all, &names::LEGAL_HOLD)).transpose()
}

fn missing(name: &'static str) -> Refusal {
    Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, name)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn claim(pairs: &[(&'static str, &'static str)]) -> Result<LockClaim, Reason> {
        let pairs = pairs.iter().map(|(name, value)| {
            (HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        let all: HeaderMap = pairs.collect();
        let with = with(&all, Precondition::default());
        with.map(|precondition| precondition.lock).map_err(|refusal| refusal.reason)
    }

    #[test]
    fn headers_are_a_policy_and_a_hold() {
        const DATE: &str = "Wed, 07 Jul 2021 09:33:36 GMT";
        let until = Timestamp::from_iso("2021-07-07T09:33:36Z").unwrap();
        let policy =
            |mode| LockClaim { retention: Some(Retention { mode, until }), ..LockClaim::default() };
        let hold = |on| LockClaim { legal_hold: Some(on), ..LockClaim::default() };
        let (unlocked, locked) = (RetentionMode::Unlocked, RetentionMode::Locked);
        for (pairs, expected) in [
            (&[][..], Ok(LockClaim::default())),
            (&[(UNTIL, DATE)], Ok(policy(unlocked))),
            (&[(UNTIL, DATE), (MODE, "Unlocked")], Ok(policy(unlocked))),
            (&[(UNTIL, DATE), (MODE, "locked")], Ok(policy(locked))),
            (&[(LEGAL_HOLD, "true")], Ok(hold(true))),
            (&[(LEGAL_HOLD, "false")], Ok(hold(false))),
            (&[(UNTIL, DATE), (MODE, "mutable")], Err(Reason::InvalidHeaderValue)),
            (&[(MODE, "locked")], Err(Reason::MissingRequiredHeader)),
            (&[(UNTIL, "2021-07-07T09:33:36Z")], Err(Reason::InvalidHeaderValue)),
            (&[(UNTIL, "tomorrow")], Err(Reason::InvalidHeaderValue)),
            (&[(LEGAL_HOLD, "on")], Err(Reason::InvalidHeaderValue)),
            (&[(LEGAL_HOLD, "")], Err(Reason::InvalidHeaderValue)),
            (&[(UNTIL, ""), (MODE, "locked")], Err(Reason::InvalidHeaderValue)),
            (&[(UNTIL, DATE), (MODE, "")], Err(Reason::InvalidHeaderValue)),
        ] {
            assert_eq!(claim(pairs), expected, "{pairs:?}");
        }
    }
}
