//! Frees what garbage rows name, then forgets the rows.
//!
//! A row is free once the reads of its extents that ran when it was first met have ended
//! (`index/inflight/reads.rs`).

use std::time::Duration;

use bytes::Bytes;

use crate::index::GarbageRow;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::Write;
use crate::reclaim::error::Error;
use crate::reclaim::met::Met;
use crate::reclaim::state::Reclaim;
use crate::types::ExtentId;
use crate::types::Location;
use crate::types::Timestamp;
use crate::types::locations_len;

/// What a pass over garbage found.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How long looking for it took; what freeing it takes is not reclaim's choice: on a full disk
    /// its writes wait like all others.
    pub(super) walked: Duration,
    /// Payload bytes that running reads hold.
    pub(super) held_bytes: u64,
}

/// Frees the garbage of one partition that nobody reads, a bounded part of it. Whether there is
/// more to do soon.
pub(super) async fn free(
    reclaim: &Reclaim,
    target: Target,
    met: &mut Met,
    seen: &mut Seen,
) -> Result<bool, Error> {
    let clock = &reclaim.env.clock;
    let (mut freed, mut new, mut oldest_held) = (0, false, None);
    let (mut from, mut at_end) = (Some(Bytes::new()), false);
    while let Some(start) = from
        && freed < reclaim.config.garbage_rows_per_pass
    {
        reclaim.go_on()?;
        let read = Read::Garbage { from: start, limit: reclaim.config.garbage_rows };
        let began = clock.monotonic();
        let read = reclaim.host.read(target, read).await;
        seen.walked += clock.monotonic().saturating_sub(began);
        let ReadReply::Garbage(rows, next) = read? else { return Err(Error::Answer) };
        at_end = next.is_none();
        from = next;
        if let Some(latest) = rows.iter().map(|row| row.since).max() {
            // Only now: a read noted later looks up its locations after these rows were committed.
            new |= met.note(latest, reclaim.inflight.read_mark());
        }
        let (rows, held): (Vec<GarbageRow>, Vec<GarbageRow>) =
            rows.into_iter().partition(|row| is_free(reclaim, met, row));
        for row in held {
            seen.held_bytes += locations_len(&row.locations);
            oldest_held = oldest_held.map_or(Some(row.since), |oldest| Some(row.since.min(oldest)));
        }
        if !rows.is_empty() {
            freed += free_rows(reclaim, target, rows).await?;
        }
    }
    if at_end {
        met.forget_before(oldest_held);
    }
    // What was met only now is often held by reads that end at once.
    Ok(freed > 0 || (new && oldest_held.is_some()))
}

/// Whether nobody who ran when the row was met needs what it stands for.
fn is_free(reclaim: &Reclaim, met: &Met, row: &GarbageRow) -> bool {
    let Some(mark) = met.mark(row.since) else { return false };
    match &row.layer {
        // Its spans become garbage of their own, which reads hold.
        Some(blob) => !reclaim.inflight.is_making_layer(mark, blob),
        None => {
            let mut extents: Vec<ExtentId> = row.locations.iter().map(|l| l.extent).collect();
            extents.dedup();
            extents.sort_unstable();
            extents.dedup();
            !reclaim.inflight.is_read(mark, &extents)
        }
    }
}

/// Whether what was committed at `since` is older than the grace. Commit times never go back, the
/// clock may: what is from the future was committed before that, nobody knows how long ago, and
/// must not wait for that time to come again.
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
        // Some of it lies on a disk that takes no writes. Its rows stay, and cost the others
        // nothing.
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
    let (layers, rows): (Vec<GarbageRow>, Vec<GarbageRow>) =
        rows.into_iter().partition(|row| row.layer.is_some());
    let keys: Vec<Bytes> = rows.into_iter().map(|row| row.key).collect();
    if !keys.is_empty() {
        reclaim.host.write(target, Write::ForgetGarbage { keys }).await?;
    }
    for layer in layers {
        reclaim.go_on()?;
        let keys = vec![layer.key];
        reclaim.host.write(target, Write::ForgetGarbage { keys }).await?;
    }
    reclaim.metrics.freed_bytes.inc_by(freed);
    reclaim.metrics.garbage_rows.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    Ok(count)
}
