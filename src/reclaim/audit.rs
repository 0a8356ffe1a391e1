//! The audit: frees bytes of data extents that no row names. No other code frees bytes because a
//! reference is absent, so every uncertainty ends it. Logs and runs are not freed here: `verify.rs`
//! compares them with the records of the partitions.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::capacity;
use crate::capacity::Audited;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::index;
use crate::index::CopyWatch;
use crate::index::RequestMark;
use crate::index::Running;
use crate::reclaim::cursor::Cursor;
use crate::reclaim::cursor::Place;
use crate::reclaim::error::Error;
use crate::reclaim::invariant::Invariant;
use crate::reclaim::live::Found;
use crate::reclaim::live::Live;
use crate::reclaim::report::AuditReport;
use crate::reclaim::state::Reclaim;
use crate::reclaim::verify;
use crate::reclaim::walk;
use crate::types::ExtentId;

/// Compares the sealed data extents that no running write uses with all rows, in ascending order,
/// and frees the bytes that no row names: from the cursor of the round to its end. Each walk over
/// the rows covers as many extents as memory allows. After each walk the cursor is saved, so that a
/// restart continues there. Bytes behind the cursor that were not freed, or whose free was lost in
/// a crash, are freed in the next round.
///
/// New extents have higher ids. The round ends behind the highest id at its beginning, so it ends
/// although extents are created meanwhile.
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
        // After the walk: a walk that a crash interrupts is repeated.
        next = place.map(|place| cursor.advanced_to(place)).transpose()?;
        if next.is_some() || is_stored {
            is_stored = save(reclaim, next).await;
        }
    }
    // In a cluster this process does not know all uses.
    if !reclaim.capacity.is_shared() {
        verify::verify(reclaim, &mut report).await?;
    }
    Ok(report)
}

/// A round from the first extent to the last existing one.
async fn begin(reclaim: &Reclaim) -> Option<Cursor> {
    let last = reclaim.capacity.extents().await.last()?.extent;
    Some(Cursor { next: Place::start_of(ExtentId::new(0)), last })
}

/// Saves or removes the cursor. Returns whether one may be stored now. If that fails the round
/// continues, and a restart repeats some of it.
async fn save(reclaim: &Reclaim, cursor: Option<Cursor>) -> bool {
    match Cursor::save(cursor, reclaim.coordinator.as_ref()).await {
        Ok(()) => cursor.is_some(),
        Err(error) => {
            tracing::warn!(%error, "the cursor of the audit was not written");
            true
        }
    }
}

/// One walk: audits extents of the round from the cursor on. Returns where the next walk continues;
/// `None` at the end of the round.
///
/// It is safe because extents are listed before the walk. A write that ran at the time of the list
/// excludes its extent. A write that had ended had committed, so the walk sees its row. A later
/// write cannot append to a sealed extent. Copies name bytes of sealed extents;
/// `index/inflight/copies.rs` says why they are safe. Shared bytes that lost their last row before
/// the end of the walk may still be streamed by a read that looked them up before, so each extent
/// waits for the reads that name it (`index/inflight/reads.rs`).
///
/// In a cluster all of this holds for the processes that have a session at the beginning of the
/// walk and at its end. Only these can make copies (ADR 0065).
///
/// The list, the watch of copies and the mark of reads belong to one walk. A later walk uses
/// nothing that an earlier one found.
async fn walk_and_free(
    reclaim: &Reclaim,
    cursor: Cursor,
    report: &mut AuditReport,
) -> Result<Option<Place>, Error> {
    let copies = CopyWatch::begin(&reclaim.requests).await?;
    let listed = reclaim.capacity.extents().await;
    let written = reclaim.requests.written_extents().await?;
    let mut candidates: BTreeSet<ExtentId> = listed
        .iter()
        .filter(|info| info.kind == ExtentKind::Data && info.state == ExtentState::Sealed)
        .map(|info| info.extent)
        .filter(|extent| (cursor.next.extent..=cursor.last).contains(extent))
        .filter(|extent| !written.contains(extent))
        .collect();
    drop(listed);
    // A log or run whose first page is damaged looks like a data extent after a start, and no row
    // names it. In stores of older releases logs and runs may have no record.
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
    let mark = reclaim.requests.mark().await?;
    wait_for_look_ups(reclaim, mark).await?;
    // What a process has copied that came later, or has gone, is not known.
    if !reclaim.requests.has_seen_all(copies.id()).await? {
        let why = "a process began or ended during the walk";
        return Err(Error::Index(index::Error::NoAnswer(why.to_owned())));
    }
    let found = live.finish().await?;
    check_complete(&candidates, &found)?;
    check_not_of_index(reclaim, &found).await?;
    let mut waiting = Vec::new();
    for (extent, ranges) in found.extents {
        let began_before = cursor.next.offset > 0 && cursor.next.extent == extent;
        let ends_later = found.next.is_some_and(|next| next.extent == extent);
        let audited = if began_before || ends_later { Audited::Part } else { Audited::Whole };
        let verdict = Verdict { extent, live: ranges, audited, mark };
        if !free(reclaim, &copies, &verdict, report).await? {
            waiting.push(verdict);
        }
    }
    free_when_read(reclaim, &copies, waiting, report).await?;
    show_left(reclaim, found.next.map_or(0, |next| candidates.range(next.extent..).count()));
    Ok(found.next)
}

