use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::index::api::IndexHost;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::engine::Parts;
use crate::index::engine::testing::{Fault, When, World};
use crate::index::load::PolicyConfig;
use crate::index::map::PartitionMap;
use crate::types::AccountId;
use crate::types::AccountName;

struct Rig {
    parts: Parts,
    host: Arc<Host>,
}

async fn open(world: &World) -> Rig {
    world.capacity.crash();
    let parts = Parts { machine: Arc::new(crate::index::Objects), ..world.parts() };
    let host = Arc::new(Host::open(parts.clone(), world.config).await.unwrap());
    Rig { parts, host }
}

impl Rig {
    async fn map(&self) -> PartitionMap {
        PartitionMap::load(self.parts.coordinator.as_ref()).await.unwrap()
    }

    async fn target(&self, name: &AccountName) -> Target {
        let map = self.map().await;
        let owner = map.owner(RoutingKey::account(name).as_bytes()).unwrap();
        Target { partition: owner.id, epoch: owner.epoch }
    }

    async fn write(&self, number: u64) {
        let target = self.target(&name(number)).await;
        let write = Write::CreateAccount { name: name(number), id: AccountId::new(number) };
        self.host.write(target, write).await.unwrap();
    }

    async fn has(&self, number: u64) -> bool {
        let target = self.target(&name(number)).await;
        match self.host.read(target, Read::Account(name(number))).await {
            Ok(ReadReply::Account(found)) => {
                assert_eq!(found.id, AccountId::new(number));
                true
            }
            Err(Error::AccountNotFound) => false,
            other => panic!("{other:?}"),
        }
    }

    async fn split(&self, at: &[u64]) -> Changed {
        let target = self.target(&name(at[0])).await;
        let keys: Vec<_> = at.iter().map(|&n| RoutingKey::account(&name(n))).collect();
        self.host.split(target.partition, &keys).await.unwrap()
    }

    /// Everything of `written` is there, nothing of the next number is, and the map tiles.
    async fn check(&self, written: u64) {
        for number in 1..=written {
            assert!(self.has(number).await, "{number} is lost");
        }
        assert!(!self.has(written + 1).await);
    }
}

fn name(number: u64) -> AccountName {
    AccountName::new(&format!("acc{number:05}")).unwrap()
}

