//! Lease Blob, Lease Container.

use uuid::Builder;

use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::ContainerTarget;
use crate::frontend::lookup::Located;
use crate::frontend::state::FrontEnd;
use crate::index::LeaseBlob;
use crate::index::LeaseContainer;
use crate::index::LeaseResult;
use crate::index::Leased;
use crate::index::WriteRequest;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::reply::LeaseOutcome;
use crate::types::LeaseAction;

/// Lease Blob.
pub(crate) async fn blob(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    action: LeaseAction,
) -> Result<Reply, Refusal> {
    let Located { blob, precondition, .. } = blob.locate(&front.rows).await?;
    let (guard, action) = (lookup::guard(precondition), with_id(front, action));
    let write = LeaseBlob { key: blob.key, guard, action };
    carry_out(front, write, Subject::Blob).await
}

/// Lease Container.
pub(crate) async fn container(
    front: &FrontEnd,
    container: ContainerTarget<'_>,
    action: LeaseAction,
) -> Result<Reply, Refusal> {
    let ContainerTarget { account, name, precondition } = container;
    let (guard, action) = (lookup::guard(precondition), with_id(front, action));
    let write = LeaseContainer { account: account.id, name, guard, action };
    carry_out(front, write, Subject::Container).await
}

/// Draws the id of a lease if the request names none: writes of the index must be deterministic.
fn with_id(front: &FrontEnd, action: LeaseAction) -> LeaseAction {
    let LeaseAction::Acquire { proposed: None, duration } = action else { return action };
    let (high, low) = (front.env.rand.next_u64(), front.env.rand.next_u64());
    let random = u128::from(high) << 64 | u128::from(low);
    let drawn = Builder::from_random_bytes(random.to_be_bytes()).into_uuid();
    LeaseAction::Acquire { proposed: Some(drawn), duration }
}

async fn carry_out<W: WriteRequest<Reply = Leased>>(
    front: &FrontEnd,
    write: W,
    subject: Subject,
) -> Result<Reply, Refusal> {
    let leased = commit::commit(&front.rows, write, None).await;
    let leased = leased.map_err(|error| errors::from_index(&error, subject))?;
    let change = commit::change(leased.written);
    Ok(Reply::Leased { change, outcome: outcome(leased.result) })
}

fn outcome(result: LeaseResult) -> LeaseOutcome {
    match result {
        LeaseResult::Acquired(lease) => LeaseOutcome::Acquired(lease.id),
        LeaseResult::Renewed(lease) => LeaseOutcome::Renewed(lease.id),
        LeaseResult::Changed(lease) => LeaseOutcome::Changed(lease.id),
        LeaseResult::Released => LeaseOutcome::Released,
        LeaseResult::Broken { left, .. } => {
            // Rounded down, as in recorded answers of the service: 14 for a lease of 15 seconds
            // that was broken immediately (2018-11-09).
            LeaseOutcome::Broken { seconds: left.as_secs() }
        }
    }
}
