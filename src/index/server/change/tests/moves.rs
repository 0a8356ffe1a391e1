//! Moves to another host.

use super::*;

impl Rig {
    /// Moves the partition of an account to the other host.
    async fn move_away(&self, number: u64) -> HostId {
        let target = self.target(&name(number)).await;
        let to = HostId::new(1 - target.host.number());
        let moved = self.host.move_to(target.partition, to).await.unwrap();
        assert_eq!(moved.partitions, vec![target.partition]);
        let now = self.target(&name(number)).await;
        assert_eq!((now.partition, now.host), (target.partition, to));
        assert!(now.epoch > target.epoch);
        let stale = Read::Account(name(number));
        assert_eq!(self.host.read(target, stale).await.unwrap_err(), Error::WrongPartition);
        to
    }
}

#[tokio::test]
async fn moved_partition_has_every_row_and_goes_on_in_its_log() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=60).await;
    rig.split(&[30]).await;
    rig.write_all(61..=90).await;
    let mut written = 90;
    for round in 0..4 {
        rig.move_away(31).await;
        rig.check(written).await;
        for _ in 0..10 {
            written += 1;
            rig.write(written).await;
        }
        rig.check(written).await;
        if round == 2 {
            rig.move_away(1).await;
        }
    }
    drop(rig);
    let rig = open(&world).await;
    assert_eq!(
        rig.target(&name(1)).await.host,
        HostId::new(1),
        "who serves it outlives the process"
    );
    rig.check(written).await;
    rig.move_away(31).await;
    rig.merge_all().await;
    rig.check(written).await;
    let status = rig.host.status();
    assert_eq!(status.len(), 1);
    assert_eq!(
        (status[0].id, status[0].stopped.clone()),
        (rig.map().await.partitions()[0].id, None)
    );
    // The right one moves there and back before it is merged with the left one.
    let kinds: Vec<_> = rig.host.changes_after(0).iter().map(|event| event.kind).collect();
    assert_eq!(kinds.last(), Some(&ChangeKind::Merge));
    assert_eq!(rig.host.changes_after(kinds.len() as u64 - 1).len(), 1);
    rig.tidy().await;
    assert_eq!(rig.host.owned_extents().await, world.capacity.extents_of_index());
    rig.host.shutdown().await;
}

/// With fewer hosts than before, the first takes over what was served by those no longer there.
#[tokio::test]
async fn partitions_of_a_host_that_is_no_more_are_served_by_the_first() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write(1).await;
    rig.move_away(1).await;
    rig.host.shutdown().await;
    world.capacity.crash();
    let alone = IndexServer::open(vec![rig.deps.clone()], world.config).await.unwrap();
    let alone = Rig { host: Arc::new(alone), deps: rig.deps.clone() };
    alone.check(1).await;
    assert_eq!(alone.target(&name(1)).await.host, HostId::new(0));
    alone.host.shutdown().await;
}

#[tokio::test]
async fn only_hosts_there_are_take_partitions() {
    let world = World::empty();
    let rig = open(&world).await;
    let target = rig.target(&name(1)).await;
    let nowhere = rig.host.move_to(target.partition, HostId::new(2)).await;
    assert_eq!(nowhere, Err(ChangeError::NoSuchHost));
    let nobody = rig.host.move_to(PartitionId::new(99), HostId::new(1)).await;
    assert_eq!(nobody, Err(ChangeError::NoSuchPartition));
    let stays = rig.host.move_to(target.partition, target.host).await.unwrap();
    assert_eq!(stays.pause, Duration::ZERO);
    assert_eq!(rig.target(&name(1)).await, target);
    rig.host.shutdown().await;
}
