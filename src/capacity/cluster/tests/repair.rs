//! Settling of copies that nobody else settles, and repair of groups.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::capacity::CopyId;
use crate::capacity::Extension;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentState;
use crate::capacity::cluster::Present;
use crate::capacity::cluster::Step;
use crate::capacity::copies::tests::cluster::Calls;
use crate::capacity::groups;
use crate::capacity::groups::GroupRecord;
use crate::coordinator::Op;
use crate::types::GroupId;

/// Nobody lives as a writer.
fn present(table: &[NodeRow]) -> Present {
    let (leaving, writers) = (BTreeSet::new(), BTreeSet::new());
    Present { table: table.to_vec(), leaving, writers }
}

/// Takes steps until there is nothing to do or it waits.
async fn repair(capacity: &ClusterCapacity, group: GroupId, present: &Present) -> Step {
    for _ in 0..200 {
        match capacity.repair(group, present).await.unwrap() {
            Step::Changed | Step::Pulled(_) => {
                capacity.env.clock.sleep(Duration::from_millis(50)).await;
            }
            last @ (Step::Done | Step::Written | Step::Waits(_)) => return last,
        }
    }
    panic!("the repair does not end");
}

impl Cluster {
    async fn record(&self, group: GroupId) -> GroupRecord {
        groups::read(&*self.coordinator, group).await.unwrap().unwrap().record
    }
}

async fn infos(cluster: &Cluster, number: u64, group: GroupId) -> Vec<ExtentInfo> {
    let mut infos = Vec::new();
    for extent in group.extents() {
        if let Ok(Some(copy)) = cluster.node(number).copy(extent).await {
            infos.push(ExtentInfo {
                extent,
                kind: copy.kind,
                state: copy.state,
                epoch: copy.epoch,
                len: copy.end.get(),
                freed: 0,
                disk: 0,
            });
        }
    }
    infos
}

/// A group on these nodes, with a body in its first extent.
async fn group_on(cluster: &Cluster, members: &[u64], bytes: &Bytes) -> (GroupAt, Location) {
    let maker = GroupMaker::new(Arc::clone(&cluster.coordinator), CLUSTER, Incarnation::new(1));
    let members: Vec<NodeId> = members.iter().map(|number| NodeId::new(*number)).collect();
    let group = maker.make(ExtentKind::Data, &members).await.unwrap();
    let capacity = cluster.process(None).await;
    let extent = group.record.id().extents().next().unwrap();
    capacity.create(extent, ExtentKind::Data, ONE).await.unwrap();
    let appended = append(&capacity, extent, ExtentOffset::START, bytes).await.unwrap();
    (group, appended.locations[0])
}

#[test]
fn group_with_a_copy_less_gets_it_from_the_others() {
    run(async {
        let cluster = Cluster::new(41).await;
        cluster.heed().await;
        let bytes = payload(1, 300_000);
        let (at, location) = group_on(&cluster, &[1, 2], &bytes).await;
        let group = at.record.id();
        let table = cluster.table();
        let (capacity, _) = cluster.process_with(None, table.clone()).await;
        // Its writer lives, and looks after it.
        let mut living = present(&table);
        living.writers.insert(Incarnation::new(1));
        assert_eq!(repair(&capacity, group, &living).await, Step::Written);
        // The writer is dead. An extent that is open has no end yet.
        let waits = repair(&capacity, group, &present(&table)).await;
        assert!(matches!(waits, Step::Waits(_)), "{waits:?}");
        capacity.seal(location.extent, ONE).await.unwrap();
        assert_eq!(repair(&capacity, group, &present(&table)).await, Step::Done);
        let found = capacity.groups.find(group).await.unwrap().unwrap().record;
        assert_eq!(found.members().len(), 3);
        let copy = cluster.node(3).copy(location.extent).await.unwrap().unwrap();
        assert!(copy.state == ExtentState::Sealed && !copy.incomplete, "{copy:?}");
        // The new copy is as good as the others.
        cluster.node(1).cut();
        cluster.node(1).block();
        cluster.node(2).block();
        assert_eq!(read(&capacity, &location).await.unwrap(), bytes);
        // What was never created is gone, so nobody asks for it again.
        assert!(group.extents().skip(1).all(|extent| found.is_gone(extent)));
    });
}

