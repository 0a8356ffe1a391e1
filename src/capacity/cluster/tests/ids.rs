//! Ids of new extents, and nodes that are passed over.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::capacity::ExtentIds;
use crate::capacity::groups;
use crate::capacity::groups::GroupState;
use crate::types::GROUP_EXTENTS;

async fn record_of(cluster: &Cluster, extent: ExtentId) -> groups::GroupRecord {
    let found = groups::read(&*cluster.coordinator, extent.group()).await.unwrap();
    found.unwrap().record
}

/// Lets tasks work.
async fn settle(cluster: &Cluster) {
    cluster.env.clock.sleep(Duration::from_millis(50)).await;
}

#[test]
fn ids_are_dealt_over_groups_of_their_kind() {
    run(async {
        let cluster = Cluster::new(20).await;
        let (capacity, ids) = cluster.process_with(None, cluster.table()).await;
        let mut issued = BTreeSet::new();
        for number in 0..200 {
            let kind = [ExtentKind::Data, ExtentKind::Log, ExtentKind::Run][number % 3];
            let extent = ids.next_extent(kind).await.unwrap();
            assert!(issued.insert(extent));
            let record = record_of(&cluster, extent).await;
            assert_eq!(record.kind() == ExtentKind::Data, kind == ExtentKind::Data);
            assert_eq!((record.members().len(), record.writer()), (3, Incarnation::new(7)));
            capacity.create(extent, kind, ONE).await.unwrap();
            settle(&cluster).await;
        }
        let groups: BTreeSet<_> = issued.iter().map(|extent| extent.group()).collect();
        assert!((4..=8).contains(&groups.len()), "{groups:?}");
    });
}

#[test]
fn used_up_group_is_closed_when_all_its_extents_were_created() {
    run(async {
        let cluster = Cluster::new(21).await;
        let (capacity, ids) = cluster.process_with(None, cluster.table()).await;
        let mut extents = Vec::new();
        // More than the first two groups have.
        for _ in 0..2 * GROUP_EXTENTS + 10 {
            extents.push(ids.next_extent(ExtentKind::Data).await.unwrap());
        }
        settle(&cluster).await;
        let first = extents[0].group();
        assert_eq!(record_of(&cluster, extents[0]).await.state(), GroupState::Open);
        for extent in extents.iter().filter(|extent| extent.group() == first) {
            capacity.create(*extent, ExtentKind::Data, ONE).await.unwrap();
            append(&capacity, *extent, ExtentOffset::START, &payload(1, 10)).await.unwrap();
        }
        ids.next_extent(ExtentKind::Data).await.unwrap();
        settle(&cluster).await;
        assert_eq!(record_of(&cluster, extents[0]).await.state(), GroupState::Closed);
    });
}

#[test]
fn node_that_failed_gets_nothing_new_for_a_while() {
    run(async {
        let cluster = Cluster::new(22).await;
        let (capacity, ids) = cluster.process_with(None, cluster.table()).await;
        let extent = ids.next_extent(ExtentKind::Data).await.unwrap();
        let reserved = ids.next_extent(ExtentKind::Data).await.unwrap();
        capacity.create(extent, ExtentKind::Data, ONE).await.unwrap();
        cluster.node(2).block();
        append(&capacity, extent, ExtentOffset::START, &payload(1, 10)).await.unwrap_err();
        // An id that was issued before is not used.
        let error = capacity.create(reserved, ExtentKind::Data, ONE).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
        let next = ids.next_extent(ExtentKind::Data).await.unwrap();
        let members = record_of(&cluster, next).await.members().to_vec();
        assert_eq!(BTreeSet::from_iter(members), BTreeSet::from([1, 3].map(NodeId::new)));
        capacity.create(next, ExtentKind::Data, ONE).await.unwrap();
        append(&capacity, next, ExtentOffset::START, &payload(1, 10)).await.unwrap();
        cluster.node(2).unblock();
        cluster.env.clock.sleep(Duration::from_secs(6)).await;
        capacity.create(reserved, ExtentKind::Data, ONE).await.unwrap();
        append(&capacity, reserved, ExtentOffset::START, &payload(1, 10)).await.unwrap();
    });
}

