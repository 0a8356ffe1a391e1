//! The audit: frees of data extents what no row names. The only place that concludes from the
//! absence of a reference, so every doubt ends it. Logs and runs are not freed here: `verify.rs`
//! holds them against the records of the partitions.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::capacity;
use crate::capacity::Audited;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::index::inflight::CopyWatch;
use crate::index::inflight::ReadMark;
use crate::reclaim::cursor::Cursor;
use crate::reclaim::cursor::Place;
use crate::reclaim::error::Error;
use crate::reclaim::live::Live;
use crate::reclaim::report::AuditReport;
use crate::reclaim::state::Reclaim;
use crate::reclaim::verify;
use crate::reclaim::walk;
use crate::types::ExtentId;

/// Holds the sealed data extents that no running write has bytes in against all rows, in ascending
/// order, and frees the rest of them: from where the round is to its end. Each walk over the rows
/// serves as many extents as memory allows. After each the cursor says how far the round is, so
/// that a restart goes on there. What the cursor passed and was not freed, or was freed and
/// forgotten in a crash, is met in the next round.
///
/// New extents have higher ids. The round ends behind the highest there was at its beginning, so
/// it ends although they keep coming.
pub(super) async fn audit(reclaim: &Reclaim) -> Result<AuditReport, Error> {
    let coordinator = reclaim.coordinator.as_ref();
    let found = Cursor::load(coordinator).await?;
    let mut report = AuditReport { resumed: found.is_some(), ..AuditReport::default() };
    let mut is_stored = report.resumed;
    let mut next = match found {
        Some(cursor) => Some(cursor),
        None => begin(reclaim).await,
    };
    while let Some(cursor) = next {
        let place = walk_and_free(reclaim, cursor, &mut report).await?;
        // Only now: what a kill cuts off is done again.
        next = place.map(|next| Cursor { next, ..cursor });
        if next.is_some() || is_stored {
            is_stored = save(reclaim, next).await;
        }
    }
    verify::verify(reclaim, &mut report).await?;
    Ok(report)
}

/// A round from the first extent to the last that there is.
async fn begin(reclaim: &Reclaim) -> Option<Cursor> {
    let last = reclaim.capacity.extents().await.last()?.extent;
    Some(Cursor { next: Place::start_of(ExtentId::new(0)), last })
}

/// Puts the cursor; whether there may be one now. If that fails the round goes on all the same, and
/// a restart repeats what it would have spared.
async fn save(reclaim: &Reclaim, cursor: Option<Cursor>) -> bool {
    match Cursor::save(cursor, reclaim.coordinator.as_ref()).await {
        Ok(()) => cursor.is_some(),
        Err(error) => {
            tracing::warn!(%error, "the cursor of the audit was not written");
            true
        }
    }
}

/// One walk: audits extents of the round from the cursor on. Where the next one goes on, none at
/// the end of the round.
///
/// The order is what makes it safe: first the list of extents, then the walk. A write that was
/// running at the list is excluded with its extent; one that had ended had committed, so the walk
/// meets it; a later one cannot add to a sealed extent. Copies name what lies in sealed extents:
/// what keeps them safe stands in `index/inflight/copies.rs`. Shared bytes that lost their last row
/// before the end of the walk may still be streamed by a reader that looked them up before: each
/// extent waits for the reads that name it, and no other does (`index/inflight/reads.rs`).
///
/// List, watch of copies and mark of reads are those of this walk alone. Nothing of what an earlier
/// walk found is used in a later one.
async fn walk_and_free(
    reclaim: &Reclaim,
    cursor: Cursor,
    report: &mut AuditReport,
) -> Result<Option<Place>, Error> {
    let copies = reclaim.inflight.watch_copies();
    let listed = reclaim.capacity.extents().await;
    let mut candidates: BTreeSet<ExtentId> = listed
        .iter()
        .filter(|info| info.kind == ExtentKind::Data && info.state == ExtentState::Sealed)
        .map(|info| info.extent)
        .filter(|extent| (cursor.next.extent..=cursor.last).contains(extent))
        .filter(|extent| !reclaim.inflight.is_written(*extent))
        .collect();
    drop(listed);
    // A start that finds an extent's first page damaged takes it for data: no row names a log or a
    // run. Stores of older releases have logs and runs without a record.
    let mut of_index = reclaim.partitions.extents().await?;
    let map = reclaim.partitions.map().await?;
    of_index.extend(map.partitions().iter().flat_map(|partition| &partition.log));
    of_index.extend(reclaim.host.owned_extents().await);
    candidates.retain(|extent| !of_index.contains(extent));
    show_left(reclaim, candidates.len());
    if candidates.is_empty() {
        return Ok(None);
    }
    let ids = candidates.iter().copied();
    let mut live = Live::new(ids, cursor.next, reclaim.config.audit_ranges_max);
    walk::walk(reclaim, &mut live).await?;
    report.walks += 1;
    reclaim.metrics.audit_walks.inc();
    let mark = reclaim.inflight.read_mark();
    wait_for_look_ups(reclaim, &copies, mark).await?;
    let found = live.finish().await;
    let mut waiting = Vec::new();
    for (extent, ranges) in found.extents {
        let began_before = cursor.next.offset > 0 && cursor.next.extent == extent;
        let ends_later = found.next.is_some_and(|next| next.extent == extent);
        let audited = if began_before || ends_later { Audited::Part } else { Audited::Whole };
        let held = Held { extent, ranges, audited, mark };
        if !free(reclaim, &copies, &held, report).await? {
            waiting.push(held);
        }
    }
    free_when_read(reclaim, &copies, waiting, report).await?;
    show_left(reclaim, found.next.map_or(0, |next| candidates.range(next.extent..).count()));
    Ok(found.next)
}