#[test]
fn node_that_leaves_is_replaced_before_it_has_left() {
    run(async {
        let cluster = Cluster::new(42).await;
        cluster.heed().await;
        let bytes = payload(2, 100_000);
        let (at, location) = group_on(&cluster, &[1, 2], &bytes).await;
        let group = at.record.id();
        let table = cluster.table();
        let (capacity, _) = cluster.process_with_copies(None, table.clone(), 2).await;
        capacity.seal(location.extent, ONE).await.unwrap();
        let mut leaving = present(&table);
        leaving.leaving.insert(NodeId::new(1));
        // There is no other machine.
        let mut few = leaving.clone();
        few.table.retain(|row| row.id != NodeId::new(3));
        let waits = repair(&capacity, group, &few).await;
        assert!(matches!(waits, Step::Waits(_)), "{waits:?}");
        let members = capacity.groups.find(group).await.unwrap().unwrap().record;
        assert_eq!(members.members(), [NodeId::new(1), NodeId::new(2)]);
        // The node is dead: its copy cannot be read.
        cluster.node(1).set_calls(Calls::Lost);
        assert_eq!(repair(&capacity, group, &leaving).await, Step::Done);
        let record = capacity.groups.find(group).await.unwrap().unwrap().record;
        assert_eq!(record.members(), [NodeId::new(2), NodeId::new(3)]);
        cluster.node(2).block();
        assert_eq!(read(&capacity, &location).await.unwrap(), bytes);
    });
}

#[test]
fn nodes_that_leave_together_do_not_wait_for_each_other() {
    run(async {
        let cluster = Cluster::new(48).await;
        cluster.heed().await;
        let bytes = payload(8, 70_000);
        let (at, location) = group_on(&cluster, &[1, 2], &bytes).await;
        let group = at.record.id();
        let table = cluster.table();
        let (capacity, _) = cluster.process_with_copies(None, table.clone(), 1).await;
        capacity.seal(location.extent, ONE).await.unwrap();
        let mut leaving = present(&table);
        leaving.leaving.extend([NodeId::new(1), NodeId::new(2)]);
        // One of them is dead.
        cluster.node(1).set_calls(Calls::Lost);
        assert_eq!(repair(&capacity, group, &leaving).await, Step::Done);
        let record = capacity.groups.find(group).await.unwrap().unwrap().record;
        assert_eq!(record.members(), [NodeId::new(3)]);
        assert_eq!(read(&capacity, &location).await.unwrap(), bytes);
    });
}

/// A writer that is idle does not hold up the repair of the group that it has written to last.
#[test]
fn idle_writer_leaves_a_group_whose_member_is_replaced() {
    run(async {
        let cluster = Cluster::new(50).await;
        cluster.heed().await;
        let bytes = payload(10, 60_000);
        let group = cluster.group(ExtentKind::Data).await.record.id();
        let extent = group.extents().next().unwrap();
        let mut table = cluster.table();
        let (writer, _) = cluster.process_with_copies(None, table.clone(), 2).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let appended = append(&writer, extent, ExtentOffset::START, &bytes).await.unwrap();
        // The group is in use: nothing happens.
        writer.leave_groups().await;
        assert_eq!(cluster.node(1).copy(extent).await.unwrap().unwrap().state, ExtentState::Open);
        cluster.node(1).set_calls(Calls::Lost);
        cluster.node(1).block();
        table.retain(|row| row.id != NodeId::new(1));
        cluster.set_table(&table);
        writer.leave_groups().await;
        assert_eq!(cluster.node(2).copy(extent).await.unwrap().unwrap().state, ExtentState::Open);
        let closed = |record: &GroupRecord| Ok(record.closed());
        let at = groups::change(&*cluster.coordinator, group, &[], closed).await.unwrap();
        writer.groups.note(at);
        writer.leave_groups().await;
        let copy = cluster.node(2).copy(extent).await.unwrap().unwrap();
        assert_eq!(copy.state, ExtentState::Sealed);
        // It goes on in another one.
        let refused = append(&writer, extent, copy.end, &bytes).await;
        assert!(matches!(refused, Err(Error::Sealed { .. })), "{refused:?}");
        assert_eq!(read(&writer, &appended.locations[0]).await.unwrap(), bytes);
    });
}

