//! Logs and runs: no extent is left that no partition uses (I11), in stores of older releases too.

use std::time::Duration;

use blockyard::capacity::Capacity;
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

/// All logs and runs there are get used, or removed, whatever cut off earlier sessions.
pub(crate) async fn are_all_used(stack: &Stack, store: &SimulatedStore) -> Result<(), Violation> {
    let mut left = Vec::new();
    // Flushes and compactions make new ones meanwhile.
    for wait in (0..40).map(|wait| 100 + 50 * wait) {
        left = stack.capacity.extents().await;
        let used = stack.host.owned_extents().await;
        let is_left = |kind| matches!(kind, ExtentKind::Log | ExtentKind::Run);
        left.retain(|one| is_left(one.kind) && !used.contains(&one.extent));
        if left.is_empty() {
            return Ok(());
        }
        stack.env.clock.sleep(Duration::from_millis(wait)).await;
    }
    let coordinator = store.open(&stack.env);
    let told = |error: Error| format!("{left:?}, and no records: {error}");
    let mut records = ExtentRecord::load_all(&coordinator).await.map_err(told)?.read;
    records.retain(|_, record| left.iter().any(|one| record.all().any(|id| id == one.extent)));
    let lists = coordinator.range(b"sharers/").await;
    let map = stack.router.map();
    let ids: Vec<_> = map.partitions().iter().map(|one| one.id).collect();
    Err(format!(
        "logs and runs that no partition of {ids:?} uses: {left:?}; records {records:?}, {lists:?}"
    ))
}

/// Leaves the store as it was before logs and runs were recorded (ADR 0022), unless the coordinator
/// refuses. All at once: an older release has none of the records. Tells whether there were any.
///
/// The older release ended some time ago, so no file comes back that it removed. Otherwise an
/// extent could be left that its audit would have found, and no record of the new release has.
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
    machine.settle_removals();
    let done = coordinator.txn(&[], &deletes).await;
    !deletes.is_empty() && matches!(done, Ok(TxnReply::Committed(_)))
}
