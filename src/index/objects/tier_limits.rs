//! Which blobs may have a tier, and the longest page blob of each premium tier.
//!
//! Source: "Set Blob Tier", "Blob service error codes".

use crate::index::api::Refused;
use crate::index::record::BlobRecord;
use crate::types::AccessTier;
use crate::types::BlobKind;

/// Checks that blobs of a kind may have a tier.
pub(super) fn fits(tier: AccessTier, kind: BlobKind) -> Result<(), Refused> {
    match (kind, tier.bytes_max()) {
        (BlobKind::Block, None) | (BlobKind::Page { .. }, Some(_)) => Ok(()),
        (BlobKind::Block | BlobKind::Append { .. }, Some(_))
        | (BlobKind::Append { .. } | BlobKind::Page { .. }, None) => Err(Refused::TierOfKind),
    }
}

/// Checks that a blob that is made may have the tier that the request gives it.
pub(super) fn check_new(tier: Option<AccessTier>, kind: BlobKind, len: u64) -> Result<(), Refused> {
    let Some(tier) = tier else { return Ok(()) };
    fits(tier, kind)?;
    check_room(tier, len)
}

/// Checks that a tier permits a blob of `len` bytes.
pub(super) fn check_room(tier: AccessTier, len: u64) -> Result<(), Refused> {
    match tier.bytes_max() {
        Some(max) if len > max => Err(Refused::TierTooSmall),
        Some(_) | None => Ok(()),
    }
}

/// Checks that a page blob may get another length: a tier that was set must permit it.
pub(super) fn check_len(record: &BlobRecord, len: u64) -> Result<(), Refused> {
    let max = record.tier.as_ref().and_then(|tier| tier.tier.bytes_max());
    if max.is_some_and(|max| len > max) { Err(Refused::BeyondTier) } else { Ok(()) }
}
