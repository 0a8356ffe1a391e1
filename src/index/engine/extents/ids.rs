//! Records ids for new extents. Changes of the descriptor record ids too; if these do not suffice,
//! ids are recorded in a transaction of their own. That needs no committer, so writes do not wait.

use std::sync::Arc;

use crate::capacity::ExtentKind;
use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, TxnReply};
use crate::index::engine::chores::Chore;
use crate::index::engine::context::HostContext;
use crate::index::engine::extents::record::ExtentRecord;
use crate::index::engine::extents::reserve::Extents;
use crate::index::engine::failed::{Failed, RECORD_CHANGES};
use crate::index::engine::failure;
use crate::index::map::PartitionDescriptor;
use crate::index::rows::Family;
use crate::types::ExtentId;

/// Ids that are recorded for a partition together. A flush takes one for each family that has rows,
/// and one for the log.
pub(crate) const RESERVE: usize = 16;
/// Ids that a roll, a compaction and a change of the map may take between a reservation and its
/// use.
const SPARE: usize = 4;
/// With fewer ids left after a flush, more are recorded before a task waits for them.
const FEW: usize = Family::ALL.len() + SPARE;
/// A roll needs one id and leaves as many as a flush may need. A roll that the coordinator refuses
/// at its end has used up an id, and while it refuses, no others are recorded.
const FOR_A_ROLL: usize = Family::ALL.len() + 1;
/// The most transactions that are rejected because the same owner changed the descriptor, or
/// because the record is not the known one.
const TRIES: usize = 4;

/// Makes sure that at least `count` recorded ids are left: no extent is created under an id that is
/// not recorded. [`SPARE`] more are for extents that other tasks of the partition create before the
/// caller does. After a refusal the coordinator is asked again only after a pause. It is not an
/// error if only the spare ids are refused.
///
/// # Errors
/// [`Failed::Full`], [`Failed::Refused`], [`Failed::Busy`]: no id was recorded. [`Failed::Fenced`]:
/// another owner has the partition.
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

/// As [`reserve`], but does not wait for the spare ids, since writes wait for a flush. If another
/// task takes an id meanwhile, the flush is tried again.
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

/// Makes sure that a roll has an id. It waits for the coordinator only if few ids are left.
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

/// As [`reserve`], without spare ids and without regard to earlier refusals.
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
    Err(Failed::Busy(RECORD_CHANGES))
}

/// Whether a partition that was just flushed needs more ids.
pub(crate) fn are_few(extents: &Extents) -> bool {
    extents.fresh() < FEW
}

/// Records ids up to [`RESERVE`] if few are left.
///
/// # Errors
/// As of [`reserve`].
pub(crate) async fn refill(context: &HostContext, extents: &Extents) -> Result<(), Failed> {
    if are_few(extents) { ask(context, extents, RESERVE).await } else { Ok(()) }
}

/// One try to record ids. It may change nothing; the next try then knows the current record.
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
            // The transaction may have happened: no extent is created under its ids.
            extents.set_stale();
            let error = match error {
                // The coordinator may say now what kept it from answering.
                coordinator::Error::Ambiguous => coordinator.get(&key).await.err().unwrap_or(error),
                coordinator::Error::Unavailable { .. }
                | coordinator::Error::Compacted
                | coordinator::Error::SessionEnded
                | coordinator::Error::Corrupt { .. } => error,
            };
            return Err(Failed::refused(&error));
        }
    }
    // The record or the descriptor was changed: by a roll of this owner, or by the next owner.
    extents.set_stale();
    let found = coordinator.get(&key).await.map_err(|error| Failed::refused(&error))?;
    let found = found.and_then(|found| PartitionDescriptor::decode(&found.value));
    if found.is_some_and(|descriptor| descriptor.epoch == epoch) {
        Ok(())
    } else {
        Err(Failed::Fenced)
    }
}

/// Reads the record again if it may differ from the known one.
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

/// Takes newly issued ids, as many as are missing to `count`. They are not recorded yet.
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
        // Those of runs are the same.
        let id = context.deps.extent_ids.next_extent(ExtentKind::Log).await;
        ids.push(id.map_err(|error| Failed::unread(failure::coordinator(&error)))?);
    }
    Ok(ids)
}
