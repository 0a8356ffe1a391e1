//! Ids of extents to be created are recorded in a transaction of their own when the changes of the
//! descriptor do not bring enough. The committer is not needed for it, so writes do not wait.

use std::sync::Arc;

use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, TxnReply};
use crate::index::engine::chores::Chore;
use crate::index::engine::context::HostContext;
use crate::index::engine::extents::record::ExtentRecord;
use crate::index::engine::extents::reserve::Extents;
use crate::index::engine::failed::Failed;
use crate::index::map::PartitionDescriptor;
use crate::index::rows::Family;
use crate::types::ExtentId;

/// Recorded ids a partition is given at once. A flush takes one for each family that has rows, and
/// one for the log.
pub(crate) const RESERVE: usize = 16;
/// Ids that a roll, a compaction and a change may take between a reservation of others and its use.
const SPARE: usize = 4;
/// With fewer left after a flush, more are asked for before anybody waits for them.
const FEW: usize = Family::ALL.len() + SPARE;
/// A roll leaves as many as a flush may need: a roll that the coordinator refuses at its end has
/// used up one, and while that goes on there are no others.
const FOR_A_ROLL: usize = Family::ALL.len() + 1;
/// Transactions that lose against a change of the descriptor by the same owner, or find another
/// record than is known here.
const TRIES: usize = 4;

/// Has so many ids recorded for a partition, at least: nothing is created under an id that is not.
/// A few more are for what others of the partition create before the caller does. After a refusal
/// the coordinator is not asked again before a pause is over. The refusal of these few alone is no
/// error.
///
/// # Errors
/// [`Failed::Full`], [`Failed::Refused`]: nothing was taken. [`Failed::Fenced`]: another owner has
/// the partition.
pub(crate) async fn reserve(
    context: &HostContext,
    extents: &Extents,
    count: usize,
) -> Result<(), Failed> {
    if extents.fresh() >= count + SPARE {
        return Ok(());
    }
    match ask(context, extents, count + SPARE).await {
        Err(Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_)) if extents.fresh() >= count => {
            Ok(())
        }
        done => done,
    }
}

/// As [`reserve`], but does not wait for the spare ones: writes wait for a flush. If others take an
/// id meanwhile, the flush is tried again.
///
/// # Errors
/// As of [`reserve`].
pub(crate) async fn reserve_for_a_flush(
    context: &HostContext,
    extents: &Arc<Extents>,
    count: usize,
) -> Result<(), Failed> {
    if extents.fresh() < count {
        return reserve(context, extents, count).await;
    }
    if are_few(extents) {
        context.chores.add(Chore::Refill(Arc::clone(extents)));
    }
    Ok(())
}

/// Has an id recorded for a roll. It does not wait for others that ask the coordinator, unless few
/// ids are left.
///
/// # Errors
/// As of [`reserve`].
pub(crate) async fn reserve_for_a_roll(
    context: &HostContext,
    extents: &Extents,
) -> Result<(), Failed> {
    reserve_now(context, extents, FOR_A_ROLL).await
}

async fn ask(context: &HostContext, extents: &Extents, count: usize) -> Result<(), Failed> {
    let clock = &context.deps.env.clock;
    extents.may_ask(clock.monotonic())?;
    let reserved = reserve_now(context, extents, count).await;
    extents.asked(clock.monotonic(), &reserved);
    reserved
}

/// As [`reserve`], whatever was refused before, and with none to spare.
pub(crate) async fn reserve_now(
    context: &HostContext,
    extents: &Extents,
    count: usize,
) -> Result<(), Failed> {
    if extents.fresh() >= count {
        return Ok(());
    }
    let _one = extents.changing().await;
    for _ in 0..TRIES {
        if extents.fresh() >= count {
            return Ok(());
        }
        record(context, extents, count.max(RESERVE)).await?;
    }
    if extents.fresh() >= count {
        return Ok(());
    }
    Err(Failed::Busy("the record of extents keeps changing"))
}

/// Whether a partition that was just flushed should have more ids.
pub(crate) fn are_few(extents: &Extents) -> bool {
    extents.fresh() < FEW
}

/// Has as many ids recorded as a partition is given at once, when few are left.
///
/// # Errors
/// As of [`reserve`].
pub(crate) async fn refill(context: &HostContext, extents: &Extents) -> Result<(), Failed> {
    if are_few(extents) { ask(context, extents, RESERVE).await } else { Ok(()) }
}

/// One try; it may change nothing, and then the next one knows more.
async fn record(context: &HostContext, extents: &Extents, count: usize) -> Result<(), Failed> {
    let coordinator = context.deps.coordinator.as_ref();
    refresh(coordinator, extents).await?;
    let (epoch, revision) = extents.owner()?;
    let Some(change) = extents.change(fresh_ids(context, extents, count).await?) else {
        return Ok(());
    };
    let key = PartitionDescriptor::coordinator_key(extents.partition());
    let when = [Compare::ModRevision(key.clone(), revision), change.when.clone()];
    match coordinator.txn(&when, std::slice::from_ref(&change.then)).await {
        Ok(TxnReply::Committed(at)) => {
            extents.changed(change, at);
            return Ok(());
        }
        Ok(TxnReply::Rejected(_)) => {}
        Err(error) => {
            // If it happened all the same: nothing is created under those ids.
            extents.set_stale();
            let error = match error {
                // What keeps it from answering, it may say now.
                coordinator::Error::Ambiguous => coordinator.get(&key).await.err().unwrap_or(error),
                coordinator::Error::Unavailable { .. }
                | coordinator::Error::Compacted
                | coordinator::Error::SessionEnded
                | coordinator::Error::Corrupt { .. } => error,
            };
            return Err(Failed::refused(&error));
        }
    }
    // The record is another one, or the descriptor: of this owner, whose roll was faster, or of
    // the next.
    extents.set_stale();
    let found = coordinator.get(&key).await.map_err(|error| Failed::refused(&error))?;
    let found = found.and_then(|found| PartitionDescriptor::decode(&found.value));
    if found.is_some_and(|descriptor| descriptor.epoch == epoch) {
        Ok(())
    } else {
        Err(Failed::Fenced)
    }
}

/// Reads the record again if it may be another one than is known here.
///
/// # Errors
/// [`Failed::Full`], [`Failed::Refused`].
pub(crate) async fn refresh(
    coordinator: &dyn Coordinator,
    extents: &Extents,
) -> Result<(), Failed> {
    if extents.is_stale() {
        let found = ExtentRecord::load(coordinator, extents.partition()).await;
        extents.refresh(found.map_err(Failed::unread)?);
    }
    Ok(())
}

/// Ids never issued before, so that there are `count` at hand; to be recorded.
///
/// # Errors
/// [`Failed::Full`], [`Failed::Refused`].
pub(crate) async fn fresh_ids(
    context: &HostContext,
    extents: &Extents,
    count: usize,
) -> Result<Vec<ExtentId>, Failed> {
    let mut ids = Vec::new();
    for _ in extents.fresh()..count {
        let id = context.deps.extent_ids.next_extent().await;
        ids.push(id.map_err(Failed::unread)?);
    }
    Ok(ids)
}
