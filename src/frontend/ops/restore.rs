//! Takes blobs out of the archive tier (ADR 0014).

use crate::frontend::lookup::BlobTarget;
use crate::frontend::ops::content;
use crate::frontend::ops::versions;
use crate::frontend::ops::versions::NewTier;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::reply::TierFacts;
use crate::types::AccessTier;
use crate::types::EtagMatch;
use crate::types::RehydratePriority;

/// Begins the rehydration of an archived blob, to the default tier. A later request for a faster
/// restore raises the priority.
///
/// # Errors
/// `RehydrationInProgress` when it is under way, `BlobNotArchived` when the blob was never in the
/// archive since its tier was last set.
pub(crate) async fn restore(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    priority: RehydratePriority,
) -> Result<Reply, Refusal> {
    let BlobTarget { account, path, precondition } = blob;
    let target = |precondition| BlobTarget { account, path: path.clone(), precondition };
    let facts = content::facts(front, target(precondition.clone())).await?;
    match facts.tier {
        Some(TierFacts { rehydrating: Some(begun), .. }) if begun.priority >= priority => {
            return Err(Reason::RehydrationInProgress.into());
        }
        Some(TierFacts { tier: AccessTier::Archive, .. }) => {}
        Some(TierFacts { rehydrated: true, .. }) => {
            return Ok(Reply::BlobRestored { begun: false });
        }
        Some(_) | None => return Err(Reason::BlobNotArchived.into()),
    }
    // Only this blob: its name may belong to another blob by now.
    let mut same = precondition;
    same.conditions.if_match = Some(EtagMatch::Tags(vec![Some(facts.change.etag)]));
    let to = facts.tier.and_then(|tier| tier.rehydrating).map_or(AccessTier::Hot, |begun| begun.to);
    let tier = NewTier { tier: to, priority };
    versions::set_tier(front, target(same), tier).await?;
    Ok(Reply::BlobRestored { begun: true })
}
