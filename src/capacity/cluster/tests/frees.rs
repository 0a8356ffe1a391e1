//! Frees that copies have missed, and extents of which nothing is used.

use super::*;
use crate::capacity::Audited;
use crate::capacity::copies::tests::cluster::Calls;
use crate::capacity::groups;

/// Two payloads in a sealed extent.
async fn filled(seed: u64) -> (Cluster, ClusterCapacity, ExtentId, Vec<Location>) {
    let cluster = Cluster::new(seed).await;
    let extent = cluster.group(ExtentKind::Data).await.record.id().first();
    let process = cluster.process(Some(1)).await;
    process.create(extent, ExtentKind::Data, ONE).await.unwrap();
    let (mut end, mut locations) = (ExtentOffset::START, Vec::new());
    for len in [50_000, 3_000] {
        let appended = append(&process, extent, end, &payload(len, len)).await.unwrap();
        end = appended.end;
        locations.extend(appended.locations);
    }
    process.seal(extent, ONE).await.unwrap();
    (cluster, process, extent, locations)
}

async fn dead_at(cluster: &Cluster, node: u64, extent: ExtentId) -> u64 {
    let dead = cluster.node(node).member().dead(extent).await.unwrap();
    dead.iter().map(|range| range.end - range.start).sum()
}

#[test]
fn copy_catches_up_with_frees_that_it_missed() {
    run(async {
        let (cluster, process, extent, locations) = filled(41).await;
        let local = cluster.node(1).member();
        assert_eq!(process.catch_up_frees(extent, &local).await.unwrap(), 0);
        // What one of the others says is not believed.
        cluster.node(3).member().free(&locations[..1]).await.unwrap();
        assert_eq!(process.catch_up_frees(extent, &local).await.unwrap(), 0);
        cluster.node(2).member().free(&locations[..1]).await.unwrap();
        let freed = dead_at(&cluster, 3, extent).await - dead_at(&cluster, 1, extent).await;
        assert!(freed >= 50_000);
        assert_eq!(process.catch_up_frees(extent, &local).await.unwrap(), freed);
        assert_eq!(process.catch_up_frees(extent, &local).await.unwrap(), 0);
        // What is live is read from this copy.
        [2, 3].into_iter().for_each(|node| cluster.node(node).set_calls(Calls::Lost));
        assert_eq!(read(&process, &locations[1]).await.unwrap(), payload(3_000, 3_000));
        read(&process, &locations[0]).await.unwrap_err();
        // Nobody knows these.
        for unknown in [ExtentId::new(7), extent.group().extents().nth(9).unwrap()] {
            assert_eq!(process.catch_up_frees(unknown, &local).await.unwrap(), 0);
        }
    });
}

#[test]
fn extent_of_which_nothing_is_used_is_removed_everywhere() {
    run(async {
        let (cluster, process, extent, locations) = filled(42).await;
        let local = cluster.node(1).member();
        process.free(&locations[..1]).await.unwrap();
        assert_eq!(process.remove_dead(&local).await, 0, "one payload is used");
        // What one copy says is not believed.
        local.free(&locations[1..]).await.unwrap();
        cluster.node(2).member().free(&locations[1..]).await.unwrap();
        assert_eq!((local.dead_extents().len(), process.remove_dead(&local).await), (1, 0));
        cluster.node(3).member().free(&locations[1..]).await.unwrap();
        cluster.node(3).set_calls(Calls::Lost);
        assert_eq!(process.remove_dead(&local).await, 0, "one does not answer");
        cluster.node(3).set_calls(Calls::Answered);
        assert_eq!(process.remove_dead(&local).await, 1);
        let group = extent.group();
        let at = groups::read(&*cluster.coordinator, group).await.unwrap().unwrap();
        assert!(at.record.is_gone(extent));
        for node in 1..=3 {
            assert_eq!(cluster.node(node).member().copy(extent).await.unwrap(), None, "{node}");
        }
        assert_eq!(process.remove_dead(&local).await, 0);
    });
}

#[test]
fn open_extent_is_not_removed_when_all_of_it_is_freed() {
    run(async {
        let cluster = Cluster::new(43).await;
        let extent = cluster.group(ExtentKind::Data).await.record.id().first();
        let process = cluster.process(Some(1)).await;
        process.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let first = append(&process, extent, ExtentOffset::START, &payload(1, 900)).await.unwrap();
        process.free(&first.locations).await.unwrap();
        let local = cluster.node(1).member();
        assert_eq!(process.remove_dead(&local).await, 0);
        append(&process, extent, first.end, &payload(1, 900)).await.unwrap();
    });
}

#[test]
fn audit_frees_in_all_copies_what_is_not_live() {
    run(async {
        let (cluster, process, extent, locations) = filled(45).await;
        let live = process.frames_of(&locations[1]);
        cluster.node(3).set_calls(Calls::Lost);
        process.retain(extent, std::slice::from_ref(&live), Audited::Whole).await.unwrap();
        cluster.node(3).set_calls(Calls::Answered);
        for node in [1, 2] {
            assert!(dead_at(&cluster, node, extent).await >= 50_000, "node {node}");
        }
        assert!(dead_at(&cluster, 3, extent).await < 50_000, "it was away");
        let (local, there) = (cluster.node(3).member(), cluster.process(Some(3)).await);
        assert!(there.catch_up_frees(extent, &local).await.unwrap() >= 50_000);
        assert_eq!(read(&process, &locations[1]).await.unwrap(), payload(3_000, 3_000));
        read(&process, &locations[0]).await.unwrap_err();
        // An open extent stays as it is.
        let open = extent.group().extents().nth(1).unwrap();
        process.create(open, ExtentKind::Data, ONE).await.unwrap();
        let appended = append(&process, open, ExtentOffset::START, &payload(900, 9)).await.unwrap();
        process.retain(open, &[], Audited::Whole).await.unwrap();
        assert_eq!(read(&process, &appended.locations[0]).await.unwrap(), payload(900, 9));
    });
}
