//! Lease Blob and Lease Container: the action and its headers.
//!
//! Source: "Lease Blob", "Lease Container".

use std::time::Duration;

use http::HeaderMap;
use uuid::Uuid;

use crate::protocol::azure::headers;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::LeaseAction;

/// Seconds a lease lasts, when it is not infinite.
const DURATION: std::ops::RangeInclusive<u64> = 15..=60;
/// Seconds a lease goes on after it was broken.
const BREAK_PERIOD: std::ops::RangeInclusive<u64> = 0..=60;

/// The action that the request names.
pub(super) fn action(all: &HeaderMap) -> Result<LeaseAction, Refusal> {
    const NAME: &str = "x-ms-lease-action";
    let action = required(headers::text(all, NAME)?, NAME)?;
    match action.to_ascii_lowercase().as_str() {
        "acquire" => Ok(LeaseAction::Acquire {
            proposed: headers::guid(all, "x-ms-proposed-lease-id")?,
            duration: duration(all)?,
        }),
        "renew" => Ok(LeaseAction::Renew { id: holder(all)? }),
        "change" => {
            const TO: &str = "x-ms-proposed-lease-id";
            Ok(LeaseAction::Change { id: holder(all)?, to: required(headers::guid(all, TO)?, TO)? })
        }
        "release" => Ok(LeaseAction::Release { id: holder(all)? }),
        "break" => Ok(LeaseAction::Break {
            period: seconds(all, "x-ms-lease-break-period", &BREAK_PERIOD)?,
        }),
        _ => Err(headers::invalid(NAME, action)),
    }
}

fn holder(all: &HeaderMap) -> Result<Uuid, Refusal> {
    required(headers::lease(all)?, "x-ms-lease-id")
}

/// `-1` is infinite.
fn duration(all: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    const NAME: &str = "x-ms-lease-duration";
    if headers::text(all, NAME)? == Some("-1") {
        return Ok(None);
    }
    required(seconds(all, NAME, &DURATION)?, NAME).map(Some)
}

fn seconds(
    all: &HeaderMap,
    name: &'static str,
    range: &std::ops::RangeInclusive<u64>,
) -> Result<Option<Duration>, Refusal> {
    let Some(text) = headers::text(all, name)? else { return Ok(None) };
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number: Option<u64> = if digits { text.parse().ok() } else { None };
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok(Some(Duration::from_secs(number))),
        None => Err(headers::invalid(name, text)),
    }
}

fn required<T>(value: Option<T>, name: &'static str) -> Result<T, Refusal> {
    value
        .ok_or_else(|| Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, name))
}