/// The repair was interrupted: the new member has a part of an extent.
#[test]
fn member_that_has_a_part_does_not_decide_the_end() {
    run(async {
        let cluster = Cluster::new(49).await;
        cluster.heed().await;
        let bytes = payload(9, 3_000_000);
        let (at, location) = group_on(&cluster, &[1, 2], &bytes).await;
        let (group, extent) = (at.record.id(), location.extent);
        let table = cluster.table();
        let (capacity, _) = cluster.process_with(None, table.clone()).await;
        // Its writer has sealed all copies, so there is no record of its end.
        let end = cluster.node(1).copy(extent).await.unwrap().unwrap().end;
        for number in [1, 2] {
            cluster.node(number).seal_at(extent, ONE, end).await.unwrap();
        }
        while !cluster.record(group).await.has_member(NodeId::new(3)) {
            capacity.repair(group, &present(&table)).await.unwrap();
            capacity.env.clock.sleep(Duration::from_millis(50)).await;
        }
        let copy = CopyId { extent, kind: ExtentKind::Data };
        cluster.node(3).fence(copy, ONE).await.unwrap();
        let frames = cluster.node(1).frames(extent, ExtentOffset::START, 1 << 20).await.unwrap();
        let part = Extension { frames, dead_to: None };
        let reached = cluster.node(3).extend(copy, ONE, part).await.unwrap();
        assert!(reached > ExtentOffset::START && reached < end);
        for number in [1, 2] {
            cluster.node(number).block();
        }
        let alone = cluster.process(None).await;
        alone.seal(extent, TWO).await.unwrap_err();
        assert_eq!(cluster.record(group).await.length(extent), None);
        for number in [1, 2] {
            cluster.node(number).unblock();
        }
        assert_eq!(alone.seal(extent, TWO).await.unwrap(), end);
    });
}

#[test]
fn copies_that_nobody_else_settles_are_settled_by_their_node() {
    run(async {
        let cluster = Cluster::new(43).await;
        let bytes = payload(3, 50_000);
        let (at, location) = group_on(&cluster, &[1, 2, 3], &bytes).await;
        let group = at.record.id();
        // Node 1 is killed with the writer, and node 2 is not.
        cluster.node(1).crash(false).await;
        let capacity = cluster.process(Some(1)).await;
        let states = |infos: &[ExtentInfo]| -> Vec<ExtentState> {
            infos.iter().map(|info| info.state).collect()
        };
        let closed = infos(&cluster, 1, group).await;
        assert_eq!(states(&closed), [ExtentState::Closed]);
        // Its writer lives, as far as is known.
        let settled = capacity.settle_copies(closed.clone(), |_| false).await;
        assert!(settled.sealed == 0 && settled.left == 1 && settled.failed.is_none());
        let settled = capacity.settle_copies(closed, |writer| writer == Incarnation::new(1)).await;
        assert!(settled.sealed == 1 && settled.failed.is_none(), "{settled:?}");
        for number in 1..=3 {
            assert_eq!(states(&infos(&cluster, number, group).await), [ExtentState::Sealed]);
        }
        assert_eq!(read(&capacity, &location).await.unwrap(), bytes);
    });
}

#[test]
fn end_that_not_all_copies_have_is_recorded() {
    run(async {
        let cluster = Cluster::new(46).await;
        let (at, location) = group_on(&cluster, &[1, 2, 3], &payload(6, 50_000)).await;
        let extent = location.extent;
        // The seal of the writer reaches two of three.
        let capacity = cluster.process(None).await;
        let end = cluster.node(1).copy(extent).await.unwrap().unwrap().end;
        for number in [1, 2] {
            cluster.node(number).seal_at(extent, ONE, end).await.unwrap();
        }
        cluster.node(3).block();
        assert_eq!(capacity.seal(extent, ONE).await.unwrap(), end);
        let record = capacity.groups.read(at.record.id()).await.unwrap().unwrap().record;
        assert_eq!(record.length(extent), Some(end));
        // The third one does not agree on another end when it is alone.
        cluster.node(3).unblock();
        for number in [1, 2] {
            cluster.node(number).block();
        }
        let alone = cluster.process(None).await;
        assert!(alone.seal(extent, ONE).await.is_ok_and(|found| found == end));
    });
}

