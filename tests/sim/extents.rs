//! Logs and runs: every extent that no partition uses is removed (I11), also in stores of older
//! releases.

use std::time::Duration;

use blockyard::capacity::ExtentKind;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::Op;
use blockyard::coordinator::SimulatedStore;
use blockyard::coordinator::TxnReply;
use blockyard::index::Error;
use blockyard::index::ExtentRecord;
use blockyard::index::IndexHost;

use crate::rig::Machine;
use crate::seeds::Violation;
use crate::stack::Stack;

/// Checks that every log and run is used or removed, however earlier sessions ended.
pub(crate) async fn are_all_used(stack: &Stack, store: &SimulatedStore) -> Result<(), Violation> {
    let mut left = Vec::new();
    // Flushes and compactions make new extents meanwhile.
    for wait in (0..40).map(|wait| 100 + 50 * wait) {
        left = stack.capacity.extents().await;
        let mut used = Vec::new();
        for host in stack.hosts() {
            used.extend(host.owned_extents().await);
        }
        let is_left = |kind| matches!(kind, ExtentKind::Log | ExtentKind::Run);
        left.retain(|one| is_left(one.kind) && !used.contains(&one.extent));
        if left.is_empty() {
            return Ok(());
        }
        stack.env.clock.sleep(Duration::from_millis(wait)).await;
    }
    let coordinator = store.open(&stack.env);
    let described = |error: Error| format!("{left:?}, and no records: {error}");
    let mut records = ExtentRecord::load_all(&coordinator).await.map_err(described)?.read;
    records.retain(|_, record| left.iter().any(|one| record.all().any(|id| id == one.extent)));
    let lists = coordinator.range(b"sharers/").await;
    let map = stack.router.map();
    let ids: Vec<_> = map.partitions().iter().map(|one| one.id).collect();
    Err(format!(
        "logs and runs that no partition of {ids:?} uses: {left:?}; records {records:?}, {lists:?}"
    ))
}

/// Removes the records of logs and runs, as in a store of an older release (ADR 0022), unless the
/// coordinator refuses. All are removed in one transaction, because an older release has none.
/// Returns whether there were any.
///
/// Removals of the older release are made durable, as after some time. Otherwise a removed file
/// could come back that only the audit of the older release would find, and that no record of the
/// new release has.
pub(crate) async fn forget_records(machine: &Machine, store: &SimulatedStore) -> bool {
    if !store.is_made() {
        return false;
    }
    let coordinator = store.open(&machine.env);
    let mut deletes = Vec::new();
    for prefix in ["extents/", "sharers/", "unrecorded-extents"] {
        let Ok(found) = coordinator.range(prefix.as_bytes()).await else { return false };
        deletes.extend(found.entries.into_iter().map(|(key, _)| Op::Delete(key)));
    }
    machine.make_removals_durable();
    let done = coordinator.txn(&[], &deletes).await;
    !deletes.is_empty() && matches!(done, Ok(TxnReply::Committed(_)))
}
