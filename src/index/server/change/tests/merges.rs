//! Merges: what the one partition has of its former neighbours.

use super::*;

#[tokio::test]
async fn merged_partition_has_every_row_from_runs_logs_and_memory_also_after_a_restart() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=100).await;
    rig.host.flush().await.unwrap();
    rig.write_all(101..=200).await;
    rig.split(&[50, 100, 150]).await;
    rig.write_all(201..=250).await;
    let merged = rig.merge_all().await;
    assert_eq!(merged.partitions.len(), 1);
    assert_eq!(rig.map().await.partitions().len(), 1);
    rig.check(250).await;
    rig.write_all(251..=300).await;
    drop(rig);
    let rig = open(&world).await;
    rig.check(300).await;
    // Once more through a split of what was merged.
    rig.split(&[20, 260]).await;
    rig.write(301).await;
    rig.merge_all().await;
    rig.check(301).await;
    rig.host.shutdown().await;
    let rig = open(&world).await;
    rig.check(301).await;
    rig.host.shutdown().await;
}

#[tokio::test]
async fn merge_frees_what_the_old_partitions_used_and_nothing_else() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=60).await;
    rig.split(&[30]).await;
    rig.write_all(61..=90).await;
    rig.merge_all().await;
    rig.tidy().await;
    rig.check(90).await;
    assert_eq!(rig.host.owned_extents().await, world.capacity.extents_of_index());
    rig.host.shutdown().await;
}

/// A row that a partition gave away in a split must not come back when it is merged with that
/// neighbour.
#[tokio::test]
async fn rows_deleted_after_a_split_stay_deleted_after_the_merge() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=40).await;
    rig.host.flush().await.unwrap();
    rig.split(&[20]).await;
    for number in 20..=40 {
        let target = rig.target(&name(number)).await;
        let write = Write::DeleteAccount { name: name(number), id: AccountId::new(number) };
        rig.host.write(target, write).await.unwrap();
    }
    rig.merge_all().await;
    rig.check(19).await;
    for number in 20..=40 {
        assert!(!rig.has(number).await, "{number} came back");
    }
    rig.host.shutdown().await;
}

#[tokio::test]
async fn only_neighbours_are_merged() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.split(&[30, 60]).await;
    let ids: Vec<_> = rig.map().await.partitions().iter().map(|p| p.id).collect();
    for wrong in [vec![], vec![ids[0]], vec![ids[0], ids[2]], vec![ids[1], ids[0]]] {
        assert_eq!(rig.host.merge(&wrong).await, Err(ChangeError::NotNeighbours), "{wrong:?}");
    }
    let gone = vec![PartitionId::new(999), ids[0]];
    assert_eq!(rig.host.merge(&gone).await, Err(ChangeError::NoSuchPartition));
    rig.host.shutdown().await;
}

/// A merge that waits for a slow flush delays only its own partitions.
#[tokio::test]
async fn split_of_another_partition_does_not_wait_for_a_merge() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=60).await;
    rig.split(&[20, 40]).await;
    let ids: Vec<_> = rig.map().await.partitions().iter().map(|p| p.id).collect();
    let first = rig.all().into_iter().find(|p| p.core.id == ids[0]).unwrap();
    let compacts = first.compacting.lock().await;
    let merge = rig.deps.env.tasks.spawn("merge", {
        let (host, ids) = (Arc::clone(&rig.host), ids.clone());
        async move { host.merge(&ids[..2]).await }
    });
    while rig.host.claims.taken().is_empty() {
        tokio::task::yield_now().await;
    }
    rig.split(&[50]).await;
    assert!(!merge.is_finished());
    drop(compacts);
    merge.await.unwrap().unwrap();
    rig.check(60).await;
    assert_eq!(rig.map().await.partitions().len(), 3);
    rig.host.shutdown().await;
}
