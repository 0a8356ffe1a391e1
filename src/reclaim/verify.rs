//! Compares logs and runs with the records of the partitions (ADR 0022), and reports differences.
//! It removes nothing: an extent that this process does not know may belong to another.

use std::collections::BTreeSet;

use crate::capacity::ExtentKind;
use crate::reclaim::error::Error;
use crate::reclaim::report::AuditReport;
use crate::reclaim::state::Reclaim;
use crate::types::ExtentId;

/// Extents named in one log line.
const NAMED_MAX: usize = 16;

/// Counts the logs and runs that are in no record, and those that a partition served here uses but
/// that do not exist.
///
/// An extent is recorded before it is created and until it is removed, and no id is used twice. So
/// an extent that exists before and after the records are read, and is in none of them, belongs to
/// no partition.
pub(super) async fn verify(reclaim: &Reclaim, report: &mut AuditReport) -> Result<(), Error> {
    let before = present(reclaim, is_of_index).await;
    let recorded = reclaim.partitions.extents().await?;
    let after = present(reclaim, is_of_index).await;
    let both = before.intersection(&after).copied();
    let orphaned: Vec<ExtentId> = both.filter(|extent| !recorded.contains(extent)).collect();

    let used = reclaim.host.owned_extents().await;
    // A damaged log or run may look like data.
    let existing = present(reclaim, |_| true).await;
    let still_used: BTreeSet<ExtentId> = reclaim.host.owned_extents().await.into_iter().collect();
    let is_missing = |extent: &ExtentId| still_used.contains(extent) && !existing.contains(extent);
    let missing: Vec<ExtentId> = used.into_iter().filter(is_missing).collect();
    if !orphaned.is_empty() {
        let (count, first) = (orphaned.len(), orphaned.get(..NAMED_MAX).unwrap_or(&orphaned));
        tracing::warn!(count, ?first, "some logs or runs are in no partition's record");
    }
    if !missing.is_empty() {
        let (count, first) = (missing.len(), missing.get(..NAMED_MAX).unwrap_or(&missing));
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
