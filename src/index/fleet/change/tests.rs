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
    host: Arc<Fleet>,
}

async fn open(world: &World) -> Rig {
    world.capacity.crash();
    let parts = Parts { machine: Arc::new(crate::index::Objects), ..world.parts() };
    let host = Arc::new(Fleet::open(vec![parts.clone(); 2], world.config).await.unwrap());
    Rig { parts, host }
}

impl Rig {
    fn all(&self) -> Vec<Arc<Partition>> {
        self.host.hosts.iter().flat_map(|host| host.opened.all()).collect()
    }

    async fn do_chores(&self) {
        for host in &self.host.hosts {
            host.shared.do_chores().await;
        }
    }

    async fn map(&self) -> PartitionMap {
        PartitionMap::load(self.parts.coordinator.as_ref()).await.unwrap()
    }

    async fn target(&self, name: &AccountName) -> Target {
        let map = self.map().await;
        let owner = map.owner(RoutingKey::account(name).as_bytes()).unwrap();
        Target::of(owner)
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
    for partition in rig.all() {
        partition.flush().await.unwrap();
        while partition.compact().await.unwrap() {}
    }
    rig.do_chores().await;
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
    for number in 1..=60 {
        rig.write(number).await;
    }
    rig.host.flush().await.unwrap();
    rig.split(&[30]).await;
    rig.do_chores().await;
    let right = rig.target(&name(40)).await.partition;
    let right = rig.host.hosts[0].opened.get(right).unwrap();
    assert!(right.core.may_compact());
    let before = world.capacity.extents_of_index();
    let stalled = world.capacity.stall().await;
    let (compacted, kept_out) = tokio::join!(right.compact(), right.keep_compaction_out());
    assert_eq!(compacted, Ok(false), "it cannot read now");
    drop((stalled, kept_out));
    assert!(right.core.may_compact(), "it begins anew");
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
    // All rows are in the lowest partition; the others have a share in its log, and more of it with each split.
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
    rig.do_chores().await;
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
    let balancing = tasks.spawn("balance", Arc::clone(&host).balance(Some(config)));
    for number in 1..=2_000u64 {
        // In no order, a thousand a second.
        let number = number * 7 % 2_003;
        let write = Write::CreateAccount { name: name(number), id: AccountId::new(number) };
        loop {
            let map = PartitionMap::load(rig.parts.coordinator.as_ref()).await.unwrap();
            let owner = map.owner(&write.routing_key()).unwrap();
            let target = Target::of(owner);
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
    for partition in rig.all() {
        partition.flush().await.unwrap();
        while partition.compact().await.unwrap() {}
    }
    rig.do_chores().await;
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

impl Rig {
    /// Moves the partition of an account to the other host.
    async fn move_away(&self, number: u64) -> HostId {
        let target = self.target(&name(number)).await;
        let to = HostId::new(1 - target.host.get());
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
    for number in 1..=60 {
        rig.write(number).await;
    }
    rig.split(&[30]).await;
    for number in 61..=90 {
        rig.write(number).await;
    }
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
    for partition in rig.all() {
        partition.flush().await.unwrap();
        while partition.compact().await.unwrap() {}
    }
    rig.do_chores().await;
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
    let alone = Fleet::open(vec![rig.parts.clone()], world.config).await.unwrap();
    let alone = Rig { host: Arc::new(alone), parts: rig.parts.clone() };
    alone.check(1).await;
    assert_eq!(alone.target(&name(1)).await.host, HostId::new(0));
    alone.host.shutdown().await;
}

/// A change of the map, of a store with two partitions.
#[derive(Clone, Copy, Debug)]
enum Change {
    Split,
    Merge,
    Move,
}

impl Rig {
    async fn change(&self, change: Change) -> Result<Changed, ChangeError> {
        let first = self.target(&name(1)).await.partition;
        match change {
            Change::Split => self.host.split(first, &[RoutingKey::account(&name(5))]).await,
            Change::Merge => {
                let second = self.target(&name(20)).await.partition;
                self.host.merge(&[first, second]).await
            }
            Change::Move => self.host.move_to(first, HostId::new(1)).await,
        }
    }
}

/// Whatever call of the layer below fails, and whether or not it was carried out: what is served is right, and after a
/// restart everything is there and takes writes (I8).
#[tokio::test]
async fn change_that_fails_anywhere_leaves_the_old_or_the_new_partitions() {
    let failures = [
        Fault::Refused(crate::capacity::Error::Full),
        Fault::Lied(crate::capacity::Error::Poisoned { disk: 0 }),
        Fault::Torn(crate::capacity::Error::Poisoned { disk: 0 }),
    ];
    for change in [Change::Split, Change::Merge, Change::Move] {
        let mut failed = 0;
        for fault in &failures {
            for call in 0..14 {
                let world = World::empty();
                let rig = open(&world).await;
                for number in 1..=20 {
                    rig.write(number).await;
                }
                rig.split(&[10]).await;
                rig.host.flush().await.unwrap();
                rig.write(21).await;
                world.capacity.fail(When::Once(call), fault.clone());
                failed += usize::from(rig.change(change).await.is_err());
                rig.check(21).await;
                drop(rig);
                let rig = open(&world).await;
                rig.check(21).await;
                rig.write(22).await;
                rig.check(22).await;
                rig.host.shutdown().await;
            }
        }
        match change {
            Change::Split | Change::Merge => assert!(failed > 3, "{change:?}: {failed} failed"),
            // The new host gets over any one failure by opening the partition anew.
            Change::Move => assert_eq!(failed, 0),
        }
    }
}

/// A disk that takes no writes for a while must not keep a partition closed for good.
#[tokio::test(start_paused = true)]
async fn partition_that_does_not_open_after_a_move_is_served_once_it_does() {
    let mut reopened = 0;
    for call in 0..14 {
        let world = World::empty();
        let rig = open(&world).await;
        for number in 1..=20 {
            rig.write(number).await;
        }
        let id = rig.target(&name(1)).await.partition;
        let poisoned = || Fault::Refused(crate::capacity::Error::Poisoned { disk: 0 });
        world.capacity.fail(When::From(call), poisoned());
        let moved = rig.host.move_to(id, HostId::new(1)).await;
        if moved.is_ok() || rig.host.partitions() > 0 {
            continue;
        }
        // Nobody waits for it, and nothing is done to it.
        let refused = Err(ChangeError::NoSuchPartition);
        assert_eq!(rig.host.move_to(id, HostId::new(0)).await, refused);
        rig.parts.env.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.host.partitions(), 0, "the disk takes no writes");
        world.capacity.fail(When::Once(usize::MAX), poisoned());
        rig.parts.env.clock.sleep(REOPEN_PAUSE_MAX * 2).await;
        rig.check(20).await;
        rig.write(21).await;
        rig.check(21).await;
        let back = rig.host.move_to(id, HostId::new(0)).await.unwrap();
        assert_eq!(back.partitions, [id]);
        let events = rig.host.changes_after(0);
        assert_eq!(events.len(), 2);
        assert!(events[0].pause > Duration::from_secs(60), "{events:?}");
        rig.host.shutdown().await;
        reopened += 1;
    }
    assert!(reopened > 0);
}

#[tokio::test(start_paused = true)]
async fn fleet_stops_although_a_partition_does_not_open() {
    let mut stopped = 0;
    for call in 0..14 {
        let world = World::empty();
        let rig = open(&world).await;
        rig.write(1).await;
        let id = rig.target(&name(1)).await.partition;
        let poisoned = Fault::Refused(crate::capacity::Error::Poisoned { disk: 0 });
        world.capacity.fail(When::From(call), poisoned);
        drop(rig.host.move_to(id, HostId::new(1)).await);
        stopped += usize::from(rig.host.partitions() == 0);
        rig.host.shutdown().await;
    }
    assert!(stopped > 0);
}

/// A merge that waits for a slow flush holds up nobody but its own partitions.
#[tokio::test]
async fn split_of_another_partition_does_not_wait_for_a_merge() {
    let world = World::empty();
    let rig = open(&world).await;
    for number in 1..=60 {
        rig.write(number).await;
    }
    rig.split(&[20, 40]).await;
    let ids: Vec<_> = rig.map().await.partitions().iter().map(|p| p.id).collect();
    let first = rig.all().into_iter().find(|p| p.core.id == ids[0]).unwrap();
    let compacts = first.compacting.lock().await;
    let merge = rig.parts.env.tasks.spawn("merge", {
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