fn show_left(reclaim: &Reclaim, extents: usize) {
    reclaim.metrics.audit_left_extents.set(i64::try_from(extents).unwrap_or(i64::MAX));
}

/// Asserts I11: no candidate before the end of the walk was left out. The cursor would pass it, and
/// its garbage would stay.
pub(super) fn check_complete(candidates: &BTreeSet<ExtentId>, found: &Found) -> Result<(), Error> {
    let is_passed =
        |extent: &&ExtentId| found.next.is_none_or(|next| Place::start_of(**extent) < next);
    let mut passed = candidates.iter().filter(is_passed);
    let left_out = passed.find(|extent| !found.extents.contains_key(extent));
    Invariant::UnreferencedIsFreed.assert(left_out.is_none(), || {
        format!("the audit would pass extent {left_out:?} without having compared it with the rows")
    })
}

/// Asserts I10: no extent that is about to be freed is a log or run of a partition.
async fn check_not_of_index(reclaim: &Reclaim, found: &Found) -> Result<(), Error> {
    let owned = reclaim.host.owned_extents().await;
    let in_use = owned.into_iter().find(|extent| found.extents.contains_key(extent));
    Invariant::NothingReferencedIsFreed.assert(in_use.is_none(), || {
        format!("the audit would free extent {in_use:?}, which a partition uses as log or run")
    })
}

/// The decision of an audit about an extent.
struct Verdict {
    extent: ExtentId,
    /// The ranges that rows name, and those that this walk did not audit. The rest is freed.
    live: Vec<Range<u64>>,
    audited: Audited,
    /// Taken at the end of the walk: reads from before it may need bytes that no row names.
    mark: RequestMark,
}

/// Frees the bytes of an extent that are not live. Returns false while a read names the extent. An
/// extent that cannot be freed does not keep the round from the others.
async fn free(
    reclaim: &Reclaim,
    copies: &CopyWatch,
    verdict: &Verdict,
    report: &mut AuditReport,
) -> Result<bool, Error> {
    reclaim.go_on()?;
    let read = Running::Read { before: verdict.mark, extents: vec![verdict.extent] };
    if reclaim.is_running(read).await? {
        return Ok(false);
    }
    let copy = Running::Copy { since: copies.id(), extent: verdict.extent };
    if reclaim.is_running(copy).await? {
        report.copied += 1;
        return Ok(true);
    }
    match reclaim.capacity.retain(verdict.extent, &verdict.live, verdict.audited).await {
        Ok(()) | Err(capacity::Error::NoSuchExtent { .. }) => report.extents += 1,
        Err(capacity::Error::Poisoned { .. } | capacity::Error::OutOfService { .. }) => {
            report.poisoned += 1;
        }
        Err(error) => {
            tracing::warn!(extent = %verdict.extent, %error, "an extent was not freed by the audit");
            report.failed += 1;
        }
    }
    Ok(true)
}

/// Frees extents when the reads that name them have ended. Extents that are read for too long are
/// left to the next round.
async fn free_when_read(
    reclaim: &Reclaim,
    copies: &CopyWatch,
    mut waiting: Vec<Verdict>,
    report: &mut AuditReport,
) -> Result<(), Error> {
    let began = reclaim.env.clock.monotonic();
    let waited = || reclaim.env.clock.monotonic().saturating_sub(began);
    while !waiting.is_empty() && waited() < reclaim.config.audit_read_max {
        reclaim.env.clock.sleep(reclaim.config.audit_wait).await;
        let mut left = Vec::new();
        for verdict in waiting {
            if !free(reclaim, copies, &verdict, report).await? {
                left.push(verdict);
            }
        }
        waiting = left;
    }
    let left = u64::try_from(waiting.len()).unwrap_or(u64::MAX);
    report.read += left;
    reclaim.metrics.read_extents.inc_by(left);
    Ok(())
}

/// Waits until the look-ups of all copies and reads that began before the end of the walk are done.
/// The wait is bounded, since a disk may not answer.
async fn wait_for_look_ups(reclaim: &Reclaim, before: RequestMark) -> Result<(), Error> {
    let copies = || reclaim.is_running(Running::CopyLookUp { before });
    let reads = || reclaim.is_running(Running::Read { before, extents: Vec::new() });
    let began = reclaim.env.clock.monotonic();
    while copies().await? || reads().await? {
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
