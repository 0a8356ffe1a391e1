//! Frees the locations of garbage rows, then deletes the rows.
//!
//! A row is freed when all reads of its extents that ran when a pass first read it have ended
//! (`index/inflight/reads.rs` says why that is enough).

use std::time::Duration;

use bytes::Bytes;

use crate::index::AskPartition;
use crate::index::ForgetGarbage;
use crate::index::GarbagePage;
use crate::index::GarbageRow;
use crate::index::ReadGarbage;
use crate::index::Running;
use crate::index::Target;
use crate::reclaim::error::Error;
use crate::reclaim::garbage_marks::GarbageMarks;
use crate::reclaim::invariant::Invariant;
use crate::reclaim::state::Reclaim;
use crate::types::ExtentId;
use crate::types::Location;
use crate::types::Timestamp;
use crate::types::locations_len;

/// The result of a pass over garbage.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How long listing it took. The time of freeing does not count: on a full disk the writes of
    /// reclaim wait like all others.
    pub(super) walked: Duration,
    /// Payload bytes that running reads keep from being freed.
    pub(super) held_bytes: u64,
}

/// Frees a bounded part of the garbage of one partition, except bytes that are being read. Returns
/// whether there is more to do soon.
pub(super) async fn free(
    reclaim: &Reclaim,
    target: Target,
    marks: &mut GarbageMarks,
    seen: &mut Seen,
) -> Result<bool, Error> {
    let clock = &reclaim.env.clock;
    let (mut freed, mut new, mut oldest_held) = (0, false, None);
    let (mut from, mut at_end) = (Some(Bytes::new()), false);
    while let Some(start) = from
        && freed < reclaim.config.garbage_rows_per_pass
    {
        reclaim.go_on()?;
        let read = ReadGarbage { from: start, limit: reclaim.config.garbage_rows };
        let began = clock.monotonic();
        let page = reclaim.host.ask(target, read).await;
        seen.walked += clock.monotonic().saturating_sub(began);
        let GarbagePage { rows, next } = page?;
        at_end = next.is_none();
        from = next;
        if let Some(latest) = rows.iter().map(|row| row.since).max() {
            // The mark is taken after the rows are visible: a read that registers later looks up
            // its locations after these rows were committed.
            new |= marks.note(latest, reclaim.requests.mark().await?)?;
        }
        let mut free = Vec::new();
        for row in rows {
            if is_free(reclaim, marks, &row).await? {
                free.push(row);
                continue;
            }
            seen.held_bytes += locations_len(&row.locations);
            oldest_held = oldest_held.map_or(Some(row.since), |oldest| Some(row.since.min(oldest)));
        }
        if !free.is_empty() {
            freed += free_rows(reclaim, target, free).await?;
        }
    }
    if at_end {
        marks.forget_before(oldest_held);
    }
    // Rows that are new are often held by reads that end soon.
    Ok(freed > 0 || (new && oldest_held.is_some()))
}

/// Whether no request that ran when a pass first read the row needs its bytes.
async fn is_free(reclaim: &Reclaim, marks: &GarbageMarks, row: &GarbageRow) -> Result<bool, Error> {
    let Some(before) = marks.mark(row.since) else { return Ok(false) };
    let needed = match &row.layer {
        // Its spans get garbage rows of their own, which wait for reads.
        Some(blob) => Running::Layer { before, blob: blob.clone() },
        None => {
            let mut extents: Vec<ExtentId> = row.locations.iter().map(|l| l.extent).collect();
            extents.dedup();
            extents.sort_unstable();
            extents.dedup();
            Running::Read { before, extents }
        }
    };
    Ok(!reclaim.is_running(needed).await?)
}

/// Whether a row that was committed at `since` is older than `grace`. Commit times never go back,
/// but the clock may. A row with a time in the future was committed before the clock went back, at
/// an unknown time, and counts as old.
pub(super) fn is_old(since: Timestamp, grace: Duration, now: Timestamp) -> bool {
    since.plus(grace) <= now || now.plus(grace) < since
}

/// Frees the locations of the rows, and deletes the rows whose locations were freed. Returns how
/// many these are.
pub(super) async fn free_rows(
    reclaim: &Reclaim,
    target: Target,
    mut rows: Vec<GarbageRow>,
) -> Result<usize, Error> {
    let locations = |rows: &[GarbageRow]| -> Vec<Location> {
        rows.iter().flat_map(|row| row.locations.iter().copied()).collect()
    };
    // A row of a layer of pages has no locations: they would be freed without waiting for reads.
    let is_sound = rows.iter().all(|row| row.layer.is_none() || row.locations.is_empty());
    Invariant::NothingReferencedIsFreed
        .assert(is_sound, || "a garbage row of a page layer names locations".to_owned())?;
    // Bytes first: after a crash between these two steps they are freed again. The other order
    // would leak them.
    if let Err(error) = reclaim.capacity.free(&locations(&rows)).await {
        // Some lie on a disk that takes no writes. Their rows stay; the others are freed.
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
        reclaim.host.tell(target, ForgetGarbage { keys }).await?;
    }
    for layer in layers {
        reclaim.go_on()?;
        let keys = vec![layer.key];
        reclaim.host.tell(target, ForgetGarbage { keys }).await?;
    }
    reclaim.metrics.freed_bytes.inc_by(freed);
    reclaim.metrics.garbage_rows.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    Ok(count)
}