#[tokio::test]
async fn children_have_every_row_with_and_without_flush_and_restart() {
    for flush in [false, true] {
        let world = World::empty();
        let rig = open(&world).await;
        for number in 1..=100 {
            rig.write(number).await;
        }
        if flush {
            rig.host.flush().await.unwrap();
        }
        for number in 101..=200 {
            rig.write(number).await;
        }
        let before = rig.target(&name(1)).await;
        let report = rig.split(&[50, 100, 150]).await;
        assert_eq!(report.partitions.len(), 4);
        assert_eq!(rig.map().await.partitions().len(), 4);
        rig.check(200).await;
        let stale = Read::Account(name(1));
        assert_eq!(rig.host.read(before, stale).await.unwrap_err(), Error::WrongPartition);
        for number in 201..=250 {
            rig.write(number).await;
        }
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
    for number in 1..=60 {
        rig.write(number).await;
    }
    rig.host.flush().await.unwrap();
    for number in 61..=90 {
        rig.write(number).await;
    }
    let parent: BTreeSet<_> = rig.host.owned_extents().await.into_iter().collect();
    rig.split(&[30, 70]).await;
    for partition in rig.host.opened.all() {
        partition.flush().await.unwrap();
        while partition.compact().await.unwrap() {}
    }
    rig.host.shared.do_chores().await;
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

#[tokio::test]
async fn full_disk_leaves_the_parent_as_it_was() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write(1).await;
    let target = rig.target(&name(1)).await;
    world.capacity.set_full(true);
    let before = world.capacity.extents_of_index();
    let refused = rig.host.split(target.partition, &[RoutingKey::account(&name(1))]).await;
    assert_eq!(refused, Err(ChangeError::Failed(Error::Full)));
    world.capacity.set_full(false);
    // The first child's log can be made, the second's not.
    let full = Fault::Refused(crate::capacity::Error::Full);
    world.capacity.fail(When::Once(1), full);
    let refused = rig.host.split(target.partition, &[RoutingKey::account(&name(1))]).await;
    assert_eq!(refused, Err(ChangeError::Failed(Error::Full)));
    rig.host.shared.do_chores().await;
    assert_eq!(world.capacity.extents_of_index(), before, "nothing is left behind");
    rig.write(2).await;
    rig.check(2).await;
    rig.host.shutdown().await;
    assert!(rig.parts.coordinator.range(b"partition/").await.unwrap().entries.len() == 1);
}

#[tokio::test(start_paused = true)]
async fn hot_partition_is_split_by_itself_and_loses_nothing() {
    let world = World::empty();
    let rig = open(&world).await;
    let host = Arc::clone(&rig.host);
    let config = PolicyConfig { hot_requests: 200.0, ..PolicyConfig::default() };
    let tasks = &rig.parts.env.tasks;
    let balancing = tasks.spawn("balance", Arc::clone(&host).balance(config));
    for number in 1..=2_000u64 {
        // In no order, a thousand a second.
        let number = number * 7 % 2_003;
        let write = Write::CreateAccount { name: name(number), id: AccountId::new(number) };
        loop {
            let map = PartitionMap::load(rig.parts.coordinator.as_ref()).await.unwrap();
            let owner = map.owner(&write.routing_key()).unwrap();
            let target = Target { partition: owner.id, epoch: owner.epoch };
            match host.write(target, write.clone()).await {
                Err(Error::WrongPartition) => {}
                answer => break drop(answer.unwrap()),
            }
        }
        rig.parts.env.clock.sleep(Duration::from_millis(1)).await;
    }
    assert!(host.partitions() >= 4, "{} partitions", host.partitions());
    host.shutdown().await;
    balancing.await.unwrap();
    for number in 1..=2_000u64 {
        assert!(rig.has(number * 7 % 2_003).await, "{number}");
    }
}

impl Rig {
    async fn merge_all(&self) -> Changed {
        let map = self.map().await;
        let all: Vec<_> = map.partitions().iter().map(|partition| partition.id).collect();
        self.host.merge(&all).await.unwrap()
    }
}

#[tokio::test]
async fn merged_partition_has_every_row_from_runs_logs_and_memory_also_after_a_restart() {
    let world = World::empty();
    let rig = open(&world).await;
    for number in 1..=100 {
        rig.write(number).await;
    }
    rig.host.flush().await.unwrap();
    for number in 101..=200 {
        rig.write(number).await;
    }
    rig.split(&[50, 100, 150]).await;
    for number in 201..=250 {
        rig.write(number).await;
    }
    let merged = rig.merge_all().await;
    assert_eq!(merged.partitions.len(), 1);
    assert_eq!(rig.map().await.partitions().len(), 1);
    rig.check(250).await;
    for number in 251..=300 {
        rig.write(number).await;
    }
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
    for number in 1..=60 {
        rig.write(number).await;
    }
    rig.split(&[30]).await;
    for number in 61..=90 {
        rig.write(number).await;
    }
    rig.merge_all().await;
    for partition in rig.host.opened.all() {
        partition.flush().await.unwrap();
        while partition.compact().await.unwrap() {}
    }
    rig.host.shared.do_chores().await;
    rig.check(90).await;
    assert_eq!(rig.host.owned_extents().await, world.capacity.extents_of_index());
    rig.host.shutdown().await;
}

/// A row that a partition gave away in a split must not come back when it is merged with that neighbour.
#[tokio::test]
async fn rows_deleted_after_a_split_stay_deleted_after_the_merge() {
    let world = World::empty();
    let rig = open(&world).await;
    for number in 1..=40 {
        rig.write(number).await;
    }
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

#[tokio::test]
async fn full_disk_leaves_the_neighbours_as_they_were() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.split(&[2]).await;
    rig.write(1).await;
    rig.host.flush().await.unwrap();
    let ids: Vec<_> = rig.map().await.partitions().iter().map(|p| p.id).collect();
    world.capacity.set_full(true);
    let refused = rig.host.merge(&ids).await;
    assert_eq!(refused, Err(ChangeError::Failed(Error::Full)));
    world.capacity.set_full(false);
    rig.write(2).await;
    rig.check(2).await;
    rig.merge_all().await;
    rig.check(2).await;
    rig.host.shutdown().await;
}
