//! Lines of the audit log about changes that the manager makes on its own.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::audit_log::testing::Kept;
use crate::coordinator;
use crate::index::Plan;
use crate::manager::balancer::Balancer;
use crate::types::HostId;

impl Rig {
    /// Carries a plan out as the loop does.
    async fn carry_out(&self, plan: Plan, kept: &Kept) {
        let (setup, stop) = (self.setup(None, kept.log()), CancellationToken::new());
        Arc::new(Balancer { setup, stop }).carry_out(plan).await;
    }
}

/// The operations and outcomes of lines.
fn operations(lines: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("done").to_owned();
    lines.iter().map(|l| (text(&l["operation"]), text(&l["detail"]["outcome"]))).collect()
}

fn of(operation: &str, outcome: &str) -> (String, String) {
    (operation.to_owned(), outcome.to_owned())
}

#[tokio::test]
async fn each_change_is_logged_and_refused_ones_are_not() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..21).await;
    let kept = Kept::new();
    rig.carry_out(Plan::Split(rig.serving(1), vec![key(10)]), &kept).await;
    rig.carry_out(Plan::Move(rig.serving(1), HostId::new(1)), &kept).await;
    rig.carry_out(Plan::Split(PartitionId::new(999), vec![key(5)]), &kept).await;
    rig.carry_out(Plan::Move(rig.serving(1), HostId::new(9)), &kept).await;
    let lines = operations(&kept.changes());
    assert_eq!(lines, [of("SplitPartition", "done"), of("MovePartition", "done")]);

    // What was refused surely has not happened.
    world.store.set_full(true);
    rig.carry_out(Plan::Merge(vec![rig.serving(1), rig.serving(20)]), &kept).await;
    world.store.set_full(false);
    world.capacity.set_full(true);
    rig.carry_out(Plan::Split(rig.serving(1), vec![key(5)]), &kept).await;
    world.capacity.set_full(false);
    assert_eq!(operations(&kept.changes()), []);
    rig.check(1..21).await;
    rig.server.shutdown().await;
}

#[tokio::test]
async fn split_into_even_parts_is_logged_with_their_number() {
    let rig = open(&World::empty()).await;
    rig.write_all(1..21).await;
    let kept = Kept::new();
    rig.carry_out(Plan::SplitEvenly(rig.serving(1), 3), &kept).await;
    let lines = kept.changes();
    assert_eq!(operations(&lines), [of("SplitPartition", "done")]);
    assert_eq!(lines[0]["detail"]["ways"], 3);
    assert_eq!(rig.server.partitions(), 3);
    rig.server.shutdown().await;
}

/// The change may have happened: its line must not be missing.
#[tokio::test(start_paused = true)]
async fn changes_that_may_have_happened_are_logged() {
    let mut doubts = 0;
    for transaction in 0..8 {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write_all(1..21).await;
        rig.server.split(rig.serving(1), &[key(10)]).await.unwrap();
        rig.server.flush().await.unwrap();
        let kept = Kept::new();
        world.store.inject_after(transaction, coordinator::Fault::LostThenAway);
        let merge = Plan::Merge(vec![rig.serving(1), rig.serving(20)]);
        rig.carry_out(merge, &kept).await;
        doubts += usize::from(operations(&kept.changes()) == [of("MergePartitions", "unknown")]);
        rig.sleep(Duration::from_secs(60)).await;
        rig.check(1..21).await;
        rig.server.shutdown().await;
    }
    assert!(doubts > 0);
}

/// The neighbours lie on two hosts: one is moved before they are merged, and stays where it is when
/// they are not.
#[tokio::test]
async fn merge_that_finds_no_room_after_a_move_is_logged_as_done_in_part() {
    let (mut partly, mut nothing) = (0, 0);
    for transaction in 0..8 {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write_all(1..21).await;
        rig.server.split(rig.serving(1), &[key(10)]).await.unwrap();
        rig.server.move_to(rig.serving(20), HostId::new(1)).await.unwrap();
        rig.server.flush().await.unwrap();
        let (kept, before) = (Kept::new(), rig.map().await);
        let merge = Plan::Merge(vec![rig.serving(1), rig.serving(20)]);
        world.store.inject_after(transaction, coordinator::Fault::Full);
        rig.carry_out(merge, &kept).await;
        let (lines, after) = (kept.changes(), rig.map().await);
        if after.partitions().len() > 1 {
            let has_moved = after.partitions() != before.partitions();
            partly += usize::from(has_moved);
            nothing += usize::from(!has_moved);
            let expected =
                if has_moved { vec![of("MergePartitions", "partly")] } else { Vec::new() };
            assert_eq!(operations(&lines), expected, "{transaction}");
        }
        rig.write(account(21)).await;
        rig.check(1..22).await;
        rig.server.shutdown().await;
    }
    assert!(partly > 1 && nothing > 0, "{partly}, {nothing}");
}
