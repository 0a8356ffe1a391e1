//! A partition uses an extent no more: a durable manifest or descriptor of it says so.

use std::collections::BTreeSet;

use crate::capacity::Error;
use crate::coordinator;
use crate::coordinator::{Compare, Coordinator, Op, TxnReply};
use crate::index::api;
use crate::index::engine::context::HostContext;
use crate::index::engine::extents::record::Sharers;
use crate::index::engine::extents::reserve::{Extents, Holding};
use crate::index::engine::failure;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// Lost races, and answers lost, before giving up for now.
const TRIES: usize = 8;

/// Takes a partition off the list of an extent's sharers, and removes the extent if nobody else is
/// on it. Where a disk takes no writes, that is left to the next opening. Done twice, or by an
/// owner that lost the partition meanwhile, it changes nothing more. False while a reader of this
/// process holds the removal back: then it is to be done again.
///
/// # Errors
/// To be tried again.
pub(crate) async fn release(
    context: &HostContext,
    extents: &Extents,
    extent: ExtentId,
) -> Result<bool, api::Error> {
    let coordinator = context.deps.coordinator.as_ref();
    let is_last = match extents.holding(extent) {
        Holding::Alone => true,
        Holding::Shared(names) => match leave(coordinator, &names, extent).await? {
            Left::Nobody => true,
            Left::Others => false,
            // Anybody may be on it: it stays, and the record keeps the id for the next opening.
            Left::Unknown(error) => {
                tracing::error!(
                    %extent, %error,
                    "an extent is kept: the partitions that use it are not known"
                );
                return Ok(true);
            }
        },
        // Removed, or never this partition's.
        Holding::Not => return Ok(true),
    };
    if is_last {
        if context.pins.is_pinned(extent) {
            return Ok(false);
        }
        match context.deps.capacity.remove(extent).await {
            Ok(()) => {}
            // A disk takes no writes until a restart. The record keeps the id for the next opening.
            Err(error @ (Error::Poisoned { .. } | Error::OutOfService { .. })) => {
                tracing::debug!(
                    %extent, %error,
                    "an extent was not removed; the next opening of the partition tries again"
                );
                return Ok(true);
            }
            Err(error) => return Err(failure::write(&error)),
        }
    }
    extents.set_gone(extent);
    Ok(true)
}

/// Who is on a list of sharers after some were taken off.
enum Left {
    Nobody,
    Others,
    /// It cannot be read.
    Unknown(api::Error),
}

/// Takes names off the list.
async fn leave(
    coordinator: &dyn Coordinator,
    names: &BTreeSet<PartitionId>,
    extent: ExtentId,
) -> Result<Left, api::Error> {
    let key = Sharers::key(extent);
    for _ in 0..TRIES {
        let found = coordinator.get(&key).await.map_err(|error| failure::coordinator(&error))?;
        // The last one on the list took it away; perhaps it was this partition, before a crash.
        let Some(found) = found else { return Ok(Left::Nobody) };
        let mut sharers = match Sharers::decode(&found.value) {
            Ok(sharers) => sharers,
            Err(unread) => return Ok(Left::Unknown(unread.at(&key))),
        };
        let before = sharers.0.len();
        sharers.0.retain(|name| !names.contains(name));
        if sharers.0.len() == before {
            return Ok(Left::Others);
        }
        let is_last = sharers.0.is_empty();
        let when = Compare::ModRevision(key.clone(), found.mod_revision);
        let then =
            if is_last { Op::Delete(key.clone()) } else { Op::Put(key.clone(), sharers.encode()) };
        match coordinator.txn(&[when], &[then]).await {
            Ok(TxnReply::Committed(_)) if is_last => return Ok(Left::Nobody),
            Ok(TxnReply::Committed(_)) => return Ok(Left::Others),
            Ok(TxnReply::Rejected(_)) | Err(coordinator::Error::Ambiguous) => {}
            Err(error) => return Err(failure::coordinator(&error)),
        }
    }
    Err(api::Error::Unavailable(format!("the list of sharers of extent {extent} is contended")))
}
