//! Splits: what children have, share and leave behind.

use super::*;

#[tokio::test]
async fn children_have_every_row_with_and_without_flush_and_restart() {
    for flush in [false, true] {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write_all(1..=100).await;
        if flush {
            rig.host.flush().await.unwrap();
        }
        rig.write_all(101..=200).await;
        let before = rig.target(&name(1)).await;
        let report = rig.split(&[50, 100, 150]).await;
        assert_eq!(report.partitions.len(), 4);
        assert_eq!(rig.map().await.partitions().len(), 4);
        rig.check(200).await;
        let stale = Read::Account(name(1));
        assert_eq!(rig.host.read(before, stale).await.unwrap_err(), Error::WrongPartition);
        rig.write_all(201..=250).await;
        // A child of a child, half of whose rows are in its grandparent's log.
        rig.split(&[170, 210]).await;
        rig.write(251).await;
        rig.check(251).await;
        drop(rig);

        let rig = open(&world).await;
        assert_eq!(rig.map().await.partitions().len(), 6);
        rig.check(251).await;
        rig.host.shutdown().await;
        let rig = open(&world).await;
        rig.check(251).await;
        rig.host.shutdown().await;
    }
}

#[tokio::test]
async fn what_children_share_goes_when_the_last_of_them_has_its_own() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=60).await;
    rig.host.flush().await.unwrap();
    rig.write_all(61..=90).await;
    let parent: BTreeSet<_> = rig.host.owned_extents().await.into_iter().collect();
    rig.split(&[30, 70]).await;
    rig.tidy().await;
    rig.check(90).await;
    let now = rig.host.owned_extents().await;
    let kept: Vec<_> = now.iter().filter(|extent| parent.contains(extent)).collect();
    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(now, world.capacity.extents_of_index());
    rig.host.shutdown().await;
    let rig = open(&world).await;
    rig.check(90).await;
    rig.host.shutdown().await;
}

#[tokio::test]
async fn a_compaction_gives_way_to_a_change_and_leaves_nothing_behind() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=60).await;
    rig.host.flush().await.unwrap();
    rig.split(&[30]).await;
    rig.do_chores().await;
    let right = rig.target(&name(40)).await.partition;
    let right = rig.host.hosts[0].opened.get(right).unwrap();
    assert!(right.core.may_compact());
    let before = world.capacity.extents_of_index();
    let stalled = world.capacity.stall_reads().await;
    let (compacted, kept_out) = tokio::join!(right.compact(), right.keep_compaction_out());
    assert_eq!(compacted, Ok(false), "it cannot read now");
    drop(kept_out);
    let (compacted, kept_out) = tokio::join!(right.compact_at_rest(), right.keep_compaction_out());
    assert_eq!(compacted, Ok(false), "nor at rest");
    drop((stalled, kept_out));
    assert!(right.core.may_compact(), "it begins anew");
    assert!(right.core.may_compact_at_rest(), "it begins anew at rest too");
    rig.do_chores().await;
    assert_eq!(world.capacity.extents_of_index(), before);
    assert_eq!(right.compact().await, Ok(true));
    while right.compact().await.unwrap() {}
    assert!(!right.core.may_compact(), "until the runs change again");
    rig.check(60).await;
    rig.host.shutdown().await;
}

#[tokio::test]
async fn few_rows_cut_off_many_do_not_make_the_many_be_written_anew() {
    let world = World::empty();
    let rig = open(&world).await;
    for number in 1..=6_000 {
        rig.write(number).await;
    }
    rig.host.flush().await.unwrap();
    let made = rig.split(&[100]).await;
    let [left, right] = made.partitions[..] else { panic!("{made:?}") };
    let opened = |id| rig.host.hosts[0].opened.get(id).unwrap();
    assert_eq!(opened(right).compact().await, Ok(false), "almost all of the run is its own");
    assert_eq!(opened(left).compact().await, Ok(true));
    assert_eq!(opened(left).compact().await, Ok(false));
    rig.host.merge(&[left, right]).await.unwrap();
    for number in [1, 99, 100, 101, 6_000] {
        assert!(rig.has(number).await, "{number} is lost");
    }
    rig.do_chores().await;
    assert_eq!(rig.host.owned_extents().await, world.capacity.extents_of_index());
    rig.host.shutdown().await;
}

#[tokio::test]
async fn a_log_of_former_neighbours_is_left_behind_after_a_restart() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write(1).await;
    // All rows are in the lowest partition; the others have a share in its log, and more of it with
    // each split.
    for number in 2..=7 {
        rig.write(1).await;
        rig.split(&[number * 10]).await;
    }
    drop(rig);
    let rig = open(&world).await;
    assert!(rig.all().iter().any(|partition| partition.core.log_extents() > 1));
    rig.host.flush().await.unwrap();
    let logs: Vec<usize> = rig.all().iter().map(|partition| partition.core.log_extents()).collect();
    assert!(logs.iter().all(|extents| *extents <= 1), "{logs:?}");
    rig.check(1).await;
    drop(rig);
    let rig = open(&world).await;
    rig.check(1).await;
    rig.write(70).await;
    assert!(rig.has(70).await);
    rig.host.shutdown().await;
}

#[tokio::test]
async fn only_borders_inside_the_partition_cut_it() {
    let world = World::empty();
    let rig = open(&world).await;
    let id = rig.map().await.partitions()[0].id;
    let key = |n| RoutingKey::account(&name(n));
    let many: Vec<_> = (1..=16).map(key).collect();
    let table =
        RoutingKey::container(AccountId::new(1), &crate::types::ContainerName::new("abc").unwrap());
    for keys in [vec![], vec![key(2), key(1)], vec![key(1), key(1)], many, vec![table]] {
        assert_eq!(rig.host.split(id, &keys).await, Err(ChangeError::BadKeys), "{keys:?}");
    }
    let nobody = PartitionId::new(77);
    assert_eq!(rig.host.split(nobody, &[key(1)]).await, Err(ChangeError::NoSuchPartition));
    rig.split(&[1]).await;
    assert_eq!(rig.host.split(id, &[key(1)]).await, Err(ChangeError::NoSuchPartition));
    let right = rig.target(&name(1)).await.partition;
    assert_eq!(rig.host.split(right, &[key(1)]).await, Err(ChangeError::BadKeys), "its low border");
    rig.host.shutdown().await;
}
