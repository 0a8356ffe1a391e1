//! Set Blob Tier. Here a tier is a label: it does not change where bytes are stored. Its only
//! effects are that the archive tier refuses some requests, and that a premium tier limits the
//! length of its page blob.
//!
//! Source: "Set Blob Tier", "Rehydrate blob data".

use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::api::SetTier;
use crate::index::api::WriteReply;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::tier_limits;
use crate::index::record::BlobRecord;
use crate::types::AccessTier;
use crate::types::Rehydration;
use crate::types::RoutingKey;
use crate::types::StorageClass;
use crate::types::TierState;
use crate::types::Timestamp;

/// Set Blob Tier, of a blob, a snapshot or a version. ETag and last-modified time do not change.
pub(super) async fn set(eval: &mut Evaluation<'_>, set: &SetTier) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&set.key);
    let of = RevisionOf { revision: set.revision, guard: &set.guard };
    let mut blob = revision::load(eval.view, &key, of).await?;
    guard::change_beside_lease(&set.guard, &blob.record, eval.now)?;
    guard::not_incremental(&blob.record)?;
    tier_limits::fits(set.tier, blob.record.kind)?;
    if set.tier.bytes_max().is_some() {
        blob.record.tier = Some(of_page_blob(&blob.record, set.tier, eval.now)?);
        blob.store(eval, &key);
        return Ok(WriteReply::TierSet { pending: false });
    }
    let before = blob.record.tier.as_ref().map(|tier| tier.at(eval.now));
    let before_tier = before.as_ref().map(|before| before.tier);
    let (state, pending) = match before {
        Some(TierState { rehydrating: Some(_), .. }) if set.tier == AccessTier::Archive => {
            return Err(Refused::Rehydrating.into());
        }
        // A repeated request. The first request stays in effect; only its priority may rise.
        Some(TierState { rehydrating: Some(rehydration), tier, changed }) => {
            if rehydration.to != set.tier {
                return Err(Refused::Rehydrating.into());
            }
            let priority = rehydration.priority.max(set.priority);
            let rehydrating = Some(Rehydration { priority, ..rehydration });
            (TierState { tier, changed, rehydrating }, true)
        }
        Some(TierState { tier: AccessTier::Archive, .. }) if set.tier != AccessTier::Archive => {
            let ready = eval.now.plus(set.rehydration);
            let rehydration = Rehydration { to: set.tier, priority: set.priority, ready };
            let tier = AccessTier::Archive;
            (TierState { tier, changed: eval.now, rehydrating: Some(rehydration) }, true)
        }
        Some(same) if same.tier == set.tier => (same, false),
        Some(_) | None => (TierState::new(set.tier, eval.now), false),
    };
    forget_class(&mut blob.record, before_tier, state.tier);
    blob.record.tier = Some(state);
    blob.store(eval, &key);
    Ok(WriteReply::TierSet { pending })
}

/// Checks the new tier of a page blob: it must not be lower, and must permit the length of the
/// content. Source: "Set Blob Tier", "Blob service error codes".
fn of_page_blob(
    record: &BlobRecord,
    tier: AccessTier,
    now: Timestamp,
) -> Result<TierState, Refused> {
    let before = record.tier.as_ref().filter(|before| before.tier.bytes_max().is_some());
    if before.is_some_and(|before| before.tier.bytes_max() > tier.bytes_max()) {
        return Err(Refused::LowerTier);
    }
    tier_limits::check_room(tier, record.len)?;
    let same = before.filter(|before| before.tier == tier).cloned();
    Ok(same.unwrap_or_else(|| TierState::new(tier, now)))
}

/// Removes S3's storage class, unless it belongs to both the old and the new tier.
fn forget_class(record: &mut BlobRecord, before: Option<AccessTier>, after: AccessTier) {
    if let Some(fields) = &mut record.fields {
        let before = before.unwrap_or(AccessTier::Hot);
        fields.storage_class.take_if(|class| {
            let class = StorageClass::parse(class);
            !class.is_some_and(|class| class.is_of(before) && class.is_of(after))
        });
    }
}
