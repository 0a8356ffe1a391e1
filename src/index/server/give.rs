//! Gives a partition to a process of another node.

use crate::index::api::{ChangeError, Changed, Error};
use crate::index::engine;
use crate::index::engine::NotMoved;
use crate::index::server::host::Host;
use crate::types::HostId;
use crate::types::PartitionId;

/// Gives a partition to a host of another process. The pause that is returned is that until the
/// other process can begin to open it.
pub(super) async fn give_away(
    from: &Host,
    partition: PartitionId,
    to: HostId,
) -> Result<Changed, ChangeError> {
    let old = from.opened.get(partition).ok_or(ChangeError::NoSuchPartition)?;
    let frozen_at = match engine::give(&old, to).await {
        Ok(frozen_at) => frozen_at,
        Err(NotMoved::Busy(reason)) => return Err(ChangeError::Busy(reason.into())),
        Err(NotMoved::Unread(reason)) => return Err(Error::Unavailable(reason).into()),
        Err(NotMoved::Failed(failed) | NotMoved::Owned(failed, _)) => return Err(failed.into()),
    };
    from.leave(&old).await;
    let pause = from.context.deps.env.clock.monotonic().saturating_sub(frozen_at);
    tracing::info!(%partition, host = %to, ?pause, "the partition was given to another process");
    Ok(Changed { partitions: vec![partition], pause })
}