fn show_left(reclaim: &Reclaim, extents: usize) {
    reclaim.metrics.audit_left_extents.set(i64::try_from(extents).unwrap_or(i64::MAX));
}

/// An extent that was held against the rows, and the reads from before the end of that walk.
struct Held {
    extent: ExtentId,
    /// What rows name of it, and what this walk did not look at.
    ranges: Vec<Range<u64>>,
    audited: Audited,
    mark: ReadMark,
}

/// Frees what is not live of an extent; false while a read names it. An extent that cannot be freed
/// does not keep the round from the others.
async fn free(
    reclaim: &Reclaim,
    copies: &CopyWatch,
    held: &Held,
    report: &mut AuditReport,
) -> Result<bool, Error> {
    reclaim.go_on()?;
    if reclaim.inflight.is_read(held.mark, &[held.extent]) {
        return Ok(false);
    }
    if copies.is_named(held.extent) {
        report.copied += 1;
        return Ok(true);
    }
    match reclaim.capacity.retain(held.extent, &held.ranges, held.audited).await {
        Ok(()) | Err(capacity::Error::NoSuchExtent { .. }) => report.extents += 1,
        Err(capacity::Error::Poisoned { .. } | capacity::Error::OutOfService { .. }) => {
            report.poisoned += 1;
        }
        Err(error) => {
            tracing::warn!(extent = %held.extent, %error, "an extent was not freed by the audit");
            report.failed += 1;
        }
    }
    Ok(true)
}

/// Frees extents that reads name as soon as they do no more. What is read for too long is left to
/// the next round.
async fn free_when_read(
    reclaim: &Reclaim,
    copies: &CopyWatch,
    mut waiting: Vec<Held>,
    report: &mut AuditReport,
) -> Result<(), Error> {
    let began = reclaim.env.clock.monotonic();
    let waited = || reclaim.env.clock.monotonic().saturating_sub(began);
    while !waiting.is_empty() && waited() < reclaim.config.audit_read_max {
        reclaim.env.clock.sleep(reclaim.config.audit_wait).await;
        let mut left = Vec::new();
        for held in waiting {
            if !free(reclaim, copies, &held, report).await? {
                left.push(held);
            }
        }
        waiting = left;
    }
    let left = u64::try_from(waiting.len()).unwrap_or(u64::MAX);
    report.read += left;
    reclaim.metrics.read_extents.inc_by(left);
    Ok(())
}

/// Waits until every copy and every read that began before the end of the walk has told what it
/// found; not for ever: a disk may not answer.
async fn wait_for_look_ups(
    reclaim: &Reclaim,
    copies: &CopyWatch,
    reads: ReadMark,
) -> Result<(), Error> {
    let mark = copies.mark();
    let began = reclaim.env.clock.monotonic();
    while copies.is_looking_up(mark) || reclaim.inflight.is_looking_up(reads) {
        reclaim.go_on()?;
        let waited = reclaim.env.clock.monotonic().saturating_sub(began);
        if waited >= reclaim.config.audit_wait_max {
            reclaim.metrics.audits_held.inc();
            return Err(Error::Held { waited });
        }
        reclaim.env.clock.sleep(reclaim.config.audit_wait).await;
    }
    Ok(())
}
