//! Deletes staged blocks a week after the last Put Block to their blob, and the rows of completed
//! uploads after the same time. Removes soft-deleted rows when their period ends.

use bytes::Bytes;

use crate::index::AskPartition;
use crate::index::ExpireDeleted;
use crate::index::ExpireStaged;
use crate::index::ReadEndedDeletions;
use crate::index::ReadExpired;
use crate::index::Target;
use crate::reclaim::error::Error;
use crate::reclaim::state::Reclaim;

/// Deletes the expired staged blocks and completed uploads of one partition.
pub(super) async fn expire(reclaim: &Reclaim, target: Target) -> Result<(), Error> {
    let Some(before) = reclaim.env.clock.now().minus(reclaim.config.staged_life) else {
        return Ok(());
    };
    let mut from = Some(Bytes::new());
    while let Some(start) = from {
        let read = ReadExpired { from: start, before, limit: reclaim.config.blobs_per_write };
        let page = reclaim.host.ask(target, read).await?;
        from = page.next;
        for blob in page.blobs {
            reclaim.go_on()?;
            // The write checks the time again: a block may have been staged since the read.
            let expire = ExpireStaged { key: blob.key, before };
            reclaim.host.tell(target, expire).await?;
            reclaim.metrics.expired_blobs.inc();
        }
    }
    Ok(())
}

/// Removes the soft-deleted rows of one partition that can no longer be restored.
pub(super) async fn end_deletions(reclaim: &Reclaim, target: Target) -> Result<(), Error> {
    let (now, limit) = (reclaim.env.clock.now(), reclaim.config.blobs_per_write);
    let mut writes = 0;
    // A write is bounded. The next round continues with the rest.
    loop {
        let (mut from, mut had_any) = (Some(Bytes::new()), false);
        while let Some(start) = from {
            let read = ReadEndedDeletions { from: start, now, limit };
            let page = reclaim.host.ask(target, read).await?;
            from = page.next;
            for key in page.blobs {
                reclaim.go_on()?;
                reclaim.host.tell(target, ExpireDeleted { key, all: false }).await?;
                reclaim.metrics.ended_deletions.inc();
                (writes, had_any) = (writes + 1, true);
            }
        }
        if !had_any || writes >= reclaim.config.writes_per_pass {
            return Ok(());
        }
    }
}
