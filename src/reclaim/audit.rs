//! The audit: frees what no row names. The only place that concludes from the absence of a reference, so every doubt ends
//! it.

use std::collections::BTreeSet;

use crate::capacity;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::index::inflight::CopyWatch;
use crate::reclaim::Error;
use crate::reclaim::live::Live;
use crate::reclaim::service::Reclaim;
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
    /// Log and run extents removed.
    pub removed: u64,
    /// Extents left alone because their disk takes no writes; a later audit frees them.
    pub poisoned: u64,
}

/// Holds every sealed data extent that no running write has bytes in against all rows, and frees the rest of it.
///
/// The order is what makes it safe: first the list of extents, then the walk. A write that was running at the list is
/// excluded with its extent; one that had ended had committed, so the walk meets it; a later one cannot add to a sealed
/// extent. Copies name what lies in sealed extents: what keeps them safe stands in `index/inflight/copies.rs`. Shared bytes
/// that lost their last row during the walk may still be streamed by a reader that looked them up before: the audit waits
/// for it, an hour at most.
pub(super) async fn audit(
    reclaim: &Reclaim,
    orphans: &BTreeSet<ExtentId>,
) -> Result<AuditReport, Error> {
    let mut report = AuditReport::default();
    let copies = reclaim.inflight.watch_copies();
    let listed = reclaim.capacity.extents().await;
    let mut candidates: BTreeSet<ExtentId> = listed
        .iter()
        .filter(|info| info.kind == ExtentKind::Data && info.state == ExtentState::Sealed)
        .map(|info| info.extent)
        .filter(|extent| !reclaim.inflight.is_written(*extent))
        .collect();
    // A start that finds an extent's first page damaged takes it for data: no row names a log or a run.
    let named = named(reclaim).await?;
    candidates.retain(|extent| !named.contains(extent));
    while !candidates.is_empty() {
        let mut live = Live::new(candidates.iter().copied(), reclaim.config.audit_ranges_max);
        walk::walk(reclaim, |location| {
            live.add(location.extent, reclaim.capacity.frames_of(location));
        })
        .await?;
        report.walks += 1;
        wait_for_look_ups(reclaim, &copies).await?;
        for (extent, ranges) in live.finish() {
            reclaim.go_on()?;
            candidates.remove(&extent);
            if copies.is_named(extent) {
                report.copied += 1;
                continue;
            }
            match reclaim.capacity.retain(extent, &ranges).await {
                Ok(()) | Err(capacity::Error::NoSuchExtent { .. }) => report.extents += 1,
                Err(capacity::Error::Poisoned { .. }) => report.poisoned += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
    remove_orphans(reclaim, &listed, orphans, &mut report).await?;
    Ok(report)
}

/// Waits until every copy that began before the end of the walk has told what it met, and every read that began before it
/// has ended; not for ever: a reader may take days.
async fn wait_for_look_ups(reclaim: &Reclaim, copies: &CopyWatch) -> Result<(), Error> {
    let (mark, end) = (copies.mark(), reclaim.env.clock.now());
    let began = reclaim.env.clock.monotonic();
    let oldest_read = || reclaim.inflight.oldest_read(reclaim.env.clock.now());
    let reading = || oldest_read().is_some_and(|oldest| oldest <= end);
    while copies.is_looking_up(mark) || reading() {
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

/// The logs and runs among `before`, listed before the partitions were opened, that none of them names now.
pub(super) async fn orphans(
    reclaim: &Reclaim,
    before: &[ExtentInfo],
) -> Result<BTreeSet<ExtentId>, Error> {
    let named = named(reclaim).await?;
    Ok(before
        .iter()
        .filter(|info| matches!(info.kind, ExtentKind::Log | ExtentKind::Run))
        .map(|info| info.extent)
        .filter(|extent| !named.contains(extent))
        .collect())
}

async fn remove_orphans(
    reclaim: &Reclaim,
    listed: &[ExtentInfo],
    orphans: &BTreeSet<ExtentId>,
    report: &mut AuditReport,
) -> Result<(), Error> {
    let present = listed.iter().map(|info| info.extent).filter(|extent| orphans.contains(extent));
    let present: Vec<ExtentId> = present.collect();
    if present.is_empty() {
        return Ok(());
    }
    let named = named(reclaim).await?;
    for extent in present.into_iter().filter(|extent| !named.contains(extent)) {
        match reclaim.capacity.remove(extent).await {
            Ok(()) => {
                reclaim.metrics.removed_extents.inc();
                report.removed += 1;
            }
            Err(capacity::Error::Poisoned { .. }) => report.poisoned += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// All logs and runs in use. A partition that does not serve would name none of its own: then this fails.
async fn named(reclaim: &Reclaim) -> Result<BTreeSet<ExtentId>, Error> {
    let map = reclaim.partitions.map().await?;
    walk::prove_all(reclaim, &map).await?;
    let mut named: BTreeSet<ExtentId> = reclaim.host.owned_extents().await.into_iter().collect();
    named.extend(map.partitions().iter().flat_map(|partition| &partition.log));
    Ok(named)
}
