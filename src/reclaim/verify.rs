//! Holds logs and runs against the records of the partitions (ADR 0022), and reports what does not
//! agree. It removes nothing: what one process does not know of may be another's.

use std::collections::BTreeSet;

use crate::capacity::ExtentKind;
use crate::reclaim::error::Error;
use crate::reclaim::report::AuditReport;
use crate::reclaim::state::Reclaim;
use crate::types::ExtentId;

/// Extents told in one log line.
const TOLD: usize = 16;

/// Counts the logs and runs that no record has, and those that a partition served here uses and
/// that are not there.
///
/// An extent is recorded before it is created and until it is removed. So one that is there before
/// the records are read, in none of them, and still there afterwards, is no one's: no id is used
/// twice.
pub(super) async fn verify(reclaim: &Reclaim, report: &mut AuditReport) -> Result<(), Error> {
    let before = present(reclaim, is_of_index).await;
    let recorded = reclaim.partitions.extents().await?;
    let after = present(reclaim, is_of_index).await;
    let both = before.intersection(&after).copied();
    let orphaned: Vec<ExtentId> = both.filter(|extent| !recorded.contains(extent)).collect();

    let used = reclaim.host.owned_extents().await;
    // Damage may show a log or a run as data.
    let there = present(reclaim, |_| true).await;
    let still_used: BTreeSet<ExtentId> = reclaim.host.owned_extents().await.into_iter().collect();
    let is_missing = |extent: &ExtentId| still_used.contains(extent) && !there.contains(extent);
    let missing: Vec<ExtentId> = used.into_iter().filter(is_missing).collect();
    if !orphaned.is_empty() {
        let (count, first) = (orphaned.len(), orphaned.get(..TOLD).unwrap_or(&orphaned));
        tracing::warn!(count, ?first, "some logs or runs are in no partition's record");
    }
    if !missing.is_empty() {
        let (count, first) = (missing.len(), missing.get(..TOLD).unwrap_or(&missing));
        tracing::error!(count, ?first, "logs or runs that partitions use are missing");
    }
    report.orphaned = count(&orphaned);
    report.missing = count(&missing);
    reclaim.metrics.orphaned_extents.set(gauge(report.orphaned));
    reclaim.metrics.missing_extents.set(gauge(report.missing));
    Ok(())
}

async fn present(reclaim: &Reclaim, is_meant: fn(ExtentKind) -> bool) -> BTreeSet<ExtentId> {
    let infos = reclaim.capacity.extents().await;
    infos.iter().filter(|info| is_meant(info.kind)).map(|info| info.extent).collect()
}

fn is_of_index(kind: ExtentKind) -> bool {
    matches!(kind, ExtentKind::Log | ExtentKind::Run)
}

fn count(extents: &[ExtentId]) -> u64 {
    u64::try_from(extents.len()).unwrap_or(u64::MAX)
}

fn gauge(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
