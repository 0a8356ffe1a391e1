//! The audit: frees of data extents what no row names. The only place that concludes from the
//! absence of a reference, so every doubt ends it. Logs and runs are not freed here: `verify.rs`
//! holds them against the records of the partitions.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::capacity;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::index::inflight::CopyWatch;
use crate::index::inflight::ReadMark;
use crate::reclaim::Error;
use crate::reclaim::live::Live;
use crate::reclaim::service::Reclaim;
use crate::reclaim::verify;
use crate::reclaim::walk;
use crate::types::ExtentId;

/// What an audit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// Data extents held against the rows.
    pub extents: u64,
    /// Walks over all rows that took.
    pub walks: u64,
    /// Data extents left alone because a copy meanwhile named bytes of them.
    pub copied: u64,
    /// Data extents left to the next audit because a read of them went on.
    pub read: u64,
    /// Logs and runs that are there and in no partition's record.
    pub orphaned: u64,
    /// Logs and runs that partitions served here use and that are not there.
    pub missing: u64,
    /// Extents left alone because their disk takes no writes; a later audit frees them.
    pub poisoned: u64,
}

/// Holds every sealed data extent that no running write has bytes in against all rows, and frees
/// the rest of it.
///
/// The order is what makes it safe: first the list of extents, then the walk. A write that was
/// running at the list is excluded with its extent; one that had ended had committed, so the walk
/// meets it; a later one cannot add to a sealed extent. Copies name what lies in sealed extents:
/// what keeps them safe stands in `index/inflight/copies.rs`. Shared bytes that lost their last row
/// before the end of the walk may still be streamed by a reader that looked them up before: each
/// extent waits for the reads that name it, and no other does (`index/inflight/reads.rs`).
pub(super) async fn audit(reclaim: &Reclaim) -> Result<AuditReport, Error> {
    let mut report = AuditReport::default();
    let copies = reclaim.inflight.watch_copies();
    let listed = reclaim.capacity.extents().await;
    let mut candidates: BTreeSet<ExtentId> = listed
        .iter()
        .filter(|info| info.kind == ExtentKind::Data && info.state == ExtentState::Sealed)
        .map(|info| info.extent)
        .filter(|extent| !reclaim.inflight.is_written(*extent))
        .collect();
    // A start that finds an extent's first page damaged takes it for data: no row names a log or a
    // run.
    let recorded = reclaim.partitions.extents().await?;
    candidates.retain(|extent| !recorded.contains(extent));
    let mut waiting = Waiting::default();
    while !candidates.is_empty() {
        let mut live = Live::new(candidates.iter().copied(), reclaim.config.audit_ranges_max);
        walk::walk(reclaim, |location| {
            live.add(location.extent, reclaim.capacity.frames_of(location));
        })
        .await?;
        report.walks += 1;
        let mark = reclaim.inflight.read_mark();
        wait_for_look_ups(reclaim, &copies, mark).await?;
        for (extent, ranges) in live.finish() {
            candidates.remove(&extent);
            let held = Held { extent, ranges, mark };
            if !free(reclaim, &copies, &held, &mut report).await? {
                waiting.add(held, reclaim.config.audit_ranges_max);
            }
        }
    }
    waiting.free(reclaim, &copies, &mut report).await?;
    verify::verify(reclaim, &mut report).await?;
    Ok(report)
}

/// An extent that was held against the rows, and the reads from before the end of that walk.
struct Held {
    extent: ExtentId,
    /// What rows name of it.
    ranges: Vec<Range<u64>>,
    mark: ReadMark,
}

/// Frees what is not live of an extent; false while a read names it.
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
    match reclaim.capacity.retain(held.extent, &held.ranges).await {
        Ok(()) | Err(capacity::Error::NoSuchExtent { .. }) => report.extents += 1,
        Err(capacity::Error::Poisoned { .. }) => report.poisoned += 1,
        Err(error) => return Err(error.into()),
    }
    Ok(true)
}

/// Extents that reads name.
#[derive(Default)]
struct Waiting {
    extents: Vec<Held>,
    ranges: usize,
    /// Left to the next audit at once: too much is remembered.
    left: u64,
}

impl Waiting {
    fn add(&mut self, held: Held, ranges_max: usize) {
        let ranges = self.ranges.saturating_add(held.ranges.len());
        if ranges <= ranges_max {
            self.ranges = ranges;
            self.extents.push(held);
        } else {
            self.left += 1;
        }
    }

    /// Frees each as soon as it is read no more; what is read for too long is left to the next
    /// audit.
    async fn free(
        mut self,
        reclaim: &Reclaim,
        copies: &CopyWatch,
        report: &mut AuditReport,
    ) -> Result<(), Error> {
        let began = reclaim.env.clock.monotonic();
        let waited = || reclaim.env.clock.monotonic().saturating_sub(began);
        while !self.extents.is_empty() && waited() < reclaim.config.audit_read_max {
            reclaim.env.clock.sleep(reclaim.config.audit_wait).await;
            let mut left = Vec::new();
            for held in self.extents {
                if !free(reclaim, copies, &held, report).await? {
                    left.push(held);
                }
            }
            self.extents = left;
        }
        report.read = self.left + u64::try_from(self.extents.len()).unwrap_or(u64::MAX);
        reclaim.metrics.read_extents.inc_by(report.read);
        Ok(())
    }
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
