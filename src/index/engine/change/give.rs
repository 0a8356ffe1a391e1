//! Gives a partition to a host of another process: writes wait, one change of the descriptor names
//! the other host, and that opens the partition from its log, as after any end of an owner.
//!
//! The partition is flushed before, so that there is little to replay.

use std::sync::Arc;
use std::time::Duration;

use crate::index::engine::change::descriptors;
use crate::index::engine::change::handoff::NotMoved;
use crate::index::engine::failed::Failed;
use crate::index::engine::partition::Partition;
use crate::types::HostId;

/// Gives `from` to the host `to`. When this returns, the coordinator names that host, and the
/// partition takes no writes here. Reads here are correct until the other host has fenced the log.
/// Returns since when no write has been made durable; monotonic time.
///
/// # Errors
/// [`NotMoved::Busy`], [`Failed::Full`] and [`Failed::Refused`]: nothing has changed, and the
/// partition goes on. After the others it takes no writes until it is opened again.
pub(crate) async fn give(from: &Arc<Partition>, to: HostId) -> Result<Duration, NotMoved> {
    from.flush().await?;
    let _no_flush = from.flushing.lock().await;
    let _no_compaction = from.keep_compaction_out().await;
    let held = from.hold().await?;
    let mut next = held.log.descriptor.clone();
    next.epoch = next.epoch.next();
    next.host = to;
    match descriptors::move_over(&from.core.context.deps, &held.log, &next).await {
        Ok(_) => {
            let since = held.since;
            held.moved();
            Ok(since)
        }
        Err(unchanged @ (Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_))) => {
            held.resume();
            Err(unchanged.into())
        }
        Err(failed) => {
            held.stop(&failed);
            Err(failed.into())
        }
    }
}