#[test]
fn copies_of_a_group_that_was_left_are_removed_unless_the_coordinator_is_older() {
    run(async {
        let cluster = Cluster::new(47).await;
        cluster.heed().await;
        let (at, location) = group_on(&cluster, &[1, 2], &payload(7, 1_000)).await;
        let group = at.record.id();
        let table = cluster.table();
        let (capacity, _) = cluster.process_with_copies(None, table.clone(), 2).await;
        capacity.seal(location.extent, ONE).await.unwrap();
        let before = cluster.coordinator.range(b"group/").await.unwrap().entries;
        let mut leaving = present(&table);
        leaving.leaving.insert(NodeId::new(1));
        assert_eq!(repair(&capacity, group, &leaving).await, Step::Done);
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        assert!(cluster.node(1).copy(location.extent).await.unwrap().is_none());
        assert!(cluster.node(3).copy(location.extent).await.unwrap().is_some());
        // It is restored from a backup: node 3 is no member in that.
        for (key, old) in before {
            cluster.coordinator.txn(&[], &[Op::Put(key, old.value)]).await.unwrap();
        }
        cluster.env.clock.sleep(Duration::from_secs(1)).await;
        assert!(cluster.node(3).copy(location.extent).await.unwrap().is_some());
    });
}

#[test]
fn log_is_settled_only_after_its_owner_has_agreed_on_its_end() {
    run(async {
        let cluster = Cluster::new(44).await;
        let group = cluster.group(ExtentKind::Log).await.record.id();
        let extent = group.extents().next().unwrap();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Log, ONE).await.unwrap();
        append(&writer, extent, ExtentOffset::START, &payload(4, 2_000)).await.unwrap();
        cluster.node(1).crash(false).await;
        let capacity = cluster.process(Some(1)).await;
        let own = infos(&cluster, 1, group).await;
        let settled = capacity.settle_copies(own.clone(), |_| true).await;
        assert!(settled.sealed == 0 && settled.left == 1, "{settled:?}");
        // The next owner does not reach node 1.
        let owner = cluster.process(None).await;
        cluster.node(1).block();
        owner.fence(extent, TWO).await.unwrap();
        let end = owner.seal(extent, TWO).await.unwrap();
        cluster.node(1).unblock();
        let settled = capacity.settle_copies(own, |_| false).await;
        assert!(settled.sealed == 1 && settled.failed.is_none(), "{settled:?}");
        let copy = cluster.node(1).copy(extent).await.unwrap().unwrap();
        assert_eq!((copy.state, copy.end), (ExtentState::Sealed, end));
    });
}

#[test]
fn body_that_loses_a_member_midway_is_durable_on_the_others() {
    run(async {
        let cluster = Cluster::new(45).await;
        let at = cluster.group(ExtentKind::Data).await;
        let extent = at.record.id().extents().next().unwrap();
        let capacity = cluster.process(None).await;
        capacity.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let bytes = payload(5, 200_000);
        let deferred = AppendRequest {
            durability: Durability::Deferred,
            ..request(extent, ExtentOffset::START, &bytes)
        };
        let appended = capacity.append(deferred).await.unwrap();
        cluster.node(2).crash(true).await;
        cluster.node(2).block();
        capacity.flush(extent, ONE).await.unwrap();
        // Also if the end was agreed on before the flush.
        capacity.flush(extent, ONE).await.unwrap();
        assert_eq!(read(&capacity, &appended.locations[0]).await.unwrap(), bytes);
        // With two members less it is not answered.
        let other = at.record.id().extents().nth(1).unwrap();
        cluster.node(2).unblock();
        let capacity = cluster.process(None).await;
        capacity.create(other, ExtentKind::Data, ONE).await.unwrap();
        let deferred = AppendRequest {
            durability: Durability::Deferred,
            ..request(other, ExtentOffset::START, &bytes)
        };
        capacity.append(deferred).await.unwrap();
        for number in [2, 3] {
            cluster.node(number).crash(true).await;
            cluster.node(number).block();
        }
        let flushed = capacity.flush(other, ONE).await;
        assert!(flushed.is_err(), "{flushed:?}");
    });
}