#[test]
fn groups_with_fewer_copies_are_closed_when_all_nodes_are_well() {
    run(async {
        let cluster = Cluster::new(24).await;
        let (capacity, ids) = cluster.process_with(None, cluster.table()).await;
        let first = ids.next_extent(ExtentKind::Data).await.unwrap();
        capacity.create(first, ExtentKind::Data, ONE).await.unwrap();
        cluster.node(2).block();
        append(&capacity, first, ExtentOffset::START, &payload(1, 10)).await.unwrap_err();
        let fewer = ids.next_extent(ExtentKind::Data).await.unwrap();
        assert_eq!(record_of(&cluster, fewer).await.members().len(), 2);
        cluster.node(2).unblock();
        cluster.env.clock.sleep(Duration::from_secs(6)).await;
        ids.look_after();
        settle(&cluster).await;
        assert_eq!(record_of(&cluster, fewer).await.state(), GroupState::Closed);
        for _ in 0..20 {
            let extent = ids.next_extent(ExtentKind::Data).await.unwrap();
            assert_eq!(record_of(&cluster, extent).await.members().len(), 3);
        }
    });
}

#[test]
fn groups_of_nodes_that_drain_or_are_away_are_closed() {
    run(async {
        let cluster = Cluster::new(25).await;
        let mut table = cluster.table();
        let (_, ids) = cluster.process_with(None, table.clone()).await;
        let extent = ids.next_extent(ExtentKind::Log).await.unwrap();
        settle(&cluster).await;
        table[0].state = NodeState::Draining;
        cluster.set_table(&table);
        ids.look_after();
        settle(&cluster).await;
        assert_eq!(record_of(&cluster, extent).await.state(), GroupState::Closed);
        let next = ids.next_extent(ExtentKind::Log).await.unwrap();
        let members = record_of(&cluster, next).await.members().to_vec();
        assert_eq!(BTreeSet::from_iter(members), BTreeSet::from([2, 3].map(NodeId::new)));
        // Two nodes too few: nothing is written.
        table[1].is_away = true;
        cluster.set_table(&table);
        ids.look_after();
        settle(&cluster).await;
        assert_eq!(record_of(&cluster, next).await.state(), GroupState::Closed);
        let error = ids.next_extent(ExtentKind::Log).await.unwrap_err();
        assert!(!error.is_full(), "{error}");
    });
}

/// The first one may be well again. That there are three copies is not given up for it.
#[test]
fn of_two_nodes_that_failed_the_last_one_is_passed_over() {
    run(async {
        let cluster = Cluster::new(26).await;
        let (capacity, ids) = cluster.process_with(None, cluster.table()).await;
        for failing in [2, 3] {
            let extent = ids.next_extent(ExtentKind::Data).await.unwrap();
            capacity.create(extent, ExtentKind::Data, ONE).await.unwrap();
            cluster.node(failing).block();
            append(&capacity, extent, ExtentOffset::START, &payload(1, 10)).await.unwrap_err();
            cluster.node(failing).unblock();
        }
        let extent = ids.next_extent(ExtentKind::Data).await.unwrap();
        let members = record_of(&cluster, extent).await.members().to_vec();
        assert_eq!(BTreeSet::from_iter(members), BTreeSet::from([1, 2].map(NodeId::new)));
        capacity.create(extent, ExtentKind::Data, ONE).await.unwrap();
        append(&capacity, extent, ExtentOffset::START, &payload(1, 10)).await.unwrap();
    });
}

#[test]
fn without_nodes_no_id_is_issued() {
    run(async {
        let cluster = Cluster::new(23).await;
        let (_, ids) = cluster.process_with(None, Vec::new()).await;
        let error = ids.next_extent(ExtentKind::Log).await.unwrap_err();
        assert!(!error.is_full(), "{error}");
        let mut table = cluster.table();
        table.iter_mut().for_each(|row| row.room = 1);
        let (_, ids) = cluster.process_with(None, table).await;
        let error = ids.next_extent(ExtentKind::Log).await.unwrap_err();
        assert!(error.is_full(), "{error}");
    });
}

#[test]
fn logs_get_ids_while_nodes_have_no_room_for_bodies() {
    run(async {
        let cluster = Cluster::new(27).await;
        let mut table = cluster.table();
        table[1].room = 100 << 20;
        let (_, ids) = cluster.process_with(None, table).await;
        let error = ids.next_extent(ExtentKind::Data).await.unwrap_err();
        assert!(error.is_full(), "{error}");
        let log = ids.next_extent(ExtentKind::Log).await.unwrap();
        assert_eq!(record_of(&cluster, log).await.members().len(), 3);
    });
}
