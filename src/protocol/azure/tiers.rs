//! Access tiers in requests.
//!
//! Source: "Set Blob Tier", "Put Blob".

use http::HeaderMap;

use crate::protocol::azure::conditions;
use crate::protocol::azure::headers;
use crate::protocol::azure::names;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::BlobPath;
use crate::types::AccessTier;
use crate::types::RehydratePriority;

const NAME: &str = names::ACCESS_TIER_NAME;
/// Words for premium tiers that no blob has here.
const PREMIUM: &[&str] = &["Premium", "P1", "P2", "P3"];

/// `x-ms-access-tier`, if given.
pub(super) fn tier(all: &HeaderMap) -> Result<Option<AccessTier>, Refusal> {
    let Some(text) = headers::text(all, &names::ACCESS_TIER)? else { return Ok(None) };
    if let Some(tier) = AccessTier::parse(text) {
        return Ok(Some(tier));
    }
    if PREMIUM.iter().any(|known| known.eq_ignore_ascii_case(text)) {
        return Err(Reason::BlobAccessTierNotSupportedForAccountType.into());
    }
    Err(headers::invalid(NAME, text))
}

/// `x-ms-rehydrate-priority`.
pub(super) fn priority(all: &HeaderMap) -> Result<RehydratePriority, Refusal> {
    const PRIORITY: &str = "x-ms-rehydrate-priority";
    match headers::text(all, PRIORITY)? {
        None => Ok(RehydratePriority::Standard),
        Some(text) => {
            RehydratePriority::parse(text).ok_or_else(|| headers::invalid(PRIORITY, text))
        }
    }
}

/// Set Blob Tier.
pub(super) fn set(all: &HeaderMap, path: BlobPath) -> Result<Operation, Refusal> {
    let precondition = conditions::of_tier(all)?;
    let tier = tier(all)?.ok_or_else(|| {
        Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, NAME)
    })?;
    let priority = priority(all)?;
    Ok(BlobOperation::SetBlobTier { path, precondition, tier, priority }.into())
}
