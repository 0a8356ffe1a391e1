//! Releases an extent that a partition no longer uses, as its durable manifest or descriptor says.

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

/// The most rejected and unanswered transactions before the release is put off.
const TRIES: usize = 8;

/// Removes a partition's names from the list of an extent's sharers, and removes the extent if the
/// list is empty then. If the disk takes no writes, the removal is left to the next opening of the
/// partition. A repeated release changes nothing, not even by an owner that lost the partition
/// meanwhile. Returns false while a pin of this process delays the removal: the caller must try
/// again.
///
/// # Errors
/// The release must be tried again.
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
            // Any partition may be on the list. The extent is kept, and the record keeps its id for
            // the next opening.
            Left::Unknown(error) => {
                tracing::error!(
                    %extent, %error,
                    "an extent is kept, because the list of partitions that use it cannot be read"
                );
                return Ok(true);
            }
        },
        // It is removed, or was never in this partition's record.
        Holding::Not => return Ok(true),
    };
    if is_last {
        if context.pins.is_pinned(extent) {
            return Ok(false);
        }
        match context.deps.capacity.remove(extent).await {
            Ok(()) => {}
            // The disk takes no writes until a restart. The record keeps the id for the next
            // opening.
            Err(error @ (Error::Poisoned { .. } | Error::OutOfService { .. })) => {
                tracing::debug!(
                    %extent, %error,
                    "an extent was not removed; the next opening of the partition tries again"
                );
                return Ok(true);
            }
            // In a cluster that ends by itself: a member comes back, or a group is closed.
            Err(error @ Error::NoAnswer { .. }) if context.has_leases() => {
                tracing::debug!(%extent, %error, "an extent is released later");
                return Ok(false);
            }
            Err(error) => return Err(failure::write(&error)),
        }
    }
    extents.set_gone(extent);
    Ok(true)
}

/// The rest of a list of sharers.
enum Left {
    Nobody,
    Others,
    /// The list cannot be read.
    Unknown(api::Error),
}

/// Removes names from the list of an extent's sharers.
async fn leave(
    coordinator: &dyn Coordinator,
    names: &BTreeSet<PartitionId>,
    extent: ExtentId,
) -> Result<Left, api::Error> {
    let key = Sharers::key(extent);
    for _ in 0..TRIES {
        let found = coordinator.get(&key).await.map_err(|error| failure::coordinator(&error))?;
        // The last sharer deleted the list. That may have been this partition, before a crash.
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
