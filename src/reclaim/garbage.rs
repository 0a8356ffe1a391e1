//! Frees what garbage rows name, then forgets the rows.

use std::time::Duration;

use bytes::Bytes;

use crate::index::GarbageRow;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::Write;
use crate::reclaim::Error;
use crate::reclaim::service::Reclaim;
use crate::types::Location;
use crate::types::Timestamp;
use crate::types::locations_len;

/// Frees the garbage of one partition that is due, a bounded part of it. Whether there was any. Adds to `walked` what looking
/// for it took; what freeing it takes is not reclaim's choice: on a full disk its writes wait like all others.
pub(super) async fn free(
    reclaim: &Reclaim,
    target: Target,
    walked: &mut Duration,
) -> Result<bool, Error> {
    let clock = &reclaim.env.clock;
    let mut freed = 0;
    let mut from = Some(Bytes::new());
    while let Some(start) = from
        && freed < reclaim.config.garbage_rows_per_pass
    {
        reclaim.go_on()?;
        let read = Read::Garbage { from: start, limit: reclaim.config.garbage_rows };
        let began = clock.monotonic();
        let read = reclaim.host.read(target, read).await;
        *walked += clock.monotonic().saturating_sub(began);
        let ReadReply::Garbage(rows, next) = read? else { return Err(Error::Answer) };
        from = next;
        // Only now: a read that starts later looks up its locations after these rows were committed.
        let now = clock.now();
        let oldest_read = reclaim.inflight.oldest_read(now);
        let due = |row: &GarbageRow| {
            is_old(row.since, reclaim.config.grace, now)
                && oldest_read.is_none_or(|oldest| row.since < oldest)
        };
        let rows: Vec<GarbageRow> = rows.into_iter().filter(due).collect();
        if !rows.is_empty() {
            freed += free_rows(reclaim, target, rows).await?;
        }
    }
    Ok(freed > 0)
}

/// Whether what was committed at `since` is older than the grace. Commit times never go back, the clock may: what is from
/// the future was committed before that, nobody knows how long ago, and must not wait for that time to come again.
pub(super) fn is_old(since: Timestamp, grace: Duration, now: Timestamp) -> bool {
    since.plus(grace) <= now || now.plus(grace) < since
}

/// Frees what the rows name and forgets those whose space is given back. How many these are.
async fn free_rows(
    reclaim: &Reclaim,
    target: Target,
    mut rows: Vec<GarbageRow>,
) -> Result<usize, Error> {
    let locations = |rows: &[GarbageRow]| -> Vec<Location> {
        rows.iter().flat_map(|row| row.locations.iter().copied()).collect()
    };
    // Free first: a crash between these two steps frees again, the other order would leak.
    if let Err(error) = reclaim.capacity.free(&locations(&rows)).await {
        // Some of it lies on a disk that takes no writes. Its rows stay, and cost the others nothing.
        tracing::debug!(%error, "garbage rows stay until their disk takes writes");
        let mut done = Vec::new();
        for row in rows {
            if reclaim.capacity.free(&row.locations).await.is_ok() {
                done.push(row);
            }
        }
        rows = done;
    }
    if rows.is_empty() {
        return Ok(0);
    }
    let freed = locations_len(&locations(&rows));
    let count = rows.len();
    let keys = rows.into_iter().map(|row| row.key).collect();
    reclaim.host.write(target, Write::ForgetGarbage { keys }).await?;
    reclaim.metrics.freed_bytes.inc_by(freed);
    reclaim.metrics.garbage_rows.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    Ok(count)
}
